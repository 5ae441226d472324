"""Does recording what `rsr plan` asks for tell more than recording anything else?

    error_planned     after eight planned episodes: root mean square error of the parameters, in standard deviations of
                      the scenario's prior
    error_fresh       the same after eight episodes of the same kinds, drawn without looking
    error_repeated    the same after eight recorded episodes again
    error_before      before any of these
    nats_*            0.5 log det of the posterior covariance before over after: the fit's own information gain
    seeds, cpu_seconds

push_cube; reality is the simulator itself with other parameters and noisy sensors, so the model is right and only what
the recordings tell decides. Every fit starts from the scenario's prior and sees twelve first episodes and the eight
added ones; half of them are fitted, the others judge.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
from _common import Figure, run

from rsr.calibration import Calibration, calibrator, start_prior
from rsr.common import derive_seed, generator, ignore
from rsr.config import TuneConfig
from rsr.planning import Candidate, make_candidates, make_plan
from rsr.scenarios import Scenario, load_scenario
from rsr.sessions import Card, Episode, Session
from rsr.simulators import MujocoSimulator

FIRST, ADDED, CANDIDATES = 12, 8, 48
TRUTH_SPREAD = 0.5
"""Hidden parameters lie about nominal with this share of the prior's standard deviation."""


def measure(quick: bool, seeds: int) -> dict[str, Figure]:
    """Add three kinds of sessions to a first one, in several hidden worlds."""
    begun = time.process_time()
    rounds = [one_round(load_scenario("push_cube"), seed) for seed in range(1 if quick else seeds)]
    names = rounds[0]
    return {
        **{name: float(np.mean([each[name] for each in rounds])) for name in names},
        "worlds_where_planned_beats_fresh": sum(each["error_planned"] < each["error_fresh"] for each in rounds),
        "seeds": len(rounds),
        "cpu_seconds": time.process_time() - begun,
    }


def one_round(scenario: Scenario, seed: int) -> dict[str, float]:
    """One hidden world."""
    truth = hidden(scenario, seed)
    pushes = fresh(scenario, scenario.space.nominal, FIRST, derive_seed(seed, "first"))
    first = lived(scenario, truth, pushes, derive_seed(seed, "first sensors"))
    before = fitted(scenario, (first,), seed)
    plan = make_plan(scenario, (first,), before, candidates=CANDIDATES, seed=derive_seed(seed, "plan"))
    wanted = [name for name, _ in plan.session]
    chosen = {
        "planned": [each.candidate for each in plan.ranked if each.candidate.name in wanted],
        "fresh": fresh(scenario, before.vector(), ADDED, derive_seed(seed, "fresh")),
        "repeated": pushes[:ADDED],
    }
    figures = {"error_before": error(scenario, before, truth)}
    for name, candidates in chosen.items():
        added = lived(scenario, truth, candidates, derive_seed(seed, "sensors", name))
        after = fitted(scenario, (first, added), seed)
        figures[f"error_{name}"] = error(scenario, after, truth)
        figures[f"nats_{name}"] = narrowed(before, after)
    return figures


def hidden(scenario: Scenario, seed: int) -> np.ndarray:
    space, rng = scenario.space, generator(seed, "hidden world")
    centre = space.to_coordinates(space.nominal)
    drawn = space.to_values(centre + TRUTH_SPREAD * space.prior_std * rng.standard_normal(len(space)))
    return np.clip(drawn, space.lower, space.upper)


def fresh(scenario: Scenario, params: np.ndarray, count: int, seed: int) -> list[Candidate]:
    """Scripted pushes as a plan considers them, unranked."""
    still = Session(
        Card("none", scenario.name, "none", True, scenario.control_dt_s), scenario.channels, (at_rest(scenario),)
    )
    every = make_candidates(scenario, (still,), params, 2 * count, seed)
    return [each for each in every if each.kind == "push"][:count]


def at_rest(scenario: Scenario) -> Episode:
    """A recording in which nothing happens; candidates want something to repeat."""
    rows = scenario.history_steps + 8
    measured = scenario.measure(
        np.tile(np.concatenate([scenario.base_model.qpos0, np.zeros(scenario.base_model.nv)]), (rows, 1))
    )
    sent = {scenario.command: np.tile(scenario.base_model.qpos0[7:], (rows, 1))} if scenario.command else {}
    return Episode(0, scenario.control_dt_s * np.arange(rows), {**measured, **sent})


def lived(scenario: Scenario, truth: np.ndarray, candidates: Sequence[Candidate], seed: int) -> Session:
    """Execute candidates open loop in the hidden world, and record them through noisy sensors."""
    rng, episodes = np.random.default_rng(seed), []
    with MujocoSimulator(scenario) as simulator:
        for index, each in enumerate(candidates):
            states = simulator.rollout(each.start[None], each.commands[None], truth)[0]
            values = scenario.measure(states)
            for observed in scenario.observed:
                name = observed.channel.name
                values[name] = values[name] + observed.noise * rng.standard_normal(values[name].shape)
            sent = each.commands[scenario.history_steps :]
            values[scenario.command or ""] = np.concatenate([sent, sent[-1:]])
            episodes.append(Episode(index, scenario.control_dt_s * np.arange(len(states)), values))
    card = Card(f"session-{seed}", scenario.name, "hidden world", True, scenario.control_dt_s)
    return Session(card, scenario.channels, tuple(episodes))


def fitted(scenario: Scenario, sessions: tuple[Session, ...], seed: int) -> Calibration:
    settings = TuneConfig(method="cmaes", fit_episodes=FIRST + ADDED)
    return calibrator(settings).fit(scenario, sessions, start_prior(scenario), seed, ignore)


def error(scenario: Scenario, calibration: Calibration, truth: np.ndarray) -> float:
    space = scenario.space
    off = (space.to_coordinates(calibration.vector()) - space.to_coordinates(truth)) / space.prior_std
    return float(np.sqrt(np.mean(np.square(off))))


def narrowed(before: Calibration, after: Calibration) -> float:
    logs = [np.linalg.slogdet(each.covariance)[1] for each in (before, after)]
    return float(0.5 * (logs[0] - logs[1]))


if __name__ == "__main__":
    run(measure, __doc__, seeds=4)
