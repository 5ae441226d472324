"""Routes and the task of a segment: geometry, rules, rewards. Rollouts here are plain functions."""

from dataclasses import replace

import numpy as np
import pytest

from rsr.common.errors import ConfigError
from rsr.learned.clash.segment import OBSERVATIONS, ROUTES, SEGMENT_M, Blocks, SegmentTask, next_segment
from rsr.scenarios.built_in.strike import load_shape


@pytest.fixture(scope="module")
def task():
    return SegmentTask(load_shape("semi_cylinder"))


def blocks_at(*poses, struck=0, turn_rad=0.0):
    count = len(poses)
    return Blocks(np.array(poses, float), np.full(count, struck), np.full(count, turn_rad))


def ahead_of(task, metres, turn_rad=0.0):
    """What a strike in the middle of the struck face does: so far ahead, in the block's own frame."""
    return np.array([[metres * np.cos(task.ahead_rad), metres * np.sin(task.ahead_rad), turn_rad]])


def test_routes_have_one_two_and_three_segments():
    assert [len(route) for route in ROUTES.values()] == [1, 2, 3]
    for route in ROUTES.values():
        lengths = np.linalg.norm(np.diff(route.corners_m, axis=0), axis=1)
        assert lengths == pytest.approx(SEGMENT_M)
        assert route.headings_rad[0] == 0
        assert route.turns_rad[-1] == 0


def test_a_pose_is_the_same_in_the_frames_of_two_segments():
    route = ROUTES["double_bend"]
    pose = np.array([[0.28, 0.02, 0.3], [0.31, -0.01, -0.5]])
    for segment in (0, 1):
        turn = np.full(2, route.turns_rad[segment])
        seen = route.to_world(segment + 1, next_segment(pose, turn))
        assert seen == pytest.approx(route.to_world(segment, pose))


def test_a_strike_in_the_middle_drives_the_block_in_its_direction(task):
    outcome = task.outcome(blocks_at((0.0, 0.0, 0.0)), ahead_of(task, 0.1))
    assert outcome.blocks.pose[0] == pytest.approx([0.1, 0.0, 0.0])
    turned = task.outcome(blocks_at((0.0, 0.0, np.pi / 2)), ahead_of(task, 0.03))
    assert turned.blocks.pose[0] == pytest.approx([0.0, 0.03, np.pi / 2])


@pytest.mark.parametrize(
    ("pose", "struck", "ends"),
    [
        ((0.29, 0.02, 0.0), 0, "reached"),
        ((0.33, 0.0, 0.0), 4, "reached"),
        ((0.1, 0.05, 0.0), 0, "outside"),
        ((-0.06, 0.0, 0.0), 0, "outside"),
        ((0.36, 0.0, 0.0), 4, "outside"),
        ((0.2, 0.0, 0.0), 4, "spent"),
        ((0.2, 0.0, 0.0), 3, None),
    ],
)
def test_how_a_segment_ends(task, pose, struck, ends):
    outcome = task.outcome(blocks_at(pose, struck=struck), np.zeros((1, 3)))
    assert {name for name in ("reached", "outside", "spent") if getattr(outcome, name)[0]} == ({ends} - {None})
    assert outcome.ended[0] == (ends is not None)


def test_starts_lie_in_the_zone_and_observations_are_of_about_one(task):
    starts = task.starts(500, np.random.default_rng(0))
    assert (np.abs(starts.pose[:, 1]) <= task.half_width_m).all()
    assert (np.hypot(*starts.pose[:, :2].T) <= task.reached_m + 1e-12).all()
    seen = task.observe(starts)
    assert seen.shape == (500, len(OBSERVATIONS))
    assert seen.dtype == np.float32
    assert np.abs(seen).max() < 2
    narrow = replace(task, half_width_m=0.01).starts(100, np.random.default_rng(0))
    assert (np.abs(narrow.pose[:, 1]) <= 0.01).all()


def test_observations_see_the_goal_from_the_block(task):
    seen = dict(
        zip(OBSERVATIONS, task.observe(blocks_at((0.0, 0.0, np.pi / 2), struck=2, turn_rad=0.5))[0], strict=True)
    )
    assert seen["goal_ahead"] == pytest.approx(0, abs=1e-6)
    assert seen["goal_aside"] == pytest.approx(-1)
    assert seen["cos_wanted"] == pytest.approx(np.cos(np.pi / 2 - 0.5))
    assert seen["strikes_left"] == pytest.approx(0.6)


def test_the_literal_reward_pays_for_waiting_and_progress_does_not(task):
    """Table V: five idle strikes in the middle earn as much as an arrival in two, and risk nothing."""
    literal, waiting = replace(task, reward="literal"), blocks_at((0.15, 0.0, 0.0))
    idle, arriving = np.zeros((1, 3)), ahead_of(task, 0.15)
    assert 5 * literal.outcome(waiting, idle).reward[0] > 0.97 * literal.outcome(waiting, arriving).reward[0] - 1.1
    assert literal.outcome(waiting, idle).reward[0] > 0.97
    assert task.outcome(waiting, idle).reward[0] == 0
    assert task.outcome(waiting, arriving).reward[0] == pytest.approx(0.15 / 0.04 + 10 + 1 + 4)
    leaving = task.outcome(blocks_at((0.15, 0.039, np.pi / 2)), ahead_of(task, 0.02))
    assert leaving.outside[0]
    assert leaving.reward[0] < -10


def test_actions_span_the_ranges_of_table_one(task):
    low, middle, high = task.strikes(np.array([[-1, -1, -1], [0, 0, 0], [2, 2, 2]])).take(slice(None)), 1, 2
    assert low.speed_m_s == pytest.approx([0.2, 0.5, 0.8])
    assert low.angle_rad == pytest.approx([-np.pi / 12, 0, np.pi / 12])
    assert low.normal[middle] == pytest.approx([0, -1], abs=1e-6)
    assert low.normal[high, 0] == pytest.approx(-low.normal[0, 0])


def test_an_unknown_reward_and_no_strikes_are_refused():
    with pytest.raises(ConfigError, match="progress, literal"):
        SegmentTask(load_shape("semi_cylinder"), reward="fast")
    with pytest.raises(ConfigError, match="at least 1"):
        SegmentTask(load_shape("semi_cylinder"), most_strikes=0)
