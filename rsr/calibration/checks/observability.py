"""How observable each parameter is in recordings, before anything is fitted to them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rsr.calibration import start_prior
from rsr.calibration.problem import Loss, choose, cut
from rsr.calibration.search import FIRST_SPREAD, POINTS, POINTS_PER_PARAMETER
from rsr.calibration.uncertainty import STD_INFLATION, posterior_covariance, regressed_information
from rsr.scenarios import Scenario
from rsr.sessions import Episode
from rsr.simulators import MujocoSimulator

NOT_OBSERVED = 0.8
"""Beyond this share of the prior's standard deviation a parameter counts as not observed."""
USUAL_WINDOWS = 128
"""Windows that a fit with usual effort takes."""
_SPREADS = (FIRST_SPREAD, 0.1 * FIRST_SPREAD)
"""Scatter of the parameters, in standard deviations of the prior."""
_WINDOWS = 24
_MOST_EPISODES = 24


def std_share(scenario: Scenario, episodes: Sequence[Episode]) -> np.ndarray:
    """Expected posterior over prior standard deviation [P], 1 at most, around nominal values."""
    covariance = expected_covariance(scenario, episodes)
    return np.minimum(1.0, STD_INFLATION * np.sqrt(np.diag(covariance)))


def expected_covariance(scenario: Scenario, episodes: Sequence[Episode]) -> np.ndarray:
    """Expected posterior covariance [P, P] around nominal values, in units of the prior; 1 where nothing moves.

    Windows are simulated with parameters scattered around nominal. A few stand for as many as a fit with default effort
    takes. Whatever is not linear in the parameters counts as noise: contact-induced roughness, which a wide scatter
    averages out, and curvature by a strong parameter, which hides a weak one unless the scatter is narrow. So both are
    tried, and the one that tells more counts.
    """
    size, steps = len(scenario.space), scenario.window_steps
    rng = np.random.default_rng(0)
    every = cut(scenario, episodes[:: max(1, len(episodes) // _MOST_EPISODES)], steps, stride=max(1, steps // 2))
    windows = choose(scenario, every, _WINDOWS, rng)
    if not len(windows):
        return np.eye(size)
    # Information is a sum over windows: a fit with this many more of them has this many times as much.
    multiple = max(1.0, min(len(every), USUAL_WINDOWS) / len(windows))
    with MujocoSimulator(scenario) as simulator:
        loss = Loss(scenario, simulator, windows, start_prior(scenario))
        found = [posterior_covariance(np.eye(size), multiple * _information(loss, each, rng)) for each in _SPREADS]
    return min(found, key=np.trace)


def _information(loss: Loss, spread: float, rng: np.random.Generator) -> np.ndarray:
    """Information [P, P] of windows, in units of the prior, from pairs of opposite points around nominal."""
    size = len(loss.bounds)
    # Half of the points are drawn, the others lie opposite. As many pairs as parameters would leave no degree of
    # freedom to tell noise from slope, so their number grows with the parameters.
    pairs = max(POINTS, POINTS_PER_PARAMETER * size) // 2
    drawn = spread * rng.normal(size=(pairs, size))
    ahead, behind = (np.clip(side, *loss.bounds.T) for side in (drawn, -drawn))
    misfits = loss.misfits(np.concatenate([ahead, behind])).reshape(2, pairs, -1)
    # Half the difference of opposite points: even terms (curvature) are equal on both sides and drop out.
    return regressed_information((ahead - behind) / 2, (misfits[0] - misfits[1]) / 2, loss.windows.steps)
