"""The T-shaped block: the paper's reward, what is seen of a pose, where episodes start, and the shape itself."""

import mujoco
import numpy as np
import pytest

from rsr.common.rotations import about_z, yaw_error, yaw_of
from rsr.environments.measuring import at_rest
from rsr.scenarios import Channels, Starts, load_scenario
from rsr.scenarios.built_in.push_t import pushing_point, task
from rsr.scenarios.built_in.pushing import blocks, kinematics
from rsr.scenarios.built_in.pushing.arm import CENTRE_M, TIP_HEIGHT_M

TIP = np.array([0.3, 0.0, 0.025])


def pose(x: float = 0.36, y: float = 0.0, yaw_deg: float = 0.0) -> np.ndarray:
    return np.array([x, y, 0.025, *about_z(np.deg2rad(yaw_deg))])


def channels(block: np.ndarray, target: np.ndarray, tip: np.ndarray = TIP) -> Channels:
    """Of an arm at rest; one episode, or several where poses are [B, 7]."""
    poses, goals = np.atleast_2d(block), np.atleast_2d(target)
    count = max(len(poses), len(goals))
    qpos = np.concatenate([poses + np.zeros((count, 1)), np.tile(kinematics.joints_for(tip), (count, 1))], axis=1)
    goal = goals + np.zeros((count, 1))
    starts = Starts(qpos, {"target_position": goal[:, :3], "target_orientation": goal[:, 3:]})
    return at_rest(load_scenario("push_t"), task.TASK, starts)


def behind(block: np.ndarray, target: np.ndarray) -> np.ndarray:
    """The fingertip where a push helps most, in the world."""
    _, goal, turn, _ = task._seen(channels(block, target))
    place, _ = pushing_point.push_from(goal[0], turn[0])
    yaw = yaw_of(block[3:7])
    turned = np.array([[np.cos(yaw), -np.sin(yaw)], [np.sin(yaw), np.cos(yaw)]]) @ place
    return np.array([*(block[:2] + turned), TIP_HEIGHT_M])


def test_reward_is_appendix_b_with_weights_three_and_six_far_from_the_goal():
    far = channels(np.stack([pose(x=0.46), pose(x=0.46, yaw_deg=40)]), pose())
    np.testing.assert_allclose(task.reward(far), [-0.3, -0.3 - 6.0 * np.deg2rad(20)], atol=1e-6)  # half the angle
    same = pose(yaw_deg=40) * [1, 1, 1, -1, -1, -1, -1]  # the other quaternion of the same orientation
    there = task.reward(channels(pose(yaw_deg=40), same))
    np.testing.assert_allclose(there, task.ARRIVAL_WEIGHT, atol=1e-6)


def test_arriving_pays_more_the_nearer_the_block_is():
    blocks = np.stack([pose(), pose(x=0.37), pose(x=0.37, yaw_deg=10), pose(x=0.39, yaw_deg=15)])
    paid = task.reward(channels(blocks, pose()))
    assert (np.diff(paid) < 0).all()


def test_potential_grows_with_every_way_of_coming_nearer():
    target = pose()
    steps = [pose(x=0.46, yaw_deg=50), pose(x=0.40, yaw_deg=50), pose(x=0.40, yaw_deg=20), pose(yaw_deg=20)]
    standing = [task.potential(channels(block, target, behind(block, target)))[0] for block in steps]
    assert standing == sorted(standing)
    assert standing[-1] < task.potential(channels(target, target))[0] == pytest.approx(0.0, abs=1e-6)


def test_at_the_goal_the_finger_is_free_to_go_where_it_likes():
    for tip in (TIP, np.array([0.45, 0.1, 0.025])):
        assert task.potential(channels(pose(), pose(), tip))[0] == pytest.approx(0.0, abs=1e-6)


def test_going_around_the_block_pays_all_the_way():
    """Opposite the pushing point, a straight line would lead through the block: the way is counted around it."""
    bearings = np.deg2rad([180, 150, 120, 90, 60, 30])
    place = np.array([-0.068, 0.0])
    ways = [blocks.way_around(-0.09 * np.array([np.cos(b), np.sin(b)]), place) for b in bearings]
    assert (np.diff(ways) < 0).all()
    assert ways[0] == pytest.approx(np.pi * blocks.ORBIT_M)


@pytest.mark.parametrize(
    ("goal", "turn_deg", "inwards", "side"),
    [
        ([0.1, 0.0], 0, [1, 0], lambda x, y: x < 0),
        ([0.0, 0.1], 0, [0, 1], lambda x, y: y < 0),
        ([0.0, 0.0], 40, [1, 0], lambda x, y: x < 0 and y < -0.03),  # against the stem's end, from the left
        ([0.0, 0.0], -40, [-1, 0], lambda x, y: x > 0 and y < -0.03),
    ],
)
def test_the_place_to_push_from_is_behind_what_has_farthest_to_go(goal, turn_deg, inwards, side):
    place, direction = pushing_point.push_from(np.array(goal), np.deg2rad(turn_deg))
    np.testing.assert_allclose(direction, inwards, atol=1e-9)
    assert side(*place)
    gaps = np.linalg.norm(pushing_point.CONTACT_M - place, axis=1)
    assert gaps.min() == pytest.approx(pushing_point.TIP_GAP_M)


def test_the_nearest_point_of_the_outline_may_be_a_corner_or_on_an_edge():
    tips = np.array([[0.0, 0.06], [0.08, 0.0356], [-0.05, -0.03]])
    expected = [[0.0, -0.0244], [-0.03, 0.0], [0.035, 0.0]]
    np.testing.assert_allclose(pushing_point.nearest(tips), expected, atol=1e-9)


def test_success_is_three_centimetres_and_fifteen_degrees():
    blocks = [pose(), pose(x=0.389), pose(x=0.391), pose(yaw_deg=14.9), pose(yaw_deg=-15.1), pose(0.389, 0, 14)]
    verdicts = [True, True, False, True, False, True]
    np.testing.assert_array_equal(task.succeeded(channels(np.stack(blocks), pose())), verdicts)
    assert task.succeeded(channels(pose(yaw_deg=175), pose(yaw_deg=-175)))[0], "10 degrees apart, the short way"


def test_observation_is_what_its_terms_say():
    block, target = pose(0.36, 0.05, 90), pose(0.40, 0.0, 120)
    seen, columns = task.TASK.observe(channels(block, target))[0], task.TASK.columns
    assert seen.dtype == np.float32
    assert len(seen) == task.TASK.observation_size
    assert len({term.name for term in task.TASK.terms}) == len(task.TASK.terms)
    np.testing.assert_allclose(seen[columns("joints")], kinematics.joints_for(TIP), atol=1e-6)
    np.testing.assert_allclose(seen[columns("block orientation")], block[3:], atol=1e-6)
    # The block is turned by 90 degrees: its x axis points along the world's y axis.
    np.testing.assert_allclose(seen[columns("target")], [-0.05, -0.04], atol=1e-6)
    np.testing.assert_allclose(seen[columns("fingertip")], [-0.05, 0.06], atol=1e-6)
    np.testing.assert_allclose(seen[columns("base of the arm")], [-0.05, 0.36], atol=1e-6)
    turn = seen[columns("sine and cosine of the missing yaw")]
    np.testing.assert_allclose(turn, [np.sin(np.pi / 6), np.cos(np.pi / 6)], atol=1e-6)
    still = columns("fingertip velocity", "block velocity", "block turning", "setpoint from fingertip")
    np.testing.assert_allclose(seen[[*still, *columns("last action from fingertip")]], 0.0, atol=1e-6)


def test_velocities_and_commands_are_seen_along_the_block_s_axes():
    given = dict(channels(pose(yaw_deg=90), pose()))
    turning = np.zeros((1, 6))
    turning[0, 0] = 0.1  # the base's turn moves the fingertip along the world's y axis
    given |= {
        "velocity:joint_position": turning,
        "joint_setpoint": given["joint_position"] + turning,
        "action": turning,
    }
    given |= {"velocity:block_position": np.array([[0.0, 0.2, 0.0]])}
    seen, columns = task.TASK.observe(given)[0], task.TASK.columns
    np.testing.assert_allclose(seen[columns("block velocity")], [0.2, 0.0], atol=1e-6)
    np.testing.assert_allclose(seen[columns("fingertip velocity")], [0.03, 0.0], atol=1e-3)
    np.testing.assert_allclose(seen[columns("setpoint from fingertip")], [0.03, 0.0], atol=2e-3)
    np.testing.assert_allclose(seen[columns("last action from fingertip")], [0.0024, 0.0], atol=1e-4)


def test_turning_the_whole_scene_about_the_base_changes_nothing_that_the_network_sees():
    """What `ActionHead.alone` is for: the columns after the head's own know no direction of the world."""

    def about_the_base(place: np.ndarray, yaw_deg: float) -> np.ndarray:
        at = pose(yaw_deg=yaw_deg + np.rad2deg(yaw_of(place[3:7])))
        angle = np.deg2rad(yaw_deg)
        x, y = np.cos(angle) * place[0] - np.sin(angle) * place[1], np.sin(angle) * place[0] + np.cos(angle) * place[1]
        return np.array([x, y, *at[2:]])

    block, target = pose(0.38, 0.02, 20), pose(0.33, 0.05, 50)
    tip = pose(*TIP[:2])
    views = []
    for yaw_deg in (0, 35):
        moved = [about_the_base(each, yaw_deg) for each in (block, target, tip)]
        views.append(task.TASK.observe(channels(moved[0], moved[1], moved[2][:3]))[0])
    unseen = task.TASK.unseen
    assert np.abs(views[0][:unseen] - views[1][:unseen]).max() > 0.3
    np.testing.assert_allclose(views[0][unseen:], views[1][unseen:], atol=1e-5)


def test_equal_poses_look_equal():
    block = pose(yaw_deg=170)
    other = block * [1, 1, 1, -1, -1, -1, -1]
    seen = [task.TASK.observe(channels(each, pose())) for each in (block, other)]
    np.testing.assert_array_equal(*seen)


def test_starts_are_within_their_ranges_and_clear_of_the_block():
    starts = task.sample_starts(np.random.default_rng(0), 2000)
    block = starts.qpos[:, :7]
    target = np.concatenate([starts.goal["target_position"], starts.goal["target_orientation"]], axis=1)
    begun = at_rest(load_scenario("push_t"), task.TASK, starts)
    assert not task.succeeded(begun).any(), "there is always something to do"
    turn = np.abs(yaw_error(block[:, 3:], target[:, 3:]))
    assert turn.max() <= task.TURN_RAD + 1e-9
    assert turn.mean() == pytest.approx(task.TURN_RAD / 2, rel=0.05)
    assert np.linalg.norm((block - target)[:, :2], axis=1).min() >= 0.04
    assert (np.abs(block[:, :2] - CENTRE_M) <= 0.06).all()
    assert (np.abs(target[:, :2] - CENTRE_M) <= 0.08).all()
    tip = kinematics.fingertip(starts.qpos[:, 7:])
    np.testing.assert_allclose(tip[:, 2], TIP_HEIGHT_M, atol=1e-12)
    farthest = np.linalg.norm(pushing_point.OUTLINE_M, axis=1).max()
    assert np.linalg.norm((tip - block[:, :3])[:, :2], axis=1).min() > farthest + 0.012
    spread = yaw_of(block[:, 3:7])
    assert spread.min() < -3 < 3 < spread.max(), "the block lies any way round"


def test_the_outline_is_the_model_s():
    model = load_scenario("push_t").base_model
    corners = []
    for name in ("bar", "stem"):
        geom = model.geom(name)
        x, y, _ = geom.size
        corners += [np.add(geom.pos[:2], [i * x, j * y]) for i in (-1, 1) for j in (-1, 1)]
    for corner in pushing_point.OUTLINE_M:
        assert np.linalg.norm(np.array(corners) - corner, axis=1).min() < 1e-4
    assert np.abs(model.body("block").ipos).max() < 1e-5, "the body's frame lies in the centre of mass"


def test_pushing_the_stem_s_end_turns_the_block():
    """A check of the contacts by what they do: off the centre of mass, and from both sides."""
    scenario = load_scenario("push_t")
    for side in (-1, 1):
        data = mujoco.MjData(scenario.base_model)
        tip = np.array([0.36 - side * 0.03, -0.055, 0.025])
        data.qpos[:] = [*pose(), *kinematics.joints_for(tip)]
        for step in range(100):
            data.ctrl[:] = kinematics.joints_for(np.add(tip, [side * 0.0006 * step, 0, 0]))
            mujoco.mj_step(scenario.base_model, data)
        assert side * np.rad2deg(yaw_of(data.qpos[3:7])) > 15
        assert data.qpos[2] == pytest.approx(0.025, abs=0.001), "it stays flat on the table"
