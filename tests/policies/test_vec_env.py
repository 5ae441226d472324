"""The contract that Stable-Baselines3 has with a vectorised environment, and what is paid in it."""

from dataclasses import replace

import numpy as np
import pytest
from stable_baselines3.common.vec_env import DummyVecEnv

from rsr.common.rotations import about_z, product, rotated
from rsr.environments.gymnasium import TaskEnv
from rsr.environments.novelty import bonus_features, bonus_of
from rsr.environments.vector import HeadVecEnv, TaskVecEnv
from rsr.infogap import RewardSettings, fit_infogap, transitions
from rsr.scenarios.built_in.push_cube import task
from rsr.scenarios.built_in.push_t import task as push_t
from rsr.scenarios.built_in.pushing import arm, tool_plane
from rsr.scenarios.built_in.pushing.limits import ArmLimits
from tests.push_samples import ScriptedPusher, channels_of, push_cube

EVERYWHERE = RewardSettings(bonus_region="everywhere")


@pytest.fixture
def make():
    opened = []

    def build(count=3, **options) -> TaskVecEnv:
        opened.append(TaskVecEnv(push_cube(), push_cube().space.nominal, count, **options))
        return opened[-1]

    yield build
    for env in opened:
        env.close()


def features(world) -> np.ndarray:
    """What a bonus looks at, of the true state."""
    return bonus_features(world.task, world.limits, world.channels)


def still(count: int) -> np.ndarray:
    return np.zeros((count, 6), np.float32)


def test_types_and_shapes_are_those_of_the_dummy(make):
    ours, dummy = make(2), DummyVecEnv([lambda: TaskEnv("push_cube")] * 2)
    assert ours.observation_space == dummy.observation_space
    assert ours.action_space == dummy.action_space
    first, second = ours.reset(), dummy.reset()
    assert (first.shape, first.dtype) == (second.shape, second.dtype)
    for ours_part, dummy_part in zip(ours.step(still(2)), dummy.step(still(2)), strict=True):
        assert type(ours_part) is type(dummy_part)
        if isinstance(ours_part, np.ndarray):
            assert (ours_part.shape, ours_part.dtype) == (dummy_part.shape, dummy_part.dtype)
    assert ours.get_attr("render_mode") == [None, None]
    assert ours.env_is_wrapped(DummyVecEnv, indices=[0]) == [False]
    assert ours.seed(4) == [4, 4]
    with pytest.raises(NotImplementedError):
        ours.env_method("render")


def test_an_ended_episode_is_reported_and_begun_anew(make):
    env = make(3, stagger=False, noisy=False, seed=1)
    seen, paid = env.reset(), np.zeros(3)
    targets = seen[:, 9:12].copy()
    for step in range(push_cube().episode_steps):
        before = seen
        seen, reward, done, infos = env.step(ScriptedPusher().act(seen))
        paid += reward
        assert done.tolist() == [step == push_cube().episode_steps - 1] * 3
    for i, info in enumerate(infos):
        last = info["terminal_observation"]
        assert info["TimeLimit.truncated"] is True
        np.testing.assert_array_equal(last[9:12], targets[i])
        assert np.abs(last - before[i]).max() < 0.2, "one step after the one before, not a new start"
        assert np.abs(last - seen[i]).max() > 0.01, "what is returned belongs to the new episode"
        assert info["episode"]["l"] == push_cube().episode_steps
        assert info["episode"]["r"] == pytest.approx(paid[i], rel=1e-5)
        assert info["is_success"] == bool(task.succeeded(channels_of(None, last[None, 12:15], last[None, 9:12]))[0])
    np.testing.assert_allclose(env.world.states[:, 13:], 0.0)
    np.testing.assert_allclose(env.world.command, env.world.channels["joint_position"])
    assert env.step(still(3))[3] == [{}, {}, {}]


def test_staggered_copies_end_at_different_times(make):
    env = make(16, seed=2)
    env.reset()
    ended = np.concatenate([np.flatnonzero(env.step(still(16))[2]) for _ in range(push_cube().episode_steps)])
    assert sorted(ended) == list(range(16))
    first_end = [step for step in range(push_cube().episode_steps) if env.step(still(16))[2].any()]
    assert len(first_end) > 8


def test_reward_is_the_tasks_reward_of_the_true_state(make):
    env = make(4, seed=3)
    env.reset()
    _, reward, _, _ = env.step(still(4))
    block, target = env.world.states[:, :3], env.world.goal["target_position"]
    expected = task.reward(channels_of(env.world.states[:, 7:13], block, target))
    np.testing.assert_allclose(reward, expected, rtol=1e-6)


def test_seeds(make):
    def course(env: TaskVecEnv) -> np.ndarray:
        first = env.reset()
        return np.stack([first, *(env.step(ScriptedPusher().act(first))[0] for _ in range(5))])

    same, again, other = make(seed=6), make(seed=6, threads=1), make(seed=7)
    np.testing.assert_array_equal(course(same), course(again))
    assert not np.array_equal(course(other), course(again))
    same.seed(9)
    again.seed(9)
    np.testing.assert_array_equal(course(same), course(again))


def test_actions_beyond_the_box_are_clipped(make):
    first, second = make(seed=1), make(seed=1)
    first.reset()
    second.reset()
    wild = np.full((3, 6), 5.0, np.float32)
    np.testing.assert_array_equal(first.step(wild)[0], second.step(np.ones((3, 6), np.float32))[0])


def test_bonus_is_paid_on_top(make):
    received = []

    def bonus(observation, action, after):
        received.append((observation.copy(), action.copy(), after.copy()))
        return 10.0 + action[:, 0]

    plain, paid = make(seed=4), make(seed=4, bonus=bonus)
    start = plain.reset()
    true_start = features(plain.world)
    np.testing.assert_array_equal(paid.reset(), start)
    action = ScriptedPusher().act(start)
    seen, reward, *_ = plain.step(action)
    _, more, *_ = paid.step(action)
    np.testing.assert_allclose(more - reward, 10.0 + action[:, 0], rtol=1e-5)
    assert np.abs(seen - plain.world.observation()).max() > 1e-4, "the learner sees through noise, the bonus does not"
    for got, expected in zip(received[0], (true_start, action, features(plain.world)), strict=True):
        np.testing.assert_array_equal(got, expected)


def test_a_snapshot_goes_on_to_the_same_numbers(make):
    first, second = make(seed=4), make(seed=99)
    head_first, head_second = HeadVecEnv(first), HeadVecEnv(second)
    head_first.reset()
    head_second.reset()
    towards = np.array([[0.5, -0.2]] * 3, np.float32)
    for _ in range(40):
        head_first.step(towards)
    head_second.restore({name: array.copy() for name, array in head_first.snapshot().items()})
    for _ in range(push_cube().episode_steps):
        for ours, theirs in zip(head_first.step(towards), head_second.step(towards), strict=True):
            if isinstance(ours, np.ndarray):
                np.testing.assert_array_equal(ours, theirs)


def test_tool_plane_moves_the_fingertip_level_and_as_told(make):
    env = make(8, stagger=False, noisy=False, seed=5)
    head = HeadVecEnv(env)
    assert head.action_space.shape == (2,)
    seen = head.reset()
    start, way = seen[:, 6:9], seen[:, task.TASK.columns("target - block")]
    env.world._full[:, 3] += 5.0  # the cubes are out of the way, up in the air
    velocity = np.array([[0.0, 0.5]] * 8, np.float32)
    heights = [head.step(velocity)[0][:, 8] for _ in range(12)]
    moved = rotated((env.world.channels["tip_position"] - start)[:, :2], -np.arctan2(way[:, 1], way[:, 0]))
    expected_m = 0.5 * tool_plane.SPEED_M_S * 12 * tool_plane.STEP_S
    np.testing.assert_allclose(moved[:, 1], expected_m, rtol=0.35)  # servos trail their setpoints
    np.testing.assert_allclose(moved[:, 0], 0.0, atol=0.01)
    np.testing.assert_allclose(heights, arm.TIP_HEIGHT_M, atol=0.004)


def test_infogap_pays_no_premium_far_from_the_workspace():
    rng, limits = np.random.default_rng(0), ArmLimits()
    starts = task.TASK.reset(rng, 400)
    joints, block, target = starts.qpos[:, 7:], starts.qpos[:, :3], starts.goal["target_position"]
    action = rng.uniform(-1, 1, (400, 6))
    moved = block + rng.normal(0, 0.01, block.shape)

    def looked_at(block: np.ndarray) -> np.ndarray:
        return bonus_features(task.TASK, limits, channels_of(joints, block, target))

    before, after = looked_at(block), looked_at(moved)
    data = transitions(before[:, :4], action, after[:, :4])
    shift = data + np.eye(14)[-1] * 0.02
    reward = fit_infogap(shift, data, data, 0.001, task_reward_std=0.1, rng=rng, settings=EVERYWHERE)
    assert reward.weight > 0
    pay = bonus_of(reward)
    np.testing.assert_allclose(pay(before, action, after), reward.bonus(data), rtol=1e-4, atol=5e-5 * reward.weight)
    flung = np.add(moved, [1.0, 0.0, 0.0])
    unbounded = reward.bonus(np.concatenate([data[:, :12], data[:, 12:] + [1.0, 0.0]], axis=1))
    assert (unbounded > 0).mean() > 0.9, "as novelty it would be paid for"
    assert (pay(before, action, looked_at(flung)) <= 0).all()


@pytest.mark.parametrize(
    ("of", "off_m", "turn_rad", "share"),
    [
        (task, 0.02, 0.0, 0.0),
        (task, 0.045, 0.0, 0.5),
        (task, 0.10, 0.0, 1.0),
        (push_t, 0.02, 0.0, 0.0),
        (push_t, 0.02, np.radians(22.5), 0.5),
        (push_t, 0.02, np.radians(40), 1.0),
        (push_t, 0.06, np.radians(22.5), 1.0),
    ],
)
def test_infogap_leaves_the_end_of_the_task_alone(of, off_m, turn_rad, share):
    """Paid `off_target`: nothing within what counts as success, all from twice as far; of a T the angle counts, too."""
    rng, turns = np.random.default_rng(0), of is push_t
    starts = of.TASK.reset(rng, 400)
    block = starts.qpos[:, : 7 if turns else 3]
    target = block.copy()
    target[:, 0] += off_m
    if turns:
        target[:, 3:7] = product(about_z(np.full(400, turn_rad)), block[:, 3:7])
    seen = bonus_features(of.TASK, ArmLimits(), channels_of(starts.qpos[:, 7:], block, target))
    action = rng.uniform(-1, 1, (400, 6))
    data = transitions(seen[:, :-2], action, seen[:, :-2])
    data = data + rng.normal(0, 0.01, data.shape)
    everywhere = fit_infogap(data + 0.02, data, data, 0.001, task_reward_std=0.1, rng=rng, settings=EVERYWHERE)
    paid, all_of_it = (
        bonus_of(each)(seen, action, seen) for each in (replace(everywhere, bonus_region="off_target"), everywhere)
    )
    assert np.abs(all_of_it).max() > 0
    np.testing.assert_allclose(paid, share * all_of_it, atol=1e-5)
