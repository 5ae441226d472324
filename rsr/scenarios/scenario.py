"""A robot problem: an MJCF scene, its channels, its tunable parameters, and how recordings map onto states."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import mujoco
import numpy as np

from rsr.errors import ConfigError
from rsr.scenarios.bindings import Binding, refresh_constants
from rsr.scenarios.collision import Collision
from rsr.scenarios.metrics import Evaluation
from rsr.scenarios.parameters import ParameterSpace
from rsr.scenarios.smoothing import noise_left, smooth
from rsr.sessions import Channel, Episode

Kind = Literal["linear", "angle", "quaternion"]


@dataclass(frozen=True)
class Observed:
    """A channel that reads simulator coordinates, and how precisely the lab measures it.

    Args:
        qpos: indices into qpos, one a column.
        dofs: indices into qvel of the same joint coordinates.
        kind: how differences are taken; "quaternion" ones are rotation vectors in rad.
        noise: standard deviation of the measurement, in the channel's unit (rad for quaternions).
        zero_std: how far the sensor's zero differs from episode to episode, standard deviation; 0 if it does not.
    """

    channel: Channel
    qpos: tuple[int, ...]
    dofs: tuple[int, ...]
    kind: Kind
    noise: float
    zero_std: float = 0.0

    @property
    def tangent_width(self) -> int:
        """Columns of differences of this channel's values: a quaternion's four differ by a rotation vector's three."""
        return 3 if self.kind == "quaternion" else self.channel.width


@dataclass(frozen=True)
class RecordedVelocity:
    """A channel of velocities as the lab computed them. No residual is taken of it.

    Args:
        dofs: indices into qvel, one a column. Angular velocities of a free joint are in the body's frame, as MuJoCo's.
        initial: simulations start with these velocities; otherwise they are estimated from positions (`smooth`), which
            is better wherever the lab's came late or from rough differences.
    """

    channel: Channel
    dofs: tuple[int, ...]
    initial: bool


@dataclass(frozen=True)
class Scenario:
    """One robot problem, loaded from YAML and MJCF by `rsr.scenarios.load_scenario`.

    Args:
        history_steps: commands before a window's start that a control delay may reach back to (H).
        delay_parameter: index of the parameter that delays commands, if there is one.
        command: the channel whose values are the simulator's `ctrl`; None where nothing is commanded.
        gap_channel: the channel whose RMS error is called *the* gap.
        window_s, gap_horizon_s: see `window_steps` and `gap_horizon_steps`.
        repeats_share: the tag that episodes have in common when they repeat one trial. Never split such episodes
            between fitting and judging.
        shifts: (channel, index of the parameter that says how late it was recorded, in s); see `clocks`.
        structure: options of the MJCF that are to be compared, with their values; see `structure`.
        zero_s: how much of an episode that is judged tells its sensors' zeros, see `zeros`; what follows is judged.
        collision: the pair of geoms whose impacts a surrogate may compute.
    """

    name: str
    title: str
    mjcf: Path
    control_dt_s: float
    history_steps: int
    episode_steps: int
    space: ParameterSpace
    bindings: tuple[Binding, ...]
    delay_parameter: int | None
    observed: tuple[Observed, ...]
    other_channels: tuple[Channel, ...]
    command: str | None
    gap_channel: str
    base_model: mujoco.MjModel
    evaluation: Evaluation
    velocities: tuple[RecordedVelocity, ...] = ()
    repeats_share: str | None = None
    window_s: float = 0.6
    gap_horizon_s: float = 1.0
    shifts: tuple[tuple[str, int], ...] = ()
    zero_s: float = 2.0
    structure: tuple[tuple[str, tuple[str | int | float, ...]], ...] = ()
    collision: Collision | None = None

    @property
    def window_steps(self) -> int:
        """Control steps in a window that parameters are fitted on."""
        return max(1, round(self.window_s / self.control_dt_s))

    @property
    def gap_horizon_steps(self) -> int:
        """Control steps that recorded commands are replayed before the simulation is put back on the recording."""
        return max(1, round(self.gap_horizon_s / self.control_dt_s))

    @property
    def shift_steps(self) -> int:
        """Rows that a channel may at most be late or early."""
        bounds = [
            abs(bound) for _, index in self.shifts for bound in (self.space.lower[index], self.space.upper[index])
        ]
        return int(np.ceil(max(bounds, default=0.0) / self.control_dt_s - 1e-9))

    @property
    def channels(self) -> tuple[Channel, ...]:
        velocities = tuple(velocity.channel for velocity in self.velocities)
        return tuple(observed.channel for observed in self.observed) + velocities + self.other_channels

    def observed_channel(self, name: str) -> Observed:
        """The observed channel of this name."""
        for observed in self.observed:
            if observed.channel.name == name:
                return observed
        raise ConfigError(
            got=f"channel '{name}'",
            expected=f"one of {', '.join(observed.channel.name for observed in self.observed)}",
            where=f"scenario {self.name}",
            next_step="Name a channel that reads simulator coordinates.",
        )

    def group(self, episode: Episode) -> str:
        """The trial that an episode shows; repeats of one trial have the same."""
        return str(episode.tags.get(self.repeats_share or "", f"episode {episode.index}"))

    @property
    def state_size(self) -> int:
        return self.base_model.nq + self.base_model.nv

    @cached_property
    def substeps(self) -> int:
        """Physics steps per control step."""
        return round(self.control_dt_s / self.base_model.opt.timestep)

    def model(self, values: np.ndarray) -> mujoco.MjModel:
        """Make a model with parameters [P] applied and derived constants refreshed."""
        self.space.check(values)
        model = copy.copy(self.base_model)
        for binding in self.bindings:
            binding.apply(model, self.base_model, float(values[binding.parameter]))
        refresh_constants(model)
        return model

    def delay_s(self, values: np.ndarray) -> float:
        return 0.0 if self.delay_parameter is None else float(values[self.delay_parameter])

    def measure(self, states: np.ndarray) -> dict[str, np.ndarray]:
        """Read the observed channels out of states [..., nq + nv]."""
        return {observed.channel.name: states[..., list(observed.qpos)] for observed in self.observed}

    def commands(self, episode: Episode) -> np.ndarray:
        """What was sent in each step, [T, nu]; the last row of a recording repeats an earlier command."""
        if self.command is None:
            return np.zeros((len(episode) - 1, self.base_model.nu))
        return episode[self.command][:-1]

    def commands_from(self, episode: Episode, row: int, steps: int) -> np.ndarray:
        """Commands [H + steps, nu] of a rollout that starts at a row, those before it included that may still act.

        Before and after the episode the first and last recorded ones stand in.
        """
        commands = self.commands(episode)
        wanted = np.arange(row - self.history_steps, row + steps)
        return commands[np.clip(wanted, 0, len(commands) - 1)]

    def states(self, episode: Episode) -> np.ndarray:
        """States [T + 1, nq + nv] of a recording, freed of measurement noise as far as a few rows allow (`smooth`).

        Coordinates that no channel observes keep the MJCF's reference value.
        """
        model = self.base_model
        qpos = np.tile(model.qpos0, (len(episode), 1))
        noise = np.ones(model.nv)
        for observed in self.observed:
            qpos[:, list(observed.qpos)] = episode[observed.channel.name]
            noise[list(observed.dofs)] = observed.noise
        qpos, qvel = smooth(model, episode.time_s, qpos, noise)
        for velocity in self.velocities:
            if velocity.initial:
                qvel[:, list(velocity.dofs)] = episode[velocity.channel.name]
        return np.concatenate([qpos, qvel], axis=1)

    @cached_property
    def start_std(self) -> np.ndarray:
        """How wrong `states` are, [2 nv] standard deviations; 0 for coordinates that no channel observes."""
        noise = np.zeros(self.base_model.nv)
        for observed in self.observed:
            noise[list(observed.dofs)] = observed.noise
        return noise_left(noise, self.control_dt_s)

    def recorded_state(self, episode: Episode, row: int) -> np.ndarray:
        """State [nq + nv] of one row as recorded: positions not smoothed, and recorded velocities if there are any."""
        state = self.states(episode)[row] if self._estimates_velocities else np.zeros(self.state_size)
        qpos = state[: self.base_model.nq]
        qpos[:] = self.base_model.qpos0
        for observed in self.observed:
            qpos[list(observed.qpos)] = episode[observed.channel.name][row]
        mujoco.mj_normalizeQuat(self.base_model, qpos)
        for velocity in self.velocities:
            state[self.base_model.nq + np.array(velocity.dofs)] = episode[velocity.channel.name][row]
        return state

    @cached_property
    def _estimates_velocities(self) -> bool:
        """True where some velocity that matters was not recorded."""
        moving = {dof for observed in self.observed for dof in observed.dofs}
        return not moving <= {dof for velocity in self.velocities for dof in velocity.dofs}
