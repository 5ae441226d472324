"""Everything that makes a recording unfit is found, and the text says what to do."""

from dataclasses import replace

import numpy as np
import pytest
from sample_sessions import CHANNELS, DT_S, make_session, with_values

from rsr.common.errors import SessionError
from rsr.sessions import Channel, Session, check_session, find_problems

SESSION = make_session()


def _message(session: Session) -> str:
    with pytest.raises(SessionError) as raised:
        check_session(session, CHANNELS)
    return str(raised.value)


def _described(name: str, **changes) -> Session:
    channels = [replace(c, **changes) if c.name == name else c for c in SESSION.channels]
    return replace(SESSION, channels=tuple(channels))


def test_a_sound_session_passes():
    assert list(find_problems(SESSION, CHANNELS)) == []
    assert check_session(SESSION, CHANNELS) is None


def test_more_channels_and_another_clock_are_welcome():
    assert check_session(_described("block_position", clock="robot"), CHANNELS[:4]) is None


def test_part_of_a_session_is_sound_too():
    assert check_session(replace(SESSION, episodes=SESSION.episodes[1:]), CHANNELS) is None


def test_golden_text_of_a_missing_channel():
    session = replace(SESSION, channels=tuple(c for c in CHANNELS if c.name != "block_position"))
    assert _message(session) == (
        "session 'session-001': got channels joint_position, joint_setpoint, action, block_orientation, clipped; "
        "expected channel 'block_position' (x, y, z; m). Record this channel, or rename the one that holds it."
    )


def test_golden_text_of_a_wrong_width():
    assert _message(_described("joint_position", columns=("base", "shoulder", "elbow"))) == (
        "session 'session-001', channel 'joint_position': got 3 columns (base, shoulder, elbow); "
        "expected 6 as in the scenario (joint1, joint2, joint3, joint4, joint5, joint6). "
        "Map the recorded columns to the scenario's, or choose the scenario of this robot."
    )


def test_golden_text_of_nan():
    values = SESSION.episodes[1]["joint_position"].copy()
    values[7:9, 1] = np.nan
    assert _message(with_values(SESSION, 1, joint_position=values)) == (
        "session 'session-001', channel 'joint_position', episode 1, row 7 (0.350 s): "
        "got joint2 = nan (2 of 126 values are not finite); expected finite numbers. "
        "Drop or re-record this episode: what was not measured cannot be tuned to."
    )


def test_infinity_is_found():
    values = SESSION.episodes[2]["clipped"].copy()
    values[0] = -np.inf
    assert "episode 2, row 0 (0.000 s): got share = -inf" in _message(with_values(SESSION, 2, clipped=values))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"unit": "mm"}, "channel 'block_position': got unit 'mm'; expected 'm'"),
        ({"frame": "camera"}, "got frame 'camera'; expected 'world'"),
        ({"stamp": "held_until_next"}, "got stamp 'held_until_next'; expected 'at_sample'"),
        ({"columns": ("y", "x", "z")}, "got columns y, x, z; expected x, y, z"),
    ],
)
def test_a_wrong_description_is_found(changes, message):
    assert message in _message(_described("block_position", **changes))


def _at(row: int, change_s: float) -> np.ndarray:
    time_s = SESSION.episodes[0].time_s.copy()
    time_s[row] += change_s
    return time_s


@pytest.mark.parametrize(
    ("time_s", "message"),
    [
        (_at(4, -2 * DT_S), "episode 0, row 4 (0.100 s): got 0.1 s after 0.15 s; expected increasing times on a grid"),
        (_at(4, 0.4 * DT_S), "row 4 (0.220 s): got 0.22 s after 0.15 s; expected increasing times on a grid of 0.05 s"),
        (_at(4, np.nan), "row 4 (nan s): got nan s after 0.15 s"),
        (np.arange(21) * 0.052, "row 3 (0.156 s): got 0.156 s after 0.104 s"),
        (np.delete(np.arange(22), 9) * DT_S, "row 9 (0.500 s): got 0.5 s after 0.4 s"),
        (np.full(21, 0.0), "row 1 (0.000 s): got 0 s after 0 s"),
    ],
    ids=["backwards", "jitter", "nan", "another rate", "a dropped row", "stopped"],
)
def test_times_off_the_control_grid_are_found(time_s, message):
    assert message in _message(with_values(SESSION, 0, time_s=time_s))


def test_a_late_start_and_small_jitter_are_fine():
    jitter = np.random.default_rng(0).uniform(-0.04, 0.04, 21) * DT_S
    assert check_session(with_values(SESSION, 0, time_s=7.3 + np.arange(21) * DT_S + jitter), CHANNELS) is None


def test_a_quaternion_off_unit_norm_is_found():
    values = SESSION.episodes[0]["block_orientation"].copy()
    values[5] *= 1.01
    message = _message(with_values(SESSION, 0, block_orientation=values))
    assert "channel 'block_orientation', episode 0, row 5 (0.250 s): got a quaternion of norm 1.0100" in message
    assert "expected norm 1 (wxyz)" in message


def test_four_columns_are_not_always_a_quaternion():
    channel = Channel("wheel_speed", ("fl", "fr", "rl", "rr"), "rad/s", "joint")
    values = {"wheel_speed": np.full((21, 4), 3.0)}
    episode = replace(SESSION.episodes[0], values=values)
    assert check_session(replace(SESSION, channels=(channel,), episodes=(episode,)), (channel,)) is None


@pytest.mark.parametrize(
    ("session", "message"),
    [
        (replace(SESSION, episodes=()), "got no episodes; expected at least one"),
        (
            with_values(SESSION, 0, time_s=np.array([0.0])),
            "got time_s of shape (1,); expected [T] with at least 2 rows",
        ),
        (with_values(SESSION, 2, action=np.zeros((20, 6))), "episode 2: got values of shape (20, 6); expected 21 rows"),
        (with_values(SESSION, 2, action=np.zeros((21, 5))), "(one a time stamp) by 6 columns"),
        (with_values(SESSION, 2, clipped=np.zeros(21)), "got values of shape (21,); expected 21 rows"),
    ],
)
def test_missing_rows_and_columns_are_found(session, message):
    assert message in _message(session)


def test_a_channel_absent_from_one_episode_is_found():
    values = {name: array for name, array in SESSION.episodes[1].values.items() if name != "action"}
    episodes = (SESSION.episodes[0], replace(SESSION.episodes[1], values=values))
    assert "channel 'action', episode 1: got no values" in _message(replace(SESSION, episodes=episodes))


def test_all_problems_are_listed_at_once():
    session = _described("block_position", unit="mm")
    session = with_values(session, 0, time_s=_at(3, 1.0), action=np.full((21, 6), np.nan))
    session = with_values(session, 2, clipped=np.zeros((3, 1)))
    assert len(list(find_problems(session, CHANNELS))) == 4
