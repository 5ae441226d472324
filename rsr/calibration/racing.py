"""Which structure fits? A race among candidates: few evaluations for all, more for those that are left.

Successive halving. In each round every candidate goes on with its fit, on one half of the episodes to fit, and is
judged by replays of the other half; the better half of the candidates stays. The episodes that judge the calibration
itself take no part, so that the choice does not flatter them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rsr.calibration.cmaes import POPULATION, search_cmaes
from rsr.calibration.contract import Prior
from rsr.calibration.evidence import channel_rms, replay, split
from rsr.calibration.loss import Loss
from rsr.calibration.windows import choose, cut
from rsr.calibration.zeros import with_zeros
from rsr.progress import Advance, ignore
from rsr.randomness import derive_seed, generator
from rsr.scenarios import Scenario
from rsr.scenarios.structure import Word, candidates, structured
from rsr.sessions import Episode
from rsr.simulators import MujocoSimulator, put_right

FIRST_BUDGET = 4 * POPULATION
"""Points evaluated for each candidate in the first round; twice as many in each further one."""
WINDOWS = 32
MARGIN = 0.02
"""A candidate must score better than the file's first one by this share to take its place."""


@dataclass(frozen=True)
class Race:
    """What was chosen, and the last score of every candidate, as words: lower is better."""

    chosen: dict[str, Word]
    scores: dict[str, float]


@dataclass
class _Runner:
    chosen: dict[str, Word]
    scenario: Scenario
    point: np.ndarray | None = None
    score: float = np.inf


def race(scenario: Scenario, episodes: Sequence[Episode], prior: Prior, seed: int, advance: Advance) -> Race:
    """Choose among the structures that the scenario leaves open, by episodes that their fits did not see."""
    runners = [_Runner(chosen, structured(scenario, chosen)) for chosen in candidates(scenario.structure)]
    left = list(runners)
    fitted, judging = split(scenario, episodes, (len(episodes) + 1) // 2, generator(seed, "race"))
    pieces = [episodes[index] for index in fitted], [episodes[index] for index in judging]
    budget, rounds = FIRST_BUDGET, max(1, int(np.ceil(np.log2(len(runners)))))
    for turn in range(rounds):
        for runner in left:
            _run(runner, *pieces, prior, budget, derive_seed(seed, "race", turn))
        left = sorted(left, key=lambda runner: runner.score)[: max(1, (len(left) + 1) // 2)]
        budget *= 2
        advance((turn + 1) / rounds, f"{len(left)} structures left, best: {words(left[0].chosen)}")
    first, best = runners[0], left[0]
    winner = best if best.score < (1.0 - MARGIN) * first.score else first
    return Race(winner.chosen, {words(runner.chosen): runner.score for runner in runners})


def words(chosen: Mapping[str, Word]) -> str:
    """Choices as one line, such as "cone elliptic, condim 4"."""
    return ", ".join(f"{option} {value}" for option, value in chosen.items())


def _run(
    runner: _Runner, fitted: Sequence[Episode], judging: Sequence[Episode], prior: Prior, budget: int, seed: int
) -> None:
    """Go on with a candidate's fit, and score it."""
    scenario = runner.scenario
    steps = scenario.window_steps
    every = cut(scenario, fitted, steps, stride=max(1, steps // 2))
    windows = choose(scenario, every, WINDOWS, np.random.default_rng(seed))
    with MujocoSimulator(scenario) as simulator:
        if len(windows):
            loss = with_zeros(Loss(scenario, simulator, windows, prior, origin=runner.point))
            runner.point = search_cmaes(loss, budget, seed, ignore).point
            values = loss.values(runner.point)
        else:
            values = scenario.space.to_values(prior.mean)
        runner.score = _score(scenario, simulator, judging, values)


def _score(scenario: Scenario, simulator: MujocoSimulator, episodes: Sequence[Episode], values: np.ndarray) -> float:
    """Geometric mean over the observed channels of the RMS error of replays, each in the channel's noise."""
    righted = put_right(scenario, simulator, episodes, values)
    errors = channel_rms(scenario, righted, replay(scenario, simulator, righted, values))
    ratios = [max(errors[each.channel.name], 1e-12) / each.noise for each in scenario.observed]
    finite = np.nan_to_num(np.log(ratios), nan=np.inf, posinf=np.inf)
    return float(np.exp(np.mean(finite)))
