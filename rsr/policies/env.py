"""One copy of a pushing scene as a Gymnasium environment, stepped with plain `mj_step`.

For trying things out and for other people's learners; our own training uses the batched `PushVecEnv`. What is
seen, paid and counted as success is the scenario's task in both. The physics is called here in the most
obvious way, so that each checks the other.

    import gymnasium
    import rsr.policies  # registers rsr/PushCube-v0 and rsr/PushT-v0

    env = gymnasium.make("rsr/PushCube-v0", parameters={"table_friction": 0.1})
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import gymnasium
import mujoco
import numpy as np
from gymnasium.spaces import Box

from rsr.errors import ConfigError
from rsr.policies.world import LIMITS, MeasurementNoise
from rsr.scenarios import load_scenario, task_of
from rsr.scenarios.pushing import Starts, Task, kinematics
from rsr.scenarios.pushing.arm import ACTION_SIZE, next_setpoint
from rsr.scenarios.pushing.task import OBSERVATION_LIMIT, Reward
from rsr.simulators import delay_weights

_IMAGE_HEIGHT, _IMAGE_WIDTH = 480, 640
_MARKER_RGBA = np.array([0.15, 0.7, 0.3, 0.5], np.float32)


def observation_space(task: Task) -> Box:
    """The task's terms, in rad and m. The bound is out of reach: nothing is flung that far in one episode."""
    return Box(-OBSERVATION_LIMIT, OBSERVATION_LIMIT, (task.observation_size,), np.float32)


def action_space() -> Box:
    """Six joint displacements, in units of `arm.STEP_RAD`."""
    return Box(-1.0, 1.0, (ACTION_SIZE,), np.float32)


class PushEnv(gymnasium.Env[np.ndarray, np.ndarray]):
    """Push a block to a random target. Episodes are truncated after `episode_steps`; none ends early.

    Args:
        parameters: of the simulator; those left out keep their nominal value.
        noisy: observe through the scenario's sensor noise; the reward sees the true state.
        render_mode: "rgb_array" or None.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 20}  # noqa: RUF012 (Gymnasium's own convention)

    def __init__(
        self,
        parameters: Mapping[str, float] | None = None,
        scenario: str = "push_cube",
        noisy: bool = True,
        render_mode: str | None = None,
    ) -> None:
        self._scenario = load_scenario(scenario)
        self._task = task_of(self._scenario)
        self.observation_space = observation_space(self._task)
        self.action_space = action_space()
        self.render_mode = render_mode
        values = self._scenario.space.vector(parameters or {})
        self._model = self._scenario.model(values)
        self._data = mujoco.MjData(self._model)
        self._weights = delay_weights(
            self._scenario.delay_s(values),
            self._scenario.control_dt_s,
            self._scenario.substeps,
            self._scenario.history_steps,
        )
        self._noisy = noisy
        self._noise: MeasurementNoise | None = None
        self._commands = np.zeros((self._scenario.history_steps + 1, self._model.nu))  # newest first
        self._target = np.zeros(self._task.block_size)
        self._age = 0
        self._renderer: mujoco.Renderer | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self._noise = MeasurementNoise(self._scenario, self.np_random) if self._noisy else None
        self.place(self._task.sample_starts(self.np_random, 1))
        return self._observation(), self._info()

    def place(self, starts: Starts) -> None:
        """Begin an episode at rest at the first of these starts."""
        mujoco.mj_resetData(self._model, self._data)
        self._data.qpos[:] = starts.qpos[0]
        mujoco.mj_forward(self._model, self._data)
        self._commands[:] = self._joints
        self._target = starts.target[0].copy()
        self._age = 0

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        wanted = next_setpoint(self._commands[0], self._joints, action)
        dt_s = self._scenario.control_dt_s
        before = self._paid_for(self._task.potential)
        (setpoint,) = LIMITS.allowed(wanted[None], self._commands[:1], self._block[None], dt_s)
        self._commands = np.concatenate([setpoint[None], self._commands[:-1]])
        for control in self._weights @ self._commands:
            self._data.ctrl[:] = control
            mujoco.mj_step(self._model, self._data)
        self._age += 1
        reward = self._paid_for(self._task.reward) + self._paid_for(self._task.potential) - before
        return self._observation(), reward, False, self._age >= self._scenario.episode_steps, self._info()

    def render(self) -> np.ndarray | None:  # type: ignore[override]
        """The scene from the camera `overview` [480, 640, 3] uint8, the target as a green ball."""
        if self.render_mode is None:
            return None
        renderer = self._renderer = self._renderer or _open_renderer(self._model)
        renderer.update_scene(self._data, camera="overview")
        _mark(renderer.scene, self._target, self._task.success_m / 2)
        return renderer.render()

    def close(self) -> None:
        if self._renderer is not None:
            self._renderer.close()
            self._renderer = None

    @property
    def _joints(self) -> np.ndarray:
        return self._data.qpos[7:13]

    @property
    def _block(self) -> np.ndarray:
        return self._data.qpos[: self._task.block_size]

    def _paid_for(self, function: Reward | None) -> float:
        if function is None:
            return 0.0
        return float(function(kinematics.fingertip(self._joints), self._block, self._target))

    def _observation(self) -> np.ndarray:
        joints, block = self._joints, self._block
        if self._noise is not None:
            joints, (block,) = self._noise.joints(joints), self._noise.block(block[None])
        return self._task.observation(joints, block, self._target)

    def _info(self) -> dict[str, Any]:
        return {"is_success": bool(self._task.succeeded(self._block, self._target))}


def _open_renderer(model: mujoco.MjModel) -> mujoco.Renderer:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # GLFW warns of what the error below says
            return mujoco.Renderer(model, _IMAGE_HEIGHT, _IMAGE_WIDTH)
    except Exception as error:  # every OpenGL backend fails with a type of its own
        raise ConfigError(
            got=f"no offscreen OpenGL ({type(error).__name__})",
            expected="a display, or MuJoCo's backend 'egl' or 'osmesa'",
            where="render_mode 'rgb_array'",
            next_step="Set MUJOCO_GL=egl (or osmesa) before Python starts; everything but pictures works without.",
        ) from error


def _mark(scene: mujoco.MjvScene, target: np.ndarray, radius_m: float) -> None:
    """Add a ball that is in the picture only."""
    size = np.full(3, radius_m)
    ball = mujoco.mjtGeom.mjGEOM_SPHERE
    mujoco.mjv_initGeom(scene.geoms[scene.ngeom], ball, size, target[:3], np.eye(3).ravel(), _MARKER_RGBA)
    scene.ngeom += 1
