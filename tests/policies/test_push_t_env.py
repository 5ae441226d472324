"""The pushing environments with a T: the same code, poses in place of positions, and simulators that differ by copy."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env as gymnasium_check
from stable_baselines3.common.env_checker import check_env as sb3_check

import rsr.environments  # noqa: F401 (registers the environments)
from rsr.common.errors import ConfigError
from rsr.common.rotations import rotated, yaw_of
from rsr.environments.gymnasium import TaskEnv
from rsr.environments.vector import HeadVecEnv, TaskVecEnv
from rsr.scenarios import Scenario, load_scenario
from rsr.scenarios.built_in.push_t.task import TASK
from rsr.scenarios.built_in.pushing import tool_plane


def push_t() -> Scenario:
    return load_scenario("push_t")


def towards_the_block(seen: np.ndarray) -> np.ndarray:
    """Velocities in the world's axes that run the finger into the block beside its middle."""
    tip, orientation = seen[:, TASK.columns("fingertip")], seen[:, TASK.columns("block orientation")]
    return 0.1 - 10 * rotated(tip, yaw_of(orientation))


def test_both_checkers_pass_without_warnings():
    env = gymnasium.make("rsr/push_t-v0").unwrapped
    gymnasium_check(env, skip_render_check=True)
    sb3_check(env)
    assert env.observation_space.shape == (33,)


@pytest.mark.parametrize("noisy", [False, True])
def test_one_copy_of_the_vec_env_goes_the_same_way(noisy):
    """Reward and potential included; the tolerance is explained in test_push_cube_env."""
    late = {"control_delay": 0.034, "table_friction": 0.2}
    single = TaskEnv("push_t", late, noisy=noisy)
    batched = TaskVecEnv(push_t(), push_t().space.vector(late), 1, seed=5, stagger=False, noisy=noisy)
    seen, _ = single.reset(seed=5)
    np.testing.assert_array_equal(batched.reset()[0], seen)
    for step in range(push_t().episode_steps):
        action = tool_plane.displacements(seen[None], towards_the_block(seen[None]))
        seen, reward, _, truncated, info = single.step(action[0])
        others, rewards, dones, infos = batched.step(action)
        assert dones[0] == truncated == (step == push_t().episode_steps - 1)
        other = infos[0]["terminal_observation"] if truncated else others[0]
        np.testing.assert_allclose(other, seen, atol=1e-4)
        np.testing.assert_allclose(rewards[0], reward, atol=5e-3)
    assert infos[0]["is_success"] == info["is_success"]
    batched.close()


def test_potential_adds_up_to_where_an_episode_began_and_ended():
    env = TaskVecEnv(push_t(), push_t().space.nominal, 4, stagger=False, noisy=False)
    env.reset()

    def potential() -> np.ndarray:
        return TASK.potential(env.world.channels)

    first, paid, own = potential(), np.zeros(4), np.zeros(4)
    for _ in range(40):
        seen = env.world.observation()
        paid += env.step(tool_plane.displacements(seen, towards_the_block(seen)))[1]
        own += TASK.reward(env.world.channels)
    np.testing.assert_allclose(paid - own, potential() - first, atol=1e-3)
    assert (np.abs(potential() - first) > 1).all(), "something was done"
    env.close()


def test_the_network_moves_the_finger_along_the_block_s_axes():
    env = TaskVecEnv(push_t(), push_t().space.nominal, 8, seed=5, stagger=False, noisy=False)
    head = HeadVecEnv(env)
    head.reset()
    yaw = yaw_of(env.world.channels["block_orientation"])
    env.world._full[:, 3] += 5.0  # the blocks are out of the way, up in the air
    start = env.world.channels["tip_position"][:, :2]
    head._last = env.world.observation()
    for _ in range(6):
        head.step(np.tile(np.array([0.0, 0.4], np.float32), (8, 1)))
    moved = env.world.channels["tip_position"][:, :2] - start
    along = rotated(moved, -yaw)
    assert (along[:, 1] > 0.012).all()
    np.testing.assert_allclose(along[:, 0], 0.0, atol=0.006)
    env.close()


def test_each_copy_may_have_a_simulator_of_its_own():
    space = push_t().space
    rows = np.stack([space.vector({"table_friction": mu, "control_delay": s}) for mu, s in ((0.5, 0.0), (0.05, 0.1))])
    both = TaskVecEnv(push_t(), rows, 2, stagger=False, noisy=False)
    alone = [TaskVecEnv(push_t(), row, 1, stagger=False, noisy=False) for row in rows]
    both.reset()
    starts = TASK.reset(np.random.default_rng(3), 1).repeated(2)
    both.world.place(np.arange(2), starts)
    for env in alone:
        env.reset()
        env.world.place(np.arange(1), starts.take([0]))
    for _ in range(40):
        seen = both.world.observation()
        action = tool_plane.displacements(seen, towards_the_block(seen))
        both.step(action)
        for i, env in enumerate(alone):
            env.step(action[i : i + 1])
            np.testing.assert_array_equal(env.world.states[0], both.world.states[i])
    assert np.abs(both.world.states[0] - both.world.states[1]).max() > 0.01, "the two go different ways"
    for env in (both, *alone):
        env.close()


def test_parameters_for_another_number_of_copies_are_refused():
    with pytest.raises(ConfigError, match="got 2 rows of parameters for 3 copies; expected one row for all copies"):
        TaskVecEnv(push_t(), np.tile(push_t().space.nominal, (2, 1)), 3)
