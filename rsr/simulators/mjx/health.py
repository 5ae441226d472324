"""The gradient health check: MJX's sensitivities against central differences of a converged C simulation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rsr.simulators import MujocoSimulator
from rsr.simulators.mjx.implicit import converged
from rsr.simulators.mjx.simulator import MjxSimulator

STEPS = (1e-4, 1e-5, 1e-6)
"""Difference steps, unconstrained coordinates. Long ones step over the kinks of contact, short ones measure rounding:
of each derivative the one is taken at which two neighbouring steps agree best."""
_INCONCLUSIVE = 3.0
"""A deviation of up to so many times the disagreement of two difference steps is no evidence against it."""
_NEGLIGIBLE = 1e-6
"""Share of the largest parameter's sensitivity below which one counts as none."""


@dataclass(frozen=True)
class GradientHealth:
    """Deviation of sensitivities from differences, for each parameter.

    Args:
        relative_error: name -> length of the deviation relative to the differences' length.
        cosine: name -> cosine of the angle between both.
        difference_error: name -> how far two difference steps disagree, relative: no agreement can be better.
        not_finite: how many derivatives are NaN or infinite.
        tolerance: relative error that counts as healthy.
        insensitive: parameters on which nothing in these windows depends: there is nothing to compare. Those of
            sensors alone are never named: they act on readings, after the simulation.
    """

    relative_error: dict[str, float]
    cosine: dict[str, float]
    difference_error: dict[str, float]
    not_finite: int
    tolerance: float
    insensitive: tuple[str, ...] = ()

    @property
    def inconclusive(self) -> tuple[str, ...]:
        """Parameters that deviate by more than the tolerance, but no more than two difference steps disagree."""
        return tuple(
            name
            for name, error in self.relative_error.items()
            if name not in self.insensitive and self.tolerance < error <= _INCONCLUSIVE * self.difference_error[name]
        )

    @property
    def worst(self) -> str | None:
        """The parameter with the largest deviation, of those with conclusive differences; None if there is none."""
        conclusive = [name for name in self.relative_error if name not in (*self.inconclusive, *self.insensitive)]
        return max(conclusive or self.inconclusive, key=lambda name: self.relative_error[name], default=None)

    @property
    def healthy(self) -> bool:
        """All finite, and deviations explained by the tolerance or by the differences' own error."""
        return self.not_finite == 0 and all(
            error <= max(self.tolerance, _INCONCLUSIVE * self.difference_error[name])
            for name, error in self.relative_error.items()
            if name not in self.insensitive
        )

    def __str__(self) -> str:
        healthy = "healthy where differences are conclusive" if self.inconclusive else "healthy"
        verdict = healthy if self.healthy else "NOT healthy"
        worst = self.worst
        said = f"gradients {verdict}"
        if worst is not None:
            said += f": worst {worst}, relative error {self.relative_error[worst]:.1e}, cosine {self.cosine[worst]:.6f}"
        unchecked = ", ".join(f"{name} ({self.difference_error[name]:.0e})" for name in self.inconclusive)
        if unchecked:
            said += f"; unchecked, because differences of two steps disagree: {unchecked}"
        if self.insensitive:
            named = ", ".join(self.insensitive)
            said += f"; unchecked, because nothing in the few steps compared depends on them: {named}"
        return said


def check_gradients(
    simulator: MjxSimulator,
    states: np.ndarray,
    actions: np.ndarray,
    params: np.ndarray,
    tolerance: float = 1e-4,
    threads: int = 2,
) -> GradientHealth:
    """Compare sensitivities of windows with central differences in C.

    Args:
        states: [B, nq + nv].
        actions: [B, H + T, nu].
        params: [P]; moved inside the bounds by a difference step where they touch them.
    """
    space = simulator.scenario.space
    # Differences are two-sided, so both points must lie inside the bounds.
    margin = 2.0 * max(STEPS)
    lower, upper = space.to_coordinates(space.lower) + margin, space.to_coordinates(space.upper) - margin
    point = np.clip(space.to_coordinates(params), lower, upper)
    _, exact = simulator.sensitivities(states, actions, space.to_values(point))
    with MujocoSimulator(converged(simulator.scenario), threads) as reference:
        quotients = _central_differences(reference, states, actions, point)
    differences, disagreement = _most_consistent(quotients)
    exact = np.moveaxis(exact, -1, 1).reshape(differences.shape)
    simulated = np.setdiff1d(np.arange(len(space)), simulator.scenario.sensor_parameters)
    names = tuple(space.names[index] for index in simulated)
    return _compare(names, exact[:, simulated], differences[:, simulated], disagreement[:, simulated], tolerance)


def _central_differences(
    simulator: MujocoSimulator, states: np.ndarray, actions: np.ndarray, point: np.ndarray
) -> np.ndarray:
    """[S, B, P, (T + 1) * n] difference quotients, one for each of STEPS."""
    space, size, count = simulator.scenario.space, len(point), len(states)
    offsets = np.array([sign * step * row for step in STEPS for sign in (1, -1) for row in np.eye(size)])
    trajectories = simulator.rollout(
        np.tile(states, (len(offsets), 1)),
        np.tile(actions, (len(offsets), 1, 1)),
        np.repeat(space.to_values(point + offsets), count, axis=0),
    ).reshape(len(STEPS), 2, size, count, -1)
    quotients = (trajectories[:, 0] - trajectories[:, 1]) / (2.0 * np.array(STEPS)[:, None, None, None])
    return np.swapaxes(quotients, 1, 2)


def _most_consistent(quotients: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pick for each window and parameter the quotient that the next shorter step confirms best, and how well [B, P]."""
    # Truncation error falls with the step, rounding error grows: where neighbours agree best, both are small.
    apart = np.linalg.norm(quotients[:-1] - quotients[1:], axis=-1)
    best = apart.argmin(axis=0)
    chosen = np.take_along_axis(quotients, best[None, ..., None], axis=0)[0]
    return chosen, np.take_along_axis(apart, best[None], axis=0)[0]


def _compare(
    names: tuple[str, ...],
    exact: np.ndarray,
    differences: np.ndarray,
    disagreement: np.ndarray,
    tolerance: float,
) -> GradientHealth:
    """All arrays [B, P, ...], in the order of `names`."""
    finite = np.nan_to_num(exact, posinf=0.0, neginf=0.0)

    def length(values: np.ndarray) -> np.ndarray:
        return np.sqrt(np.square(values).sum(axis=(0, 2)))

    # Relative to the parameter's own sensitivity; a parameter without any would divide by zero.
    least = _NEGLIGIBLE * length(differences).max() + 1e-300
    size = np.maximum(length(differences), least)
    # A wrong derivative where differences see nothing is an error; none on both sides is nothing to compare.
    insensitive = (length(differences) <= least) & (length(finite) <= least)
    product = (finite * differences).sum(axis=(0, 2))
    cosine = product / np.maximum(length(finite) * length(differences), 1e-300)

    def named(values: np.ndarray) -> dict[str, float]:
        return dict(zip(names, values.tolist(), strict=True))

    return GradientHealth(
        relative_error=named(length(finite - differences) / size),
        cosine=named(cosine),
        difference_error=named(length(disagreement[..., None]) / size),
        not_finite=int((~np.isfinite(exact)).sum()),
        tolerance=tolerance,
        insensitive=tuple(name for name, each in zip(names, insensitive, strict=True) if each),
    )
