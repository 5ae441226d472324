"""A robot problem: an MJCF scene, its channels, its tunable parameters, and how recordings map onto states."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import mujoco
import numpy as np

from rsr.scenarios.bindings import Binding, refresh_constants
from rsr.scenarios.parameters import ParameterSpace
from rsr.scenarios.smoothing import smooth
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
    """

    channel: Channel
    qpos: tuple[int, ...]
    dofs: tuple[int, ...]
    kind: Kind
    noise: float


@dataclass(frozen=True)
class Scenario:
    """One robot problem, loaded from YAML and MJCF by `rsr.scenarios.load_scenario`.

    Args:
        history_steps: commands before a window's start that a control delay may reach back to (H).
        delay_parameter: index of the parameter that delays commands, if there is one.
        command: the channel whose values are the simulator's `ctrl`.
        gap_channel: the channel whose RMS error is called *the* gap.
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
    command: str
    gap_channel: str
    base_model: mujoco.MjModel

    @property
    def channels(self) -> tuple[Channel, ...]:
        return tuple(observed.channel for observed in self.observed) + self.other_channels

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
        return episode[self.command][:-1]

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
        return np.concatenate(smooth(model, episode.time_s, qpos, noise), axis=1)
