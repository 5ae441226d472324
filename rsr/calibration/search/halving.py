"""Model selection among structures by successive halving: few evaluations for all, more for those that remain.

In each round every candidate continues its fit, on one half of the episodes to fit, and is scored by replays of the
other half; the better half of the candidates stays. The episodes held out from the calibration itself take no part:
selection on them would bias the reported error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rsr.calibration import Prior
from rsr.calibration.problem import Loss, channel_rms, choose, cut, replay, split
from rsr.calibration.search.evolution import POPULATION, search_cmaes
from rsr.calibration.search.marginalise import reweighted, with_biases
from rsr.common import Advance, derive_seed, generator, ignore
from rsr.scenarios import Scenario, Word, candidates, structured
from rsr.sessions import Episode
from rsr.simulators import MujocoSimulator, correct_sensors

FIRST_BUDGET = 4 * POPULATION
"""Points evaluated for each candidate in the first round; twice as many in each further one."""
WINDOWS = 32
MARGIN = 0.02
"""A candidate must score better than the file's first one by this share to take its place."""


@dataclass(frozen=True)
class StructureSelection:
    """The selected structure, and the last score of every candidate, by its description: lower is better."""

    chosen: dict[str, Word]
    scores: dict[str, float]


@dataclass
class _Candidate:
    chosen: dict[str, Word]
    scenario: Scenario
    point: np.ndarray | None = None
    score: float = np.inf


def select_structure(
    scenario: Scenario, episodes: Sequence[Episode], prior: Prior, seed: int, advance: Advance
) -> StructureSelection:
    """Select among the scenario's candidate structures, by episodes that their fits did not see."""
    # The keys "race" are part of the seeds: with others, earlier selections would not be reproduced.
    pool = [_Candidate(chosen, structured(scenario, chosen)) for chosen in candidates(scenario.structure)]
    left = list(pool)
    fitted, scoring = split(scenario, episodes, (len(episodes) + 1) // 2, generator(seed, "race"))
    pieces = [episodes[index] for index in fitted], [episodes[index] for index in scoring]
    budget, rounds = FIRST_BUDGET, max(1, int(np.ceil(np.log2(len(pool)))))
    for turn in range(rounds):
        for candidate in left:
            _run(candidate, *pieces, prior, budget, derive_seed(seed, "race", turn))
        left = sorted(left, key=lambda candidate: candidate.score)[: max(1, (len(left) + 1) // 2)]
        budget *= 2
        advance((turn + 1) / rounds, f"{len(left)} structures left, best: {describe(left[0].chosen)}")
    # Within noise the MJCF's own structure stays: a switch without a reason would surprise.
    first, best = pool[0], left[0]
    winner = best if best.score < (1.0 - MARGIN) * first.score else first
    return StructureSelection(winner.chosen, {describe(candidate.chosen): candidate.score for candidate in pool})


def describe(chosen: Mapping[str, Word]) -> str:
    """Describe choices in one line, such as "cone elliptic, condim 4"."""
    return ", ".join(f"{option} {value}" for option, value in chosen.items())


def _run(
    candidate: _Candidate, fitted: Sequence[Episode], scoring: Sequence[Episode], prior: Prior, budget: int, seed: int
) -> None:
    """Continue a candidate's fit, and score it."""
    scenario = candidate.scenario
    steps = scenario.window_steps
    every = cut(scenario, fitted, steps, stride=max(1, steps // 2))
    windows = choose(scenario, every, WINDOWS, np.random.default_rng(seed))
    with MujocoSimulator(scenario) as simulator:
        if len(windows):
            loss = Loss(scenario, simulator, windows, prior, origin=candidate.point)
            loss = reweighted(with_biases(loss), loss.first)
            candidate.point = search_cmaes(loss, budget, seed, ignore).point
            values = loss.values(candidate.point)
        else:
            values = scenario.space.to_values(prior.mean)
        candidate.score = _score(scenario, simulator, scoring, values)


def _score(scenario: Scenario, simulator: MujocoSimulator, episodes: Sequence[Episode], values: np.ndarray) -> float:
    """Geometric mean over the observed channels of the RMS error of replays, each in the channel's noise."""
    corrected = correct_sensors(scenario, simulator, episodes, values)
    errors = channel_rms(scenario, corrected, replay(scenario, simulator, corrected, values))
    # Channels have different units: ratios to the noise, and the geometric mean, weigh equal relative gains alike.
    ratios = [max(errors[each.channel.name], 1e-12) / each.noise for each in scenario.observed]
    finite = np.nan_to_num(np.log(ratios), nan=np.inf, posinf=np.inf)
    return float(np.exp(np.mean(finite)))
