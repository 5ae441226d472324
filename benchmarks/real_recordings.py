"""What calibrations of real recordings predict of what they were not fitted to: tosses, and a double pendulum.

The recordings are those of `rsr data get contactnets` and `rsr data get double-pendulum`, as parquet files in the
folder that the environment variable RSR_SHARED_DATA names, by default `../shared/data`. Fits are those of
`rsr calibrate` with its defaults, figures those of `rsr evaluate --held-out`.

- toss_30_..., toss_3_...: fitted on so many tosses, the mean over three draws and over ten, by seeds 0, 1, ...; `_se`
  is its standard error by the scatter of the draws. Starts `free_flight` (no suffix) and `first`.
- toss_N_draws_worse_than_nominal: draws whose fit predicts the tosses that it did not see worse than the scenario's own
  values do, in position or in rotation (start `free_flight`).
- pendulum_RUNS_joint_rmse_rad: fitted on three runs, open loop over half seconds of the other three.

`--tosses 0` or `--pendulum 0` leaves that part out; with `--quick` one draw and one split. Draws are kept in
`--keep DIR`, so that an interrupted run goes on.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import numpy as np
from _common import Figure, kept, run

from rsr.calibration import calibrator, split, start_prior
from rsr.common import generator, ignore
from rsr.config import TuneConfig
from rsr.scenarios import Scenario, load_scenario, structured
from rsr.sessions import Session, read_contactnets, read_double_pendulum
from rsr.simulators import evaluate_recording

DRAWS = {30: 3, 3: 10}
"""Sets of tosses for each number that is fitted: the fewer, the more they scatter."""
SPLITS = ((0, 2, 4), (0, 1, 2), (3, 4, 5), (1, 3, 5))
"""Runs that are fitted: every second one, those of one half, those of the other, the others of every second."""


def measure(quick: bool, keep: Path | None, tosses: int = 1, pendulum: int = 1) -> dict[str, Figure]:
    """Fit and judge both, or one of them."""
    figures: dict[str, Figure] = {}
    if tosses:
        figures |= toss_figures(dict.fromkeys(DRAWS, 1) if quick else DRAWS, keep)
    if pendulum:
        figures |= pendulum_figures(SPLITS[-1:] if quick else SPLITS)
    return figures


def toss_figures(draws: Mapping[int, int], keep: Path | None) -> dict[str, Figure]:
    scenario, session = load_scenario("cube_toss"), read_contactnets(shared("contactnets_cube_tosses.parquet"))
    figures: dict[str, Figure] = {}
    for count, seeds in draws.items():
        fits = [partial(judged, scenario, session, count, seed, ("free_flight", "first")) for seed in range(seeds)]
        found = [kept(keep, f"toss-{count}-{seed}", fit) for seed, fit in enumerate(fits)]
        for name in (each for each in found[0] if not each.startswith("nominal_")):
            over_draws = np.array([float(each[name]) for each in found])
            figures[f"toss_{count}_{name}"] = float(over_draws.mean())
            if seeds > 1:
                figures[f"toss_{count}_{name}_se"] = float(over_draws.std(ddof=1) / np.sqrt(seeds))
        figures[f"toss_{count}_draws_worse_than_nominal"] = sum(
            any(each[metric.name] > each[f"nominal_{metric.name}"] for metric in scenario.evaluation.metrics)
            for each in found
        )
    return figures


def pendulum_figures(splits: tuple[tuple[int, ...], ...]) -> dict[str, Figure]:
    scenario, session = load_scenario("double_pendulum"), read_double_pendulum(shared("double_pendulum.parquet"))
    figures: dict[str, Figure] = {}
    for runs in splits:
        found = judged(scenario, session, len(runs), seed_of(scenario, session, runs), ("windows",))
        figures[f"pendulum_{''.join(map(str, runs))}_joint_rmse_rad"] = found["joint_rmse_rad"]
    return figures


def judged(scenario: Scenario, session: Session, count: int, seed: int, starts: tuple[str, ...]) -> dict[str, float]:
    """Fit some episodes and judge by all others; figures of every start but the first carry its name.

    Those of the scenario's own values, from the first start, are called `nominal_...`.
    """
    calibration = calibrator(TuneConfig(fit_episodes=count)).fit(
        scenario, (session,), start_prior(scenario), seed, ignore
    )
    values = {name: each.value for name, each in calibration.estimates.items()}
    chosen = structured(scenario, calibration.structure)
    figures = {}
    for start in starts:
        name = scenario.evaluation.start(start)
        found = evaluate_recording(chosen, session, values, name, calibration.evidence.held_out)
        suffix = "" if start == starts[0] else f"_{start}"
        figures |= {f"{metric.name}{suffix}": found[metric.name] for metric in scenario.evaluation.metrics}
    first = scenario.evaluation.start(starts[0])
    nominal = evaluate_recording(scenario, session, {}, first, calibration.evidence.held_out)
    return figures | {f"nominal_{metric.name}": nominal[metric.name] for metric in scenario.evaluation.metrics}


def seed_of(scenario: Scenario, session: Session, runs: tuple[int, ...]) -> int:
    """The first seed by which a calibration draws just these runs to fit."""
    seed = 0
    while split(scenario, session.episodes, len(runs), generator(seed, "split"))[0] != runs:
        seed += 1
    return seed


def shared(name: str) -> Path:
    """A file of real recordings, which the repository does not carry."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    return Path(os.environ.get("RSR_SHARED_DATA", beside)) / name


if __name__ == "__main__":
    run(measure, __doc__, keep=None, tosses=1, pendulum=1)
