"""A calibration as an expert writes it in an afternoon: the package `cmaes` on what predictions are judged by.

Whole episodes and windows of the tosses to fit are simulated open loop from recorded states; the loss is the mean of
all figures of the scenario, each in units of its nominal value. Mean distances, not squares, so that no chaotic toss
rules. Of `rsr` it takes what a simulation script has too: the model, the starts and a threaded rollout.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from cmaes import CMA

from rsr.scenarios import Scenario, Start, difference, starts_of
from rsr.sessions import Episode
from rsr.simulators import MujocoSimulator

POPULATION = 12
"""What Hansen's 4 + 3 log(n) says for 17 parameters."""
SIGMA = 0.15
"""First spread, as a share of the way between the bounds, which are logarithms where the scenario says so."""
UNSTABLE = 10.0
"""An error that is not finite counts as so many m or rad."""
Cases = list[tuple[Episode, Start]]


def fit_plain(scenario: Scenario, episodes: Sequence[Episode], evaluations: int, seed: int) -> np.ndarray:
    """Values [P] with the lowest loss after so many evaluations; a search that has converged starts again, wider."""
    space = scenario.space
    lower, upper = (space.to_coordinates(bound) for bound in (space.lower, space.upper))
    values = lambda point: np.clip(space.to_values(lower + point * (upper - lower)), space.lower, space.upper)  # noqa: E731
    sets = [[(each, s) for each in episodes for s in starts_of(scenario, each, name)] for name in ("first", "windows")]
    start = (space.to_coordinates(space.nominal) - lower) / (upper - lower)
    bounds = np.tile([0.0, 1.0], (len(space), 1))
    best, lowest, population, spent = start, 1.0, POPULATION, 0
    with MujocoSimulator(scenario) as simulator:
        nominal = _errors(scenario, simulator, sets, space.nominal[None])[0]
        search = CMA(start, SIGMA, bounds=bounds, seed=seed, population_size=population)
        while spent < evaluations:
            if search.should_stop():  # a wider look from the best so far: IPOP, with twice the population
                population *= 2
                search = CMA(best, 2 * SIGMA, bounds=bounds, seed=seed + population, population_size=population)
            points = np.array([search.ask() for _ in range(population)])
            errors = _errors(scenario, simulator, sets, np.array([values(point) for point in points]))
            losses = (errors / nominal).mean(axis=1)
            search.tell(list(zip(points, losses.tolist(), strict=True)))
            spent += population
            if losses.min() < lowest:
                best, lowest = points[losses.argmin()], float(losses.min())
        # Contact makes the loss rough: the centre of the last generation may be better than its luckiest point.
        centre = np.clip(search.mean, 0.0, 1.0)
        if (_errors(scenario, simulator, sets, values(centre)[None])[0] / nominal).mean() <= lowest:
            best = centre
    return values(best)


def _errors(scenario: Scenario, simulator: MujocoSimulator, sets: list[Cases], values: np.ndarray) -> np.ndarray:
    """Mean distances [K, 2 C]: every channel over whole episodes, then over windows."""
    return np.concatenate([_mean_distances(scenario, simulator, cases, values) for cases in sets], axis=1)


def _mean_distances(scenario: Scenario, simulator: MujocoSimulator, cases: Cases, values: np.ndarray) -> np.ndarray:
    """Mean distances [K, C] of the observed channels for parameters [K, P], all in one rollout."""
    longest = max(start.steps for _, start in cases)
    states = simulator.rollout(
        np.tile([start.state for _, start in cases], (len(values), 1)),
        np.tile([scenario.commands_from(episode, start.row, longest) for episode, start in cases], (len(values), 1, 1)),
        np.repeat(values, len(cases), axis=0),
    )
    found = np.zeros((len(values), len(scenario.observed)))
    for k, (episode, start) in enumerate(cases):
        simulated = scenario.measure(states[k :: len(cases), : start.steps + 1])
        for c, observed in enumerate(scenario.observed):
            name = observed.channel.name
            error = difference(observed.kind, episode[name][start.row : start.row + start.steps + 1], simulated[name])
            distances = np.linalg.norm(np.nan_to_num(error, nan=UNSTABLE, posinf=UNSTABLE), axis=-1)
            found[:, c] += np.minimum(distances, UNSTABLE).mean(axis=1) / len(cases)
    return found
