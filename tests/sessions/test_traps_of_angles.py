"""An angle that wraps at +-pi is unwrapped where the joint may turn round, and refused by that word where it cannot."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hinged_bars import elbow, throws

from rsr.common.errors import SessionError
from rsr.common.rotations import unwrapped, wrapped, wraps
from rsr.scenarios import Scenario
from rsr.scenarios.channels.recorded import joint_ranges, target_of
from rsr.sessions import Session, read_session
from rsr.sessions.checks.inspection import inspect_session
from rsr.sessions.checks.rules import share_outside
from rsr.sessions.ingest.session import ingest
from rsr.simulators import MujocoSimulator
from rsr.simulators.unstable import warning_counts, warnings_since


def cut_to_a_turn(session: Session) -> Session:
    """The session as a sensor that reads between -pi and pi would have it."""
    return replace(
        session,
        episodes=tuple(
            replace(each, values={**each.values, "elbow_angle": wrapped(each["elbow_angle"])})
            for each in session.episodes
        ),
    )


def limited() -> Scenario:
    model = mujoco.MjModel.from_xml_path(str(elbow().mjcf))
    model.jnt_limited[1], model.jnt_range[1] = True, [-6.0, 6.0]
    return replace(elbow(), base_model=model)


def test_the_throws_do_wrap():
    assert sum(wraps(each["elbow_angle"]).sum() for each in cut_to_a_turn(throws()).episodes) > 3


def test_unwrapping_restores_an_angle_and_leaves_one_of_many_turns_alone():
    angle = np.linspace(2.0, 9.0, 50)[:, None]
    np.testing.assert_allclose(unwrapped(wrapped(angle)), angle, atol=1e-12)
    wheel = np.cumsum(np.full((20, 1), 4.0), axis=0)  # further than half a turn a row: not wrapped, but slowly sampled
    np.testing.assert_array_equal(unwrapped(wheel), wheel)
    assert not wraps(np.zeros((0, 1))).any()


def test_states_of_a_wrapped_recording_are_those_of_a_continuous_one():
    for cut, whole in zip(cut_to_a_turn(throws()).episodes, throws().episodes, strict=True):
        got, expected = elbow().states(cut), elbow().states(whole)
        np.testing.assert_allclose(got[:, 14], expected[:, 14], atol=1e-6)  # the joint's velocity
        assert wrapped(got[:, 7] - expected[:, 7]) == pytest.approx(0.0, abs=1e-9)


def test_a_joint_with_limits_cannot_wrap():
    wrapping = next(each for each in cut_to_a_turn(throws()).episodes if wraps(each["elbow_angle"]).any())
    with pytest.raises(SessionError, match=r"channel 'elbow_angle', row \d+: got an angle that wraps: joint goes from"):
        limited().states(wrapping)


def test_check_names_a_wrapped_angle():
    session = cut_to_a_turn(throws())
    found = inspect_session(session, elbow().channels, joint_ranges(elbow()))
    said = [each for each in found.findings if "an angle that wraps" in each.got]
    assert [each.severity for each in said] == ["note"]
    assert not [each for each in found.findings if "spike" in each.got]
    refused = inspect_session(session, elbow().channels, joint_ranges(limited()))
    assert refused.verdict == "reject"
    assert any("angle that wraps" in each.got for each in refused.findings)


def test_ingest_unwraps_before_it_interpolates(tmp_path: Path):
    source, given = written(tmp_path)
    stored = read_session(ingest([source], target_of(elbow()), tmp_path / "data", given=given).folder)
    for got, expected in zip(stored.episodes, throws().episodes, strict=True):
        assert np.abs(np.diff(got["elbow_angle"], axis=0)).max() < 1.0
        offset = got["elbow_angle"] - expected["elbow_angle"][: len(got)]
        np.testing.assert_allclose(offset, np.round(offset / (2 * np.pi)) * 2 * np.pi, atol=1e-6)


def test_ingest_refuses_a_joint_with_limits_that_wraps(tmp_path: Path):
    source, given = written(tmp_path)
    with pytest.raises(SessionError, match="an angle that wraps"):
        ingest([source], target_of(limited()), tmp_path / "data", given=given)


def test_mujoco_writes_no_log_and_its_warnings_are_counted(tmp_path: Path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    start = np.zeros((4, elbow().state_size))
    start[:, 3], start[:, 14] = 1.0, np.nan
    before = warning_counts()
    with MujocoSimulator(elbow()) as simulator:
        simulator.rollout(start, np.zeros((4, 5, 0)), elbow().space.nominal)
    assert warnings_since(before).startswith("Nan, Inf or huge value in Q")
    assert not list(tmp_path.iterdir())
    assert capfd.readouterr().err == ""


def written(folder: Path, session: Session | None = None) -> tuple[Path, dict]:
    """A session with wrapped angles as one table, and a mapping that leaves nothing open."""
    columns = {channel.name: channel.columns for channel in elbow().channels}
    rows = {"toss_id": [], "time_s": []} | {column: [] for names in columns.values() for column in names}
    for episode in cut_to_a_turn(session or throws()).episodes:
        rows["toss_id"] += [episode.index] * len(episode)
        rows["time_s"] += episode.time_s.tolist()
        for name, names in columns.items():
            for place, column in enumerate(names):
                rows[column] += episode[name][:, place].tolist()
    pq.write_table(pa.table(rows), folder / "throws.parquet")
    channels = {each.name: {"from": "table", "columns": list(each.columns), "delay_s": 0} for each in elbow().channels}
    for each in elbow().channels:
        channels[each.name] |= {"quaternion": "wxyz"} if each.is_quaternion else {"unit": each.unit}
    given = {"time": {"column": "time_s"}, "episodes": {"column": "toss_id"}, "channels": channels}
    return folder / "throws.parquet", given


def test_a_joint_without_limits_beside_one_with_limits_strays_by_nothing():
    limits = np.array([[-np.inf, np.inf], [-1.5, 1.5]])
    share = share_outside(np.array([[9.0, 1.8], [-9.0, 0.0]]), limits)
    np.testing.assert_allclose(share, [-np.inf, 0.1])
