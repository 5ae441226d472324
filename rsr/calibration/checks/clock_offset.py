"""Undeclared clock offsets: does a channel fit clearly better if its recording is moved in time, unseen episodes too?

For each observed channel without a `sensor_delay` of its own, one Gauss-Newton step is taken from the estimate, jointly
in all parameters and that channel's offset: other parameters may have absorbed a part of the offset. A model that lacks
an effect often fits better with an offset that is not there, so the step has to predict episodes that were not fitted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import stdtrit

from rsr.calibration import Prior
from rsr.calibration.problem import Loss, choose, cut, surroundings
from rsr.calibration.search import with_biases
from rsr.calibration.search.refinement import Linearisation
from rsr.calibration.uncertainty import PRIOR_INFLATION, information
from rsr.scenarios import Parameter, ParameterSpace, Scenario
from rsr.sessions import Episode
from rsr.simulators import MujocoSimulator

LEAST_ROWS = 0.2
"""An offset of less than this share of a control step is not worth a warning."""
SUSPECTED, CONFIDENCE = 0.95, 0.99
"""At which an offset must differ from zero before it is tried on unseen episodes, and predict these better."""
LEAST_GAIN = 0.02
"""Share by which the loss on unseen episodes must fall: what an offset takes over from a wrong model is less."""
_STEP_ROWS = 0.5
"""Half of the distance of two offsets compared."""
_WIDEST_ROWS = 2.0
_JUDGING_WINDOWS = 96


@dataclass(frozen=True)
class _Offset:
    """Offset of a channel in rows, and the step [P + 1] that has it as its last entry."""

    name: str
    step: np.ndarray
    significance: float

    @property
    def rows(self) -> float:
        return float(self.step[-1])


def clock_offset_warnings(
    loss: Loss, episodes: Sequence[Episode], unseen: Sequence[Episode], point: np.ndarray, slope: Linearisation
) -> list[str]:
    """Warn of the most significant clock offset that predicts unseen episodes better, its size and the remedy.

    Args:
        episodes: those that the windows were cut from.
        unseen: those that were not fitted, and judge.
        point: [P], the estimate.
    """
    declared = {name for name, _ in loss.scenario.sensor_delays}
    candidates = [each.channel.name for each in loss.scenario.observed if each.channel.name not in declared]
    found = [_offset(loss, episodes, point, slope, name) for name in candidates]
    found = [each for each in found if each.significance > 1.0 and abs(each.rows) > LEAST_ROWS]
    # One delayed channel makes others seem offset as well: report one, refit, look again.
    for offset in sorted(found, key=lambda each: -each.significance):
        if _predicts(loss, unseen, point, offset):
            return [_warning(offset, loss.scenario.control_dt_s)]
    return []


def _warning(offset: _Offset, control_dt_s: float) -> str:
    side = "late" if offset.rows > 0 else "early"
    size = f"{abs(offset.rows) * control_dt_s * 1e3:.0f} ms {side} ({abs(offset.rows):.1f} control steps)"
    return (
        f"{offset.name} seems to be recorded about {size}, and other parameters may have taken that over: so moved, it "
        f"is predicted better in unseen episodes. Add a parameter with `sensor_delay: {offset.name}` to the scenario, "
        "or correct the recording's clock."
    )


def _predicts(loss: Loss, unseen: Sequence[Episode], point: np.ndarray, offset: _Offset) -> bool:
    """Whether the estimate with the offset predicts unseen episodes clearly better than without."""
    scenario = with_offset(loss.scenario, offset.name)
    steps = loss.windows.steps
    every = cut(scenario, unseen, steps, stride=max(1, steps // 2))
    windows = choose(scenario, every, _JUDGING_WINDOWS, np.random.default_rng(0))
    if not len(windows):
        return False
    prior = Prior(np.append(loss.prior.mean, 0.0), np.append(loss.prior.std, 1.0))
    with MujocoSimulator(scenario) as simulator:
        judging = replace(
            loss, scenario=scenario, simulator=simulator, windows=windows, prior=prior, origin=None,
            biases=None, initial_states=None,
        )  # fmt: skip
        judging = with_biases(judging)
        moved = np.append(point, 0.0) + offset.step
        points = np.clip([np.append(point, 0.0), moved], *judging.bounds.T)
        losses = np.square(judging.misfits(points)).sum(axis=2)
    present = np.unique(windows.episode)
    gains = np.array([np.subtract(*losses[:, windows.episode == index].sum(axis=1)) for index in present])
    if len(gains) < 2 or gains.sum() < LEAST_GAIN * losses[0].sum():
        return False
    error = gains.std(ddof=1) / np.sqrt(len(gains))
    return bool(gains.mean() > stdtrit(len(gains) - 1, CONFIDENCE) * error)


def _offset(loss: Loss, episodes: Sequence[Episode], point: np.ndarray, slope: Linearisation, name: str) -> _Offset:
    """Estimate how many rows late a channel is, together with all parameters."""
    column, misfits = _offset_column(loss, episodes, point, name)
    sensitivities = np.concatenate([slope.sensitivities, column[..., None]], axis=-1)
    prior = np.append(np.ones(len(point)), 0.0)  # precision; an offset has no prior
    # Pseudo-inverse: where nothing moves, the offset has no information and its row is zero.
    inverse = np.linalg.pinv(information(sensitivities) + np.diag(prior))
    flat = sensitivities.reshape(-1, len(prior))
    step = -inverse @ (flat.T @ misfits.ravel() + prior * np.append(point, 0.0))
    # Sandwich covariance H^-1 G H^-1 with G the scatter of the episodes' gradients, around the fit that includes the
    # offset: what the offset explains is no scatter.
    gradients = np.einsum("wrp,wr->wp", sensitivities, misfits + sensitivities @ step)
    episode = loss.windows.episode
    sums = np.array([gradients[episode == index].sum(axis=0) for index in np.unique(episode)])
    scatter = sums.T @ sums * len(sums) / max(1, len(sums) - 1) + PRIOR_INFLATION**2 * np.diag(prior)
    std, degrees = float(np.sqrt((inverse @ scatter @ inverse)[-1, -1])), max(1, len(sums) - 1)
    # Student's t: the standard deviation comes from the scatter of a few episodes.
    width = std * float(stdtrit(degrees, 0.5 + SUSPECTED / 2))
    return _Offset(name, step, float(abs(step[-1]) / max(width, 1e-12)))


def _offset_column(
    loss: Loss, episodes: Sequence[Episode], point: np.ndarray, name: str
) -> tuple[np.ndarray, np.ndarray]:
    """Differentiate the misfits by a channel's offset, in rows: the column [W, R], and the misfits [W, R]."""
    scenario = with_offset(loss.scenario, name)
    windows = replace(loss.windows, around=surroundings(scenario, loss.windows, episodes))
    prior = Prior(np.append(loss.prior.mean, 0.0), np.append(loss.prior.std, 1.0))
    with MujocoSimulator(scenario) as simulator:
        offset = replace(loss, scenario=scenario, simulator=simulator, windows=windows, prior=prior, origin=None)
        rows = np.array([_STEP_ROWS, -_STEP_ROWS, 0.0])
        ahead, behind, here = offset.misfits(np.column_stack([np.tile(point, (3, 1)), rows]))
    return (ahead - behind) / (2 * _STEP_ROWS), here


def with_offset(scenario: Scenario, name: str) -> Scenario:
    """Add a parameter to the scenario: a channel's sensor delay."""
    reach_s = _WIDEST_ROWS * scenario.control_dt_s
    delay = Parameter(f"{name} late", 0.0, -reach_s, reach_s, "s", 1.0, "linear", scenario.control_dt_s)
    space = ParameterSpace((*scenario.space, delay))
    return replace(scenario, space=space, sensor_delays=(*scenario.sensor_delays, (name, len(space) - 1)))
