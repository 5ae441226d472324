"""One table of several devices, each with its own rate: cells are blank where another one's row stands."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rsr.common.errors import ConfigError, SessionError
from rsr.sessions import Channel, read_session
from rsr.sessions.ingest.mapping import Target
from rsr.sessions.ingest.session import ingest

ANGLES = Channel("axes", ("pan", "tilt"), "rad", "joint")
COMMANDS = Channel("setpoint", ("pan", "tilt"), "rad", "joint", stamp="held_until_next")
GIMBAL = Target("gimbal", 0.01, (ANGLES, COMMANDS), gap_channel="axes")
MAPPED = {"channels": {"axes": {"from": "table", "columns": ["enc_pan_deg", "enc_tilt_deg"]}}}


def log(file: Path, last_encoder_s: float = 3.0) -> Path:
    """Encoders at 200 Hz, commands at 40 Hz, a row each time one of them speaks."""
    rows = [(t, f"{10 * t:.4f},{-5 * t:.4f},,") for t in np.arange(0.0, last_encoder_s, 0.005)]
    rows += [(t, f",,{20 * t:.4f},{t:.4f}") for t in np.arange(0.0, 3.0, 0.025)]
    lines = [f"{1000 * t:.3f},{cells}" for t, cells in sorted(rows)]
    file.write_text("\n".join(["stamp_ms,enc_pan_deg,enc_tilt_deg,cmd_pan_deg,cmd_tilt_deg", *lines, ""]))
    return file


def test_blank_cells_are_no_damage_and_each_device_keeps_its_rate(tmp_path):
    (episode,) = read_session(
        ingest([log(tmp_path / "run.csv")], GIMBAL, tmp_path / "out", given=MAPPED).folder
    ).episodes
    time_s = np.arange(len(episode)) * 0.01
    assert time_s[-1] > 2.9
    np.testing.assert_allclose(episode["axes"][:, 0], np.radians(10 * time_s), atol=1e-6)
    sent_s = np.floor(time_s / 0.025 + 1e-6) * 0.025
    np.testing.assert_allclose(episode["setpoint"][:-1, 0], np.radians(20 * sent_s)[:-1], atol=1e-6)


def test_a_device_that_falls_silent_ends_the_episode_and_one_that_never_spoke_is_refused(tmp_path):
    found = ingest([log(tmp_path / "half.csv", 1.0)], GIMBAL, tmp_path / "out", given=MAPPED)
    (episode,) = read_session(found.folder).episodes
    assert len(episode) == pytest.approx(100, abs=2)
    with pytest.raises(SessionError, match="no number in the first rows of column enc_pan_deg, enc_tilt_deg in table"):
        ingest([log(tmp_path / "none.csv", 0.0)], GIMBAL, tmp_path / "other", given=MAPPED)


def test_of_columns_that_are_asked_for_the_unit_is_not_asked_too(tmp_path):
    with pytest.raises(ConfigError) as error:
        ingest([log(tmp_path / "run.csv")], GIMBAL, tmp_path / "out")
    assert "in which unit" not in str(error.value), str(error.value)


def test_an_empty_column_is_called_empty_and_one_that_is_not_there_missing(tmp_path):
    table = pa.table({"t": np.arange(60) / 100, "pan": np.arange(60.0), "tilt": pa.nulls(60), "word": ["a"] * 60})
    pq.write_table(table, tmp_path / "run.parquet")
    lines = {"axes": {"from": "table", "columns": ["tilt", "roll"]}, "setpoint": {"leave_out": True}}
    with pytest.raises(SessionError, match="no number in the first rows of column tilt, no column roll in table"):
        ingest([tmp_path / "run.parquet"], GIMBAL, tmp_path / "out", given={"channels": lines})
    with pytest.raises(ConfigError, match="There is: t, pan; without a number in its first rows: tilt, word"):
        ingest([tmp_path / "run.parquet"], GIMBAL, tmp_path / "out")


def test_an_episode_in_which_nothing_moves_is_named_and_kept(tmp_path):
    rng = np.random.default_rng(0)
    time_s = np.arange(0.0, 1.0, 0.01)
    files = [tmp_path / f"{number}.csv" for number in range(3)]
    for number, file in enumerate(files):
        angles = np.radians(30 * np.sin(6 * time_s)) * (number != 1) + 1e-3 * rng.normal(size=len(time_s))
        rows = np.column_stack([time_s, angles, angles, np.zeros((len(time_s), 2))])
        np.savetxt(file, rows, delimiter=",", header="t_s,a_rad,b_rad,c_rad,d_rad", comments="")
    lines = {"axes": {"from": "table", "columns": ["a_rad", "b_rad"]}}
    lines |= {"setpoint": {"from": "table", "columns": ["c_rad", "d_rad"]}}
    target = replace(GIMBAL, noise={"axes": 1e-3})
    found = ingest(files, target, tmp_path / "out", given={"channels": lines})
    assert found.episodes == 3
    assert found.damage == ("nothing moves by more than its noise, and no command changes, in episode 1",)
