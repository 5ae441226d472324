"""The loss of every method: robust, scaled differences over windows, and the prior, as one residual vector.

Half the squared norm of the residuals is the loss, so that least-squares methods and population methods see the
same problem.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from rsr.calibration import Prior
from rsr.calibration.problem.model_error import ASSUMED_NOISES, ROBUST_SCALES, ModelError, mean_square
from rsr.calibration.problem.nuisances import BiasSlopes, InitialStateSlopes
from rsr.calibration.problem.tangents import Tangents
from rsr.calibration.problem.windows import Windows
from rsr.common import is_spread, spread
from rsr.scenarios import Scenario, readings, residuals, start_states
from rsr.simulators import MujocoSimulator, Simulator

_WORST = 1e3
"""Difference charged to a simulation that became unstable, in scales."""


@dataclass(frozen=True)
class Loss:
    """Misfit of a simulator to windows, under a prior.

    Points [K, P] are in units of the prior, (coordinate - mean) / std: 1 is one standard deviation of the prior.

    Args:
        biases: derivatives by sensor biases, where these differ from episode to episode and are eliminated.
        initial_states: derivatives by errors of the windows' initial states, where these are eliminated.
        model_error: `ASSUMED_NOISES` until it is estimated.
        origin: [P], where searches begin; the prior's mean by default.
        least_noises: the model's error counts as so many standard deviations of the noise at least.
        tangents: exact derivatives near the estimate, where the loss is smooth; regressions otherwise.
    """

    scenario: Scenario
    simulator: Simulator
    windows: Windows
    prior: Prior
    biases: BiasSlopes | None = None
    origin: np.ndarray | None = None
    initial_states: InitialStateSlopes | None = None
    model_error: ModelError | None = None
    least_noises: float = ASSUMED_NOISES
    tangents: Tangents | None = None

    @property
    def first(self) -> np.ndarray:
        """[P], where a search begins: inside the bounds."""
        return np.clip(np.zeros(len(self.prior.mean)) if self.origin is None else self.origin, *self.bounds.T)

    def shortened(self, steps: int) -> Loss:
        """Shorten the windows to some control steps."""
        return self._cut(lambda part: part.shortened(steps))

    def thinned(self, count: int) -> Loss:
        """Thin the windows to at most so many, spread evenly over all."""
        if len(self.windows) <= count:
            return self
        return self.take(np.linspace(0, len(self.windows) - 1, count).round().astype(int))

    def take(self, chosen: np.ndarray) -> Loss:
        """Keep some of the windows, by index."""
        return self._cut(lambda part: part.take(chosen))

    def _cut(self, cut: Callable[[Any], Any]) -> Loss:
        """Apply a cut to everything that is stored per window."""
        stored = {name: getattr(self, name) for name in ("windows", "biases", "initial_states", "tangents")}
        return replace(self, **{name: None if each is None else cut(each) for name, each in stored.items()})

    @property
    def bounds(self) -> np.ndarray:
        """[P, 2], lower and upper."""
        space = self.scenario.space
        return np.stack([self.points(space.lower), self.points(space.upper)], axis=1)

    @property
    def steps_per_point(self) -> int:
        """Simulated physics steps one evaluation costs."""
        return len(self.windows) * self.windows.steps * self.scenario.substeps

    def points(self, values: np.ndarray) -> np.ndarray:
        """From physical units [..., P] to points."""
        return (self.scenario.space.to_coordinates(values) - self.prior.mean) / self.prior.std

    def values(self, points: np.ndarray) -> np.ndarray:
        """From points [..., P] to physical units; what rounding put outside the bounds is put back."""
        space = self.scenario.space
        return np.clip(space.to_values(self.prior.mean + self.prior.std * points), space.lower, space.upper)

    def misfits(self, points: np.ndarray) -> np.ndarray:
        """Robust residuals [K, W, R] of the data alone: all points on all windows in one rollout."""
        scaled = self._scaled(points)
        if self.biases is not None:
            scaled = self.biases.subtract(_finite(scaled))
        return robust(scaled) / np.sqrt(self.rows_as_one)

    @property
    def rows_as_one(self) -> float:
        """Rows that count as one, for they are not independent; until that is estimated, those of a window."""
        return float(self.windows.steps) if self.model_error is None else self.model_error.rows_as_one

    @cached_property
    def scales(self) -> dict[str, np.ndarray]:
        """Standard deviation [T, 1] of each channel's residuals: noise, and the model's error as independent."""
        noises = self.scenario.channel_noise
        # Weighed more sharply, contact-induced roughness would drown what the residuals say.
        errors = {name: np.maximum(self.error_of(name), self.least_noises * noise) for name, noise in noises.items()}
        return {name: np.hypot(noise, errors[name][:, None]) for name, noise in noises.items()}

    def error_of(self, name: str) -> np.ndarray:
        """Standard deviation [T] of the model's error in a channel, in the channel's unit."""
        steps = self.windows.steps
        if self.model_error is None:
            return np.full(steps, ASSUMED_NOISES * self.scenario.observed_channel(name).noise)
        return self.model_error.channels[name][:steps]

    def differences(self, point: np.ndarray) -> dict[str, np.ndarray]:
        """Differences [W, T, C] at a point [P] in the channels' units, less what nuisances explain."""
        scaled = _finite(self._scaled(point[None]))
        if self.biases is not None:
            scaled = self.biases.subtract(scaled)
        return {name: rows * self.scales[name] for name, rows in self.by_channel(scaled[0]).items()}

    @property
    def channel_rows(self) -> dict[str, slice]:
        """Which rows of the R in a window's residuals belong to each channel."""
        names = [each.channel.name for each in self.scenario.observed]
        ends = np.cumsum(tangent_widths(self.scenario)) * self.windows.steps
        return {name: slice(int(first), int(end)) for name, first, end in zip(names, [0, *ends], ends, strict=False)}

    def by_channel(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """Divide what has a value for each residual [W, R] into the channels: name -> [W, T, C]."""
        return {
            name: rows[:, chosen].reshape(
                len(rows), self.windows.steps, (chosen.stop - chosen.start) // self.windows.steps
            )
            for name, chosen in self.channel_rows.items()
        }

    def divergence(self) -> dict[str, np.ndarray]:
        """How far [T] simulations part whose initial states differ as much as they err, in the channels' units.

        Zero where these errors are not known.
        """
        if self.initial_states is None:
            return {name: np.zeros(self.windows.steps) for name in self.scales}
        parted = self.by_channel(np.linalg.norm(self.initial_states.slopes, axis=-1))
        inside = self.windows.inside
        return {name: np.sqrt(mean_square(rows * self.scales[name], inside)) for name, rows in parted.items()}

    def biases_of(self, point: np.ndarray) -> np.ndarray:
        """Estimate sensor biases [E, Z] of each episode at a point [P], in `bias_std`s; E as in `windows.episode`."""
        if self.biases is None:
            return np.zeros((int(self.windows.episode.max(initial=-1)) + 1, 0))
        return self.biases.estimate(_finite(self._scaled(point[None])))[0]

    def _scaled(self, points: np.ndarray) -> np.ndarray:
        """Compute differences [K, W, R] in the channels' scales, less what initial-state errors explain."""
        scaled = self.scaled_differences(self.simulated(points), self.values(points))
        return scaled if self.initial_states is None else self.initial_states.whiten(_finite(scaled))

    def simulated(self, points: np.ndarray) -> np.ndarray:
        """States [K, W, T + 1, n] of all points on all windows, in one rollout."""
        count, windows, values = len(points), self.windows, self.values(points)
        # One batch of K * W simulations: windows run fastest, so points repeat in blocks of W.
        starts = np.concatenate([self.starts(each) for each in values])
        return self.simulator.rollout(
            starts, np.tile(windows.commands, (count, 1, 1)), np.repeat(values, len(windows), axis=0)
        ).reshape(count, len(windows), windows.steps + 1, -1)

    def starts(self, values: np.ndarray) -> np.ndarray:
        """Compute initial states [W, n] for parameters [P]; those of sensors change what the recording says of them."""
        if not self.scenario.sensor_parameters:
            return self.windows.starts
        return start_states(self.scenario, self.windows.starts, self.windows.around, values)

    def scaled_differences(self, states: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Differences [K, W, R] of states [K, W, T + 1, n] from what was measured, in `scales`; 0 after a window's end.

        Args:
            values: [K, P], of which sensor delays, gains and biases are read.
        """
        scenario, windows = self.scenario, self.windows
        measured = scenario.measure(states)
        if scenario.sensor_parameters:
            # Sensors differ from point to point, so readings are interpolated and scaled point by point.
            true = [{name: rows[k] for name, rows in measured.items()} for k in range(len(values))]
            shown = [readings(scenario, *each) for each in zip(true, values, strict=True)]
            measured = {name: np.stack([each[name] for each in shown]) for name in measured}
        # Row 0 is the initial state, which equals the recording by construction.
        errors = residuals(scenario, windows.real, {name: rows[:, :, 1:] for name, rows in measured.items()})
        inside = windows.inside[..., None]
        scaled = [np.where(inside, errors[name] / scale, 0.0) for name, scale in self.scales.items()]
        return np.concatenate([each.reshape(*states.shape[:2], -1) for each in scaled], axis=-1)

    def residuals(self, points: np.ndarray) -> np.ndarray:
        """[K, W * R + P], the data's robust residuals and then the prior's."""
        return np.concatenate([self.misfits(points).reshape(len(points), -1), points], axis=1)

    def __call__(self, points: np.ndarray) -> np.ndarray:
        """Losses [K] of points [K, P]."""
        return 0.5 * np.square(self.residuals(points)).sum(axis=1)


def tangent_widths(scenario: Scenario) -> tuple[int, ...]:
    """Columns of each observed channel's differences."""
    return tuple(each.tangent_width for each in scenario.observed)


def robust(scaled: np.ndarray) -> np.ndarray:
    """Residuals whose half square is the pseudo-Huber loss d^2 (sqrt(1 + (r/d)^2) - 1) of the scaled differences."""
    scaled = _finite(scaled)
    # sqrt(2 d^2 (sqrt(1 + u) - 1)) with u = (r / d)^2; multiplied by its conjugate, so that small r do not cancel.
    return scaled * np.sqrt(2.0 / (1.0 + np.sqrt(1.0 + np.square(scaled / ROBUST_SCALES))))


def _finite(scaled: np.ndarray) -> np.ndarray:
    """Charge `_WORST` for what became unstable or absurdly large."""
    return np.clip(np.nan_to_num(scaled, nan=_WORST, posinf=_WORST, neginf=-_WORST), -_WORST, _WORST)


# A population's losses, and refits, as jobs for other processes: each with a simulator of its own.

_PARTS = (
    "scenario", "windows", "prior", "biases", "origin", "initial_states", "model_error", "least_noises", "tangents",
)  # fmt: skip


def losses_of(loss: Loss, points: np.ndarray) -> np.ndarray:
    """Compute losses [K] of points [K, P]: in one rollout here; where work is spread, a point a job."""
    if not can_be_spread(loss):
        return loss(points)
    jobs = [{"parts": parts_of(loss), "points": point[None]} for point in points]
    return np.concatenate(spread("rsr.calibration.problem.loss:evaluate_points", jobs))


def evaluate_points(parts: dict[str, Any], points: np.ndarray) -> np.ndarray:
    """Do one job of a population."""
    with MujocoSimulator(parts["scenario"], threads=1) as simulator:
        return Loss(simulator=simulator, **parts)(points)


def can_be_spread(loss: Loss) -> bool:
    """Check that work is spread, and that another process can rebuild the loss."""
    return is_spread() and type(loss.simulator) is MujocoSimulator


def parts_of(loss: Loss) -> dict[str, Any]:
    """List what a loss is rebuilt from in another process; its simulator (threads, C memory) cannot be sent."""
    return {name: getattr(loss, name) for name in _PARTS}
