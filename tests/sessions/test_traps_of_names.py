"""What names cannot tell is asked and not assumed: orders of quaternions, numbered columns, units, the gap channel."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hinged_bars import elbow, throws

from rsr.common.errors import ConfigError, SessionError
from rsr.scenarios import load_scenario
from rsr.scenarios.channels.recorded import target_of
from rsr.sessions import Channel, read_session
from rsr.sessions.importers.recording import Samples, Stream
from rsr.sessions.ingest.mapping import Target
from rsr.sessions.ingest.naming import matches
from rsr.sessions.ingest.session import ingest
from rsr.sessions.ingest.units import unit_in_name

ARM = ("shoulder_pan", "shoulder_lift", "elbow", "wrist_1")
POSITION = Channel("joint_position", ARM, "rad", "joint")
SPEED = Channel("joint_velocity", ARM, "rad/s", "joint")
SETPOINT = Channel("joint_setpoint", ARM, "rad", "joint", stamp="held_until_next")


def found(channel: Channel, *columns: str):
    stream = Stream("table", columns, Samples(np.zeros(2), np.zeros((2, len(columns)))))
    return next(iter(matches(channel, [stream], [POSITION, SPEED, SETPOINT])), None)


def logged(prefix: str, names=ARM) -> list[str]:
    return [f"{prefix}_{name}" for name in names]


REAL_TIME_LOG = ["timestamp", *(name for kind in ("actual_q", "actual_qd", "target_q", "target_qd", "target_moment",
                 "actual_current") for name in logged(kind))]  # fmt: skip


@pytest.mark.parametrize(("channel", "prefix"), [(POSITION, "actual_q"), (SPEED, "actual_qd"), (SETPOINT, "target_q")])
def test_columns_of_an_arms_real_time_log_are_found(channel, prefix):
    match = found(channel, *REAL_TIME_LOG)
    assert (match.columns, match.sure) == (tuple(logged(prefix)), True)


def test_the_file_of_an_arms_own_recorder_is_divided_by_blanks(tmp_path: Path):
    arm = Target("arm", 0.008, (POSITION, SETPOINT), gap_channel="joint_position")
    time_s = 0.008 * np.arange(100)
    angles = 0.3 * np.sin(time_s[:, None] * np.arange(1, 5))
    names = ["timestamp", *logged("target_q", range(4)), *logged("actual_q", range(4))]
    rows = np.column_stack([time_s, 2 * angles, angles])
    file = tmp_path / "run.csv"
    file.write_text("\n".join([" ".join(names), *(" ".join(f"{number:.9f}" for number in row) for row in rows), ""]))
    given = {
        "channels": {
            "joint_position": {"from": "table", "columns": logged("actual_q", range(4)), "unit": "rad"},
            "joint_setpoint": {"from": "table", "columns": logged("target_q", range(4)), "unit": "rad"},
        }
    }
    (episode,) = read_session(ingest([file], arm, tmp_path / "out", given=given).folder).episodes
    np.testing.assert_allclose(episode["joint_position"], angles, atol=1e-8)
    np.testing.assert_allclose(episode["joint_setpoint"][:-1], 2 * angles[:-1], atol=1e-8)


def test_numbered_columns_are_found_and_their_order_is_asked():
    match = found(SETPOINT, *(name for kind in ("actual_q", "target_q") for name in logged(kind, range(4))))
    assert (match.columns, match.sure) == (("target_q_0", "target_q_1", "target_q_2", "target_q_3"), False)
    assert match.why == "the source numbers its columns, so their order is assumed"
    match = found(POSITION, "t", *logged("joint_position", range(1, 5)))
    assert (match.columns[0], match.sure) == ("joint_position_1", False)


def test_columns_called_by_the_channel_and_its_columns_are_found_whatever_these_words_say():
    log = ("t", "duty_left", "duty_right", "gyro_x_dps", "gyro_y_dps", "gyro_z_dps", "temperature_left_c")
    duty = Channel("duty", ("left", "right"), "1", "joint", stamp="held_until_next")
    assert (found(duty, *log).columns, found(duty, *log).sure) == (("duty_left", "duty_right"), True)
    gyro = Channel("gyro", ("x", "y", "z"), "rad/s", "body")
    assert (found(gyro, *log).columns, found(gyro, *log).sure) == (log[3:6], True)
    orientation = Channel("orientation", ("w", "x", "y", "z"), "1", "world")
    assert found(orientation, *(f"cam_q{axis}" for axis in "xyzw")).columns == tuple(f"cam_q{axis}" for axis in "wxyz")


def test_a_column_called_exactly_like_the_channel_is_found():
    match = found(Channel("pressure_valve", ("opening",), "1", "joint"), "t", "pressure_valve")
    assert (match.columns, match.sure) == (("pressure_valve",), True)


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("duty_per_rad", None),
        ("gain [duty/rad]", None),
        ("speed_deg_per_s", "deg/s"),
        ("elbow_deg", "deg"),
        ("elbow_deg_s", "deg/s"),
        ("per_rad", None),
    ],
)
def test_a_unit_after_per_is_not_the_columns_unit(name, unit):
    assert unit_in_name(name) == unit


def written(folder: Path, quaternion: tuple[str, ...], name: str = "run.csv") -> Path:
    """One throw as a CSV file, with its quaternion's columns named so."""
    episode = throws(1).episodes[0]
    columns = {"time_s": episode.time_s, "x": None, "y": None, "z": None}
    columns |= dict(zip("xyz", episode["link1_position"].T, strict=True))
    columns |= dict(zip(quaternion, episode["link1_orientation"].T, strict=True))
    columns["joint_rad"] = episode["elbow_angle"][:, 0]
    np.savetxt(folder / name, np.stack(list(columns.values()), 1), delimiter=",", header=",".join(columns), comments="")
    return folder / name


def given(**more):
    entries = {
        "link1_position": {"from": "table", "columns": list("xyz"), "unit": "m"},
        "elbow_angle": {"from": "table", "columns": ["joint_rad"]},
        **{name: {"leave_out": True} for name in ("link1_velocity", "link1_angular_velocity", "elbow_velocity")},
    }
    return {"time": {"column": "time_s"}, "channels": entries | more}


def test_quaternions_that_are_numbered_are_asked(tmp_path: Path):
    numbered = ("q0", "q1", "q2", "q3")
    mapped = {"link1_orientation": {"from": "table", "columns": list(numbered)}}
    for lines in (given(**mapped), given()):
        with pytest.raises(ConfigError, match=r"in q0, q1, q2, q3, wxyz or xyzw\? Nothing says it"):
            ingest([written(tmp_path, numbered)], target_of(elbow()), tmp_path / "data", given=lines)


@pytest.mark.parametrize("order", ["wxyz", "xyzw"])
def test_the_order_in_the_names_is_taken(tmp_path: Path, order: str):
    named = tuple(f"q{letter}" for letter in order)
    mapped = {"link1_orientation": {"from": "table", "columns": list(named)}}
    stored = ingest([written(tmp_path, named)], target_of(elbow()), tmp_path / "data", given=given(**mapped))
    assert stored.mapping.channels["link1_orientation"].quaternion == order


def test_the_gap_channel_is_never_suggested_to_be_left_out(tmp_path: Path):
    source = tmp_path / "run.csv"
    source.write_text("time_s,a,b\n" + "".join(f"{0.01 * row},0,0\n" for row in range(60)))
    target = target_of(load_scenario("double_pendulum"))
    with pytest.raises(ConfigError) as refused:
        ingest([source], target, tmp_path / "data")
    said = str(refused.value)
    assert "it cannot be left out, because calibrations are judged by it" in said
    assert "refuse a session that lacks one of its channels" in said  # of the others
    block = said[said.index("channels:") :]
    assert "leave_out" not in block[block.index(target.gap_channel) :].partition("joint_velocity")[0]
    lines = {name.name: {"leave_out": True} for name in target.channels if name.name != target.gap_channel}
    left = {"from": "table", "columns": ["column of shoulder", "column of elbow"], "unit": "rad"}
    with pytest.raises(SessionError, match=r"no column .*expected one of time_s, a, b"):
        ingest([source], target, tmp_path / "data", given={"channels": lines | {target.gap_channel: left}})


def test_the_same_file_under_another_name_is_not_stored_twice(tmp_path: Path):
    source, said = written(tmp_path, ("qw", "qx", "qy", "qz")), []
    first = ingest([source], target_of(elbow()), tmp_path / "data", given=given(), name="monday")
    again = ingest([source], target_of(elbow()), tmp_path / "data", given=given(), name="tuesday", say=said.append)
    assert again.known
    assert again.folder == first.folder
    assert "These files are session 'monday' already, so nothing is stored under the name 'tuesday'." in said
    shifted = given(elbow_angle={"from": "table", "columns": ["joint_rad"], "offset": [0.1]})
    other = ingest([source], target_of(elbow()), tmp_path / "data", given=shifted, name="tuesday")
    assert not other.known
    assert "session 'monday' as well, mapped otherwise: use one of the two" in other.damage[0]


def test_columns_with_one_value_an_episode_become_tags(tmp_path: Path):
    source = tmp_path / "runs.csv"
    rows = np.concatenate([
        np.stack([np.full(60, run), 0.01 * np.arange(60), np.full(60, kp), np.full(60, 5.0), np.sin(np.arange(60) / 9),
                  np.cos(np.arange(60) / 9)], 1)
        for run, kp in ((0, 100), (1, 800), (2, 100))
    ])  # fmt: skip
    np.savetxt(source, rows, delimiter=",", header="run_id,time_s,kp,volts,shoulder,elbow", comments="")
    target = target_of(replace(load_scenario("double_pendulum"), control_dt_s=0.01))
    channels = {each.name: {"leave_out": True} for each in target.channels}
    channels["joint_position"] = {"from": "table", "columns": ["shoulder", "elbow"], "unit": "rad"}
    lines = {"channels": channels, "time": {"column": "time_s"}}
    stored = ingest([source], target, tmp_path / "data", given=lines)
    assert stored.mapping.episodes.tags == ("kp",)
    assert [each.tags["kp"] for each in read_session(stored.folder).episodes] == ["100", "800", "100"]
    kept = lines | {"episodes": {"column": "run_id", "tags": ["volts", "elbow"]}}
    stored = ingest([source], target, tmp_path / "more", given=kept)
    assert [each.tags.get("volts") for each in read_session(stored.folder).episodes] == ["5"] * 3
    assert any("column elbow has more than one value" in words for words in stored.damage)
