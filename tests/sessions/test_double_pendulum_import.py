"""The authors' CSV files and the parquet table of them give the same runs, on an even clock."""

import numpy as np
import pytest

from rsr.common.errors import SessionError
from rsr.scenarios import load_scenario
from rsr.sessions import check_session
from rsr.sessions.importers import read_double_pendulum
from rsr.sessions.importers.double_pendulum import CHANNELS, DT_S
from tests.shared_data import pendulum_runs

HEADER = (
    "time,pos_meas1,pos_meas2,vel_meas1,vel_meas2,pos_filt1,pos_filt2,vel_filt1,vel_filt2,"
    "tau_con1,tau_con2,tau_fric1,tau_fric2,tau_meas1,tau_meas2"
)


def write_run(folder, rows: int = 50, without: str = ""):
    """A run as the authors store it, its clock stumbling in the first rows."""
    folder.mkdir(parents=True)
    time_s = np.arange(rows) * DT_S + np.minimum(np.arange(rows), 3) * 0.0012
    values = {name: np.zeros(rows) for name in HEADER.split(",")} | {
        "time": 5.0 + time_s,
        "pos_meas1": 3 * time_s,
        "pos_meas2": -time_s,
        "vel_meas1": np.full(rows, 3.0),
        "tau_meas2": 0.1 * time_s,
        "tau_con1": np.arange(rows, dtype=float),
    }
    values.pop(without, None)
    np.savetxt(
        folder / "trajectory.csv",
        np.stack(list(values.values()), 1),
        "%.18e",
        ",",
        header=",".join(values),
        comments="",
    )


def test_runs_stand_on_an_even_clock(tmp_path):
    write_run(tmp_path / "20230629-143601")
    write_run(tmp_path / "20230629-143524", rows=30)
    session = read_double_pendulum(tmp_path)
    assert [e.tags["run"] for e in session.episodes] == ["20230629-143524", "20230629-143601"]
    run = session.episodes[1]
    np.testing.assert_allclose(run.time_s, np.arange(len(run)) * DT_S)
    assert len(run) == 51  # the stumbling clock ran for 0.1016 s
    np.testing.assert_allclose(run["joint_position"], np.stack([3 * run.time_s, -run.time_s], 1), atol=1e-12)
    np.testing.assert_allclose(run["measured_torque"][:, 1], 0.1 * run.time_s, atol=1e-12)
    check_session(session, load_scenario("double_pendulum").channels)


def test_commands_keep_their_value_until_the_next_one(tmp_path):
    write_run(tmp_path / "run")
    commands = read_double_pendulum(tmp_path / "run" / "trajectory.csv").episodes[0]["commanded_torque"][:, 0]
    assert set(commands) <= set(range(50))
    assert commands[:6].tolist() == [0, 0, 1, 1, 2, 3]  # rows came at 0, 3.2, 6.4, 9.6, 11.6 ms


def test_a_missing_column_is_named(tmp_path):
    write_run(tmp_path / "run", without="tau_meas2")
    with pytest.raises(SessionError, match="trajectory.csv: got no column tau_meas2"):
        read_double_pendulum(tmp_path)


def test_channels_are_those_of_the_scenario():
    names = {channel.name: channel for channel in load_scenario("double_pendulum").channels}
    assert names == {channel.name: channel for channel in CHANNELS}


def test_recorded_runs_pass_the_checks():
    session = pendulum_runs()
    check_session(session, load_scenario("double_pendulum").channels)
    assert len(session.episodes) == 6
    assert all(len(run) == 5000 for run in session.episodes)
