"""One copy of a scenario as a Gymnasium environment, stepped with plain `mj_step`.

For trying things out and for other people's learners; our own training uses the batched `TaskVecEnv`. What is
observed, rewarded and counted as success is the scenario's task in both. The physics is called here in the most
obvious way, so that each checks the other.

    import gymnasium
    import rsr.environments  # registers rsr/<scenario>-v0 for each built-in scenario with a task

    env = gymnasium.make("rsr/<scenario>-v0", parameters={"joint_damping": 2.0})
    env = TaskEnv("my_arm/scenario.yaml")
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import gymnasium
import mujoco
import numpy as np
from gymnasium.spaces import Box

from rsr.common import ConfigError
from rsr.environments.measuring import Measuring
from rsr.environments.task_trial import tried_task
from rsr.scenarios import (
    OBSERVATION_LIMIT,
    Channels,
    Scenario,
    Starts,
    Task,
    Value,
    limits_of,
    load_scenario,
    rest_command,
    steady_activations,
)
from rsr.simulators import EffectStepper, SentCommands

_IMAGE_HEIGHT, _IMAGE_WIDTH = 480, 640
_MARKER_M = 0.015
_MARKER_RGBA = np.array([0.15, 0.7, 0.3, 0.5], np.float32)


def observation_space(task: Task) -> Box:
    """The task's terms. The bound is out of reach: nothing is flung that far in one episode."""
    return Box(-OBSERVATION_LIMIT, OBSERVATION_LIMIT, (task.observation_size,), np.float32)


def action_space(task: Task) -> Box:
    """The task's action, in -1..1."""
    return Box(-1.0, 1.0, (task.action.size,), np.float32)


class TaskEnv(gymnasium.Env[np.ndarray, np.ndarray]):
    """A scenario's task. Episodes are truncated after `episode_steps`; only the task's failure ends one early.

    Args:
        parameters: of the simulator; those left out keep their nominal value.
        scenario: name or path, or a scenario.
        noisy: observe as the sensors show it, with their noise, delay, gain and bias; the reward sees the true state.
        render_mode: "rgb_array" or None.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 20}  # noqa: RUF012 (Gymnasium's own convention)

    def __init__(
        self,
        scenario: str | Scenario,
        parameters: Mapping[str, float] | None = None,
        noisy: bool = True,
        render_mode: str | None = None,
    ) -> None:
        self._scenario = scenario = load_scenario(scenario) if isinstance(scenario, str) else scenario
        self.task = tried_task(scenario)
        self._limits = limits_of(scenario, self.task)
        self.observation_space = observation_space(self.task)
        self.action_space = action_space(self.task)
        self.render_mode = render_mode
        self._values = values = scenario.space.vector(parameters or {})
        self._model = scenario.model(values, pictures=render_mode is not None)
        self._data = mujoco.MjData(self._model)
        self._effects = EffectStepper(scenario, self._model, values) if scenario.exerts_effects else None
        self._sent = SentCommands(scenario, values, 1)
        self._noisy = noisy
        self._true = self._seen = Measuring(scenario, self.task, 1)
        self.goal: dict[str, np.ndarray] = {}
        self.action = np.zeros((1, self.task.action.size))
        self._channels: Channels = {}
        self._age = 0
        self._renderer: mujoco.Renderer | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self._true = Measuring(self._scenario, self.task, 1)
        rng = self.np_random if self._noisy else None
        self._seen = Measuring(self._scenario, self.task, 1, rng, self._values)
        if self._scenario.draws_settings:
            self._sent.seed = int(self.np_random.integers(2**31))
        return self.place(self.task.reset(self.np_random, 1)), self._info()

    def place(self, starts: Starts) -> np.ndarray:
        """Begin an episode at rest at the first of these starts; returns the first observation."""
        mujoco.mj_resetData(self._model, self._data)
        self._data.qpos[:] = starts.qpos[0]
        rest = rest_command(self._scenario.base_model, starts.qpos[[0]])
        self._sent.hold(np.arange(1), rest if starts.command is None else starts.command[:1])
        self._data.act[:] = steady_activations(self._model, self._sent.newest)[0]
        self._forward()
        self.goal = {name: values[:1].copy() for name, values in starts.goal.items()}
        self.action = np.zeros((1, self.task.action.size))
        everyone = np.arange(1)
        self._channels = self._true.first(self, everyone)
        self._age = 0
        return self.task.observe(self._seen.first(self, everyone))[0]

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self.action = np.clip(np.asarray(action, float)[None], -1.0, 1.0)
        wanted = self.task.action.command(self.action, self.command, self._channels)
        before = self._value_of(self.task.potential)
        sent = self._limits.allowed(wanted, self.command, self._channels, self._scenario.control_dt_s)
        self._sent.send(sent)
        self._advance(self._sent.in_force()[0])
        self._channels = self._true(self)
        self._age += 1
        reward = self._value_of(self.task.reward) + self._value_of(self.task.potential) - before
        failed = bool(self.task.failure is not None and self.task.failure(self._channels)[0])
        seen = self.task.observe(self._seen(self))[0]
        return seen, reward, failed, self._age >= self._scenario.episode_steps, self._info()

    @property
    def sensordata(self) -> np.ndarray:
        """[1, nsensordata], of MuJoCo's sensors at the present state."""
        self._forward()
        return self._data.sensordata[None].copy()

    @property
    def states(self) -> np.ndarray:
        """[1, nq + nv]."""
        return np.concatenate([self._data.qpos, self._data.qvel])[None]

    @property
    def command(self) -> np.ndarray:
        """[1, nu], the newest command."""
        return self._sent.newest

    def render(self) -> np.ndarray | None:  # type: ignore[override]
        """The scene from its first camera [480, 640, 3] uint8, or from MuJoCo's own where it has none."""
        if self.render_mode is None:
            return None
        renderer = self._renderer = self._renderer or _open_renderer(self._model)
        renderer.update_scene(self._data, camera=0 if self._model.ncam else -1)
        for name, values in self.goal.items():
            if name.endswith("position") and values.shape[1] == 3:
                _mark(renderer.scene, values[0])
        return renderer.render()

    def close(self) -> None:
        if self._renderer is not None:
            self._renderer.close()
            self._renderer = None

    def _advance(self, controls: np.ndarray) -> None:
        """Advance by one physics step for each row of controls [N, nu + C]."""
        if self._effects is not None:
            self._effects.control_step(self._data, controls)
            return
        for control in controls:
            self._data.ctrl[:] = control[: self._model.nu]
            mujoco.mj_step(self._model, self._data)

    def _forward(self) -> None:
        if self._effects is not None:
            self._effects.forward(self._data, self._sent.in_force()[0, -1])
        else:
            mujoco.mj_forward(self._model, self._data)

    def _value_of(self, function: Value | None) -> float:
        return 0.0 if function is None else float(function(self._channels)[0])

    def _info(self) -> dict[str, Any]:
        return {"is_success": bool(self.task.succeeded(self._channels)[0])}


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


def _mark(scene: mujoco.MjvScene, place: np.ndarray) -> None:
    """Add a ball that is in the picture only."""
    size = np.full(3, _MARKER_M)
    ball = mujoco.mjtGeom.mjGEOM_SPHERE
    mujoco.mjv_initGeom(scene.geoms[scene.ngeom], ball, size, place, np.eye(3).ravel(), _MARKER_RGBA)
    scene.ngeom += 1
