"""The T-shaped block: the paper's reward, what is seen of a pose, where episodes start, and the shape itself."""

import mujoco
import numpy as np
import pytest

from rsr.errors import ConfigError
from rsr.scenarios import load_scenario, task_of
from rsr.scenarios.push_t import task
from rsr.scenarios.pushing import kinematics
from rsr.scenarios.pushing.arm import CENTRE_M, TIP_HEIGHT_M
from rsr.scenarios.pushing.pose import quaternion_of, yaw_error, yaw_of

TIP = np.array([0.3, 0.0, 0.025])


def pose(x: float = 0.36, y: float = 0.0, yaw_deg: float = 0.0) -> np.ndarray:
    return np.array([x, y, 0.025, *quaternion_of(np.deg2rad(yaw_deg))])


def test_reward_is_appendix_b_with_weights_three_and_six():
    assert task.reward(TIP, pose(), pose()) == pytest.approx(0.0, abs=1e-6)
    assert task.reward(TIP, pose(), pose(x=0.46)) == pytest.approx(-3.0 * 0.1)
    assert task.reward(TIP, pose(), pose(yaw_deg=40)) == pytest.approx(-6.0 * np.deg2rad(20))  # half the angle
    same = pose(yaw_deg=40) * [1, 1, 1, -1, -1, -1, -1]  # the other quaternion of the same orientation
    assert task.reward(TIP, pose(yaw_deg=40), same) == pytest.approx(0.0, abs=1e-6)


def test_potential_grows_with_every_way_of_coming_nearer():
    target = pose()
    steps = [pose(x=0.46, yaw_deg=50), pose(x=0.40, yaw_deg=50), pose(x=0.40, yaw_deg=20), pose(yaw_deg=20), pose()]
    standing = [task.potential(np.array([*task.push_from(block, target)[0], 0.025]), block, target) for block in steps]
    assert standing == sorted(standing)
    assert standing[-1] == pytest.approx(0.0, abs=1e-9)
    place = task.push_from(pose(x=0.30), target)[0]
    tips = [np.array([place[0] + off, place[1], 0.025]) for off in (0.01, 0.03)]
    near, far = (task.potential(tip, pose(x=0.30), target) for tip in tips)
    assert near > far


@pytest.mark.parametrize(
    ("target", "inwards", "side"),
    [
        (pose(x=0.46), [1, 0], lambda x, y: x < 0),
        (pose(y=0.1), [0, 1], lambda x, y: y < 0),
        (pose(yaw_deg=40), [1, 0], lambda x, y: x < 0 and y < -0.03),  # against the stem's end, from the left
        (pose(yaw_deg=-40), [-1, 0], lambda x, y: x > 0 and y < -0.03),
    ],
)
def test_the_place_to_push_from_is_behind_what_has_farthest_to_go(target, inwards, side):
    place, direction = task.push_from(pose(), target)
    np.testing.assert_allclose(direction, inwards, atol=1e-9)
    assert side(*(place - pose()[:2]))
    gaps = np.linalg.norm(task.CONTACT_M + pose()[:2] - place, axis=1)
    assert gaps.min() == pytest.approx(task.TIP_GAP_M)


def test_success_is_three_centimetres_and_fifteen_degrees():
    blocks = [pose(), pose(x=0.389), pose(x=0.391), pose(yaw_deg=14.9), pose(yaw_deg=-15.1), pose(0.389, 0, 14)]
    verdicts = [True, True, False, True, False, True]
    np.testing.assert_array_equal(task.succeeded(np.stack(blocks), pose()), verdicts)
    assert task.succeeded(pose(yaw_deg=175), pose(yaw_deg=-175)), "10 degrees apart, the short way"


def test_observation_is_what_its_terms_say():
    joints, block, target = kinematics.joints_for(TIP), pose(0.36, 0.05, 90), pose(0.40, 0.0, 120)
    seen, columns = task.observation(joints, block, target), task.TASK.columns
    assert seen.dtype == np.float32
    assert len(seen) == task.TASK.observation_size == 39
    assert len({term.name for term in task.TASK.terms}) == len(task.TASK.terms)
    np.testing.assert_allclose(seen[columns("fingertip")], TIP, atol=1e-6)
    np.testing.assert_allclose(seen[columns("block", "block orientation")], block, atol=1e-6)
    np.testing.assert_allclose(seen[columns("target", "target orientation")], target, atol=1e-6)
    # The block is turned by 90 degrees: its x axis points along the world's y axis.
    np.testing.assert_allclose(seen[columns("target from block")], [-0.05, -0.04], atol=1e-6)
    np.testing.assert_allclose(seen[columns("fingertip from block")], [-0.05, 0.06], atol=1e-6)
    turn = seen[columns("sine and cosine of the missing yaw")]
    np.testing.assert_allclose(turn, [np.sin(np.pi / 6), np.cos(np.pi / 6)], atol=1e-6)


def test_equal_poses_look_equal():
    joints, block = kinematics.joints_for(TIP), pose(yaw_deg=170)
    other = block * [1, 1, 1, -1, -1, -1, -1]
    np.testing.assert_array_equal(task.observation(joints, block, pose()), task.observation(joints, other, pose()))


def test_starts_are_within_their_ranges_and_clear_of_the_block():
    starts = task.sample_starts(np.random.default_rng(0), 2000)
    block, target = starts.qpos[:, :7], starts.target
    assert target.shape == (2000, 7)
    assert not task.succeeded(block, target).any(), "there is always something to do"
    turn = np.abs(yaw_error(block, target))
    assert turn.max() <= task.TURN_RAD + 1e-9
    assert turn.mean() == pytest.approx(task.TURN_RAD / 2, rel=0.05)
    assert np.linalg.norm((block - target)[:, :2], axis=1).min() >= 0.04
    assert (np.abs(block[:, :2] - CENTRE_M) <= 0.06).all()
    assert (np.abs(target[:, :2] - CENTRE_M) <= 0.08).all()
    tip = kinematics.fingertip(starts.qpos[:, 7:])
    np.testing.assert_allclose(tip[:, 2], TIP_HEIGHT_M, atol=1e-12)
    farthest = np.linalg.norm(task.OUTLINE_M, axis=1).max()
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
    for corner in task.OUTLINE_M:
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


def test_scenarios_without_a_task_say_so():
    assert task_of(load_scenario("push_t")) is task.TASK
    with pytest.raises(
        ConfigError, match="got scenario cube_toss, which has no task to learn; expected one of push_cube"
    ):
        task_of(load_scenario("cube_toss"))
