import os
import re
import subprocess
import sys
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env as gymnasium_check
from stable_baselines3.common.env_checker import check_env as sb3_check

import rsr.environments  # noqa: F401 (registers the environment)
from rsr.common.errors import ScenarioError
from rsr.environments.gymnasium import TaskEnv
from rsr.environments.vector import TaskVecEnv
from rsr.scenarios.built_in.push_cube import task
from tests.push_samples import ScriptedPusher, push_cube

ROOT = Path(__file__).parents[2]
LATE = {"control_delay": 0.034, "cube_mass": 0.3, "table_friction": 0.2}


def pushed(env: TaskEnv, seen: np.ndarray) -> list[tuple]:
    """Everything that an episode returns, step by step."""
    steps = []
    for _ in range(push_cube().episode_steps):
        steps.append(env.step(ScriptedPusher().act(seen[None])[0]))
        seen = steps[-1][0]
    return steps


def test_both_checkers_pass_without_warnings():
    """Warnings are errors here. Rendering needs OpenGL and is tested in a process of its own."""
    env = gymnasium.make("rsr/push_cube-v0").unwrapped
    gymnasium_check(env, skip_render_check=True)
    sb3_check(env)
    assert env.action_space == gymnasium.spaces.Box(-1, 1, (6,), np.float32)
    assert env.observation_space.shape == (37,)
    assert env.observation_space.dtype == np.float32


def test_made_with_parameters():
    env = gymnasium.make("rsr/push_cube-v0", parameters=LATE, noisy=False)
    first, _ = env.reset(seed=1)
    again, _ = env.reset(seed=1)
    np.testing.assert_array_equal(first, again)
    assert env.spec is not None
    env.close()
    with pytest.raises(ScenarioError, match="got cube_mass = 9 kg"):
        gymnasium.make("rsr/push_cube-v0", parameters={"cube_mass": 9.0})


def test_episode_is_truncated_and_tells_success():
    env = TaskEnv("push_cube")
    seen, info = env.reset(seed=0)
    assert info == {"is_success": False}
    steps = pushed(env, seen)
    assert [truncated for *_, truncated, _ in steps] == [False] * 99 + [True]
    assert not any(terminated for _, _, terminated, _, _ in steps)
    start = task.sample_starts(np.random.default_rng(0), 1)
    start.qpos[0, :3] = start.goal["target_position"][0]
    env.place(start)
    assert env.step(np.zeros(6))[-1] == {"is_success": True}


@pytest.mark.parametrize("noisy", [False, True])
def test_one_copy_of_the_vec_env_goes_the_same_way(noisy):
    """Two ways through MuJoCo, one physics.

    The batched world begins every control step without the solver's warm start, which at a tolerance of 1e-10 leaves
    1e-8 (measured, over a whole push); contact may amplify that, and float32 observations round at 1e-7. The sensors
    are seeded alike.
    """
    single = TaskEnv("push_cube", LATE, noisy=noisy)
    batched = TaskVecEnv(push_cube(), push_cube().space.vector(LATE), 1, seed=5, stagger=False, noisy=noisy)
    seen, _ = single.reset(seed=5)
    np.testing.assert_array_equal(batched.reset()[0], seen)
    for step in range(push_cube().episode_steps):
        action = ScriptedPusher().act(seen[None])
        seen, reward, _, truncated, info = single.step(action[0])
        others, rewards, dones, infos = batched.step(action)
        assert dones[0] == truncated == (step == push_cube().episode_steps - 1)
        other = infos[0]["terminal_observation"] if truncated else others[0]
        np.testing.assert_allclose(other, seen, atol=1e-5)
        np.testing.assert_allclose(rewards[0], reward, atol=1e-4)
    assert infos[0]["is_success"] == info["is_success"]
    batched.close()


def test_every_copy_goes_the_way_of_a_single_env():
    """From the same starts, without noise; the tolerance is explained above."""
    starts = task.sample_starts(np.random.default_rng(8), 3)
    with_world = TaskVecEnv(push_cube(), push_cube().space.vector(LATE), 3, stagger=False, noisy=False)
    with_world.reset()
    with_world.world.place(np.arange(3), starts)
    singles = [TaskEnv("push_cube", LATE, noisy=False) for _ in range(3)]
    for i, env in enumerate(singles):
        env.reset()
        env.place(starts.take([i]))
    seen = with_world.world.observation()
    for _ in range(60):
        action = ScriptedPusher().act(seen)
        seen, rewards, _, _ = with_world.step(action)
        for i, env in enumerate(singles):
            alone, reward, *_ = env.step(action[i])
            np.testing.assert_allclose(alone, seen[i], atol=1e-5)
            np.testing.assert_allclose(reward, rewards[i], atol=1e-4)
    assert (np.linalg.norm(with_world.world.channels["block_position"] - starts.qpos[:, :3], axis=1) > 0.02).all(), (
        "with contact"
    )
    with_world.close()


def test_noise_is_in_the_observation_and_not_in_the_reward():
    clear, noisy = TaskEnv("push_cube", noisy=False), TaskEnv("push_cube", noisy=True)
    true, _ = clear.reset(seed=2)
    measured, _ = noisy.reset(seed=2)
    joints, block = measured[:6] - true[:6], measured[12:15] - true[12:15]
    assert 0 < np.abs(joints).max() < 0.01
    assert 0 < np.abs(block).max() < 0.005
    np.testing.assert_array_equal(measured[9:12], true[9:12])
    assert clear.step(np.zeros(6))[1] == noisy.step(np.zeros(6))[1]


_PICTURE = """
import warnings
warnings.simplefilter("error")
import gymnasium
from gymnasium.utils.env_checker import check_env
import rsr.environments
from rsr.common.errors import ConfigError
env = gymnasium.make("rsr/push_cube-v0", render_mode="rgb_array")
env.reset(seed=3)
try:
    picture = env.render()
except ConfigError as error:
    print(error)
else:
    check_env(env.unwrapped)
    print(picture.shape, picture.dtype, picture.std() > 10)
env.close()
env.close()
"""


@pytest.mark.parametrize("backend", ["egl", "glfw"])
def test_picture_or_a_clear_error(backend):
    """In a process of its own, as MuJoCo chooses its OpenGL when it is imported. What a machine has, nobody knows."""
    environment = {**os.environ, "MUJOCO_GL": backend, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", _PICTURE]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if not done.stdout and "mujoco/__init__.py" in done.stderr:
        pytest.skip(f"MuJoCo cannot be imported with MUJOCO_GL={backend} on this machine")
    picture = r"\(480, 640, 3\) uint8 True"
    error = (
        r"render_mode 'rgb_array': got no offscreen OpenGL \(\w+\); expected a display, or MuJoCo's backend 'egl' or "
        r"'osmesa'\. Set MUJOCO_GL=egl \(or osmesa\) before Python starts; everything but pictures works without\."
    )
    assert re.fullmatch(f"{picture}|{error}", done.stdout.strip()), done.stderr


def test_without_a_render_mode_there_is_no_picture():
    assert TaskEnv("push_cube").render() is None
