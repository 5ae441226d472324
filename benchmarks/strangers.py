"""What a stranger's first calibration predicts, with defaults only, of real objects that nothing here was tuned to.

    python benchmarks/strangers.py --keep DIR --json strangers.json

Fits and parts are kept in DIR, so that an interrupted run goes on; delete `elbow-rsr-*` there to fit again with a
changed `rsr`, against the same baseline. `--parts elbow` leaves the others out, `--draws N` fits fewer sets of tosses;
--quick makes all of it small. A part whose recordings are not there (RSR_SHARED_DATA, by default `../shared/data`) is
left out with a word.

elbow: `examples/elbow`, two hinged bars thrown onto a board. A stranger records 60 tosses, of which `rsr` fits 30 and
checks itself by the rest, or 3. *Plain* is `baselines/plain_cmaes.py` on those 30 or 3. Judges are 150 other tosses,
which no fit of any draw saw. Errors are mean distances, averaged over the draws; whole tosses begin at
the first frame, windows every 0.27 s. Ratios are of means over the judges; their `_low` and `_high` are the 95 %
interval of a bootstrap over these tosses, both methods resampled alike. Below 1, `rsr` is better.

    elbow_N_QUANTITY_over_plain                 position, rotation, joint: whole tosses, N of 30 and 3 fitted
    elbow_N_window_QUANTITY_over_plain          the same over windows
    elbow_N_over_plain, elbow_N_over_nominal    geometric mean of the three ratios of whole tosses
    elbow_N_METHOD_QUANTITY_UNIT                the errors themselves: rsr, plain; nominal without N; percent of a bar's
                                                0.1 m; `window_` before the quantity where they are of windows
    elbow_N_METHOD_cpu_s                        processor time of a fit, mean; that of `rsr` with what it compiles
    elbow_N_no_improvement                      share of the draws in which `rsr` gave back its nominal values

cube, pendulum: those of `real_recordings.py`.

    cube_N_position_percent, cube_N_rotation_deg    `toss_N_...` there, start `free_flight`: percent of the cube's side;
                                                    three draws of 30 tosses, ten of 3; `_se` is the standard error
    cube_N_draws_worse_than_nominal                 draws that predict worse than the scenario's own values
    pendulum_worst_rad                              the worst of its `pendulum_RUNS_joint_rmse_rad`

arm: a WidowX 250s of MuJoCo Menagerie with 29 hidden numbers (gains, damping, armature and friction of six joints,
payload, delay), recorded by plain MuJoCo with 1 mrad of encoder noise; `rsr`'s defaults, 12 runs of 8 s fitted.

    arm29_cpu_s                 processor time of the fit, with what it compiles
    arm29_error_over_noise      whole runs of 8 s that nothing saw, open loop in plain MuJoCo: RMS error over the noise;
                                `arm29_nominal_...` that of the scenario's values
    arm29_coverage              share of 95 % intervals that hold
    arm29_width_over_bound      median width over that of the Cramer-Rao bound, in which the scenario's prior counts
    arm29_sysid_...             the same of `baselines/sysid_whole_runs.py`, MuJoCo's own optimiser on the whole runs

sessions: sessions of a push_cube stand-in, from five seeds; unchanged but for the last.

    width_ratio_after_3_sessions                    mean standard deviation after three sessions over that after one
    sessions_coverage_first, sessions_coverage_last share of 95 % intervals that hold, after one session and after three
    sessions_lost_identified                        parameters that were *identified* and no longer are, a session later
    sessions_changes_noticed                        share of fourth sessions, recorded with 1.4 times the friction,
                                                    in which that is named as changed
    sessions_false_alarms                           parameters that are named in sessions where nothing changed, in all

misspecified: fits to 30 stand-ins, whose physics no parameter expresses; their truth is what they hide.

    coverage_misspecified, identified_coverage_misspecified     share of 95 % intervals that hold

search: `methods` of `calibration.py` on six stand-ins; medians.

    steps_ratio_within_1_percent, wall_ratio_within_1_percent   of `cmaes` over `mjx`, to 1 % above where `cmaes` ends
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import numpy as np
from _arm29 import ROBOT, arm_figures
from _common import Figure, kept, run
from _stand_in_sessions import FIRST_SEED, FITS, misspecified_figures, sessions_figures
from baselines.plain_cmaes import fit_plain
from calibration import methods
from real_recordings import DRAWS as CUBE_DRAWS, SPLITS, pendulum_figures, shared, toss_figures
from rich.console import Console

from rsr.calibration import Effort, calibrator, split, start_prior
from rsr.common import generator, ignore
from rsr.config import TuneConfig
from rsr.scenarios import Scenario, load_scenario, target_of
from rsr.sessions import Session, read_lines, read_session
from rsr.sessions.ingest import ingest
from rsr.simulators import evaluate_recording

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "elbow"
TOSSES = "elbow_tosses.parquet"
COUNTS = (30, 3)
RECORDED = {30: 60, 3: 3}
"""Tosses that `rsr` is given, of which it fits so many; of three all, judged in turn."""
DRAWS, JUDGES, QUICK_JUDGES, STAND_INS = 5, 150, 12, 6
EVALUATIONS = {30: 1920, 3: 4800}
"""Of the baseline: as much processor time as `rsr` took with its method `mjx` when this was written."""
QUICK_EVALUATIONS = 48
QUICK_EFFORT = Effort(budget=48, max_windows=12)
UNITS = {"position": "percent", "rotation": "deg", "joint": "deg"}
STARTS = {"first": "", "windows": "window_"}
RESAMPLES = 2000
Errors = Mapping[str, np.ndarray]
"""`position`, `window_position`, ... -> one error of each judge [J]."""


def measure(quick: bool, parts: str, draws: int, keep: Path | None) -> dict[str, Figure]:
    """Go through the parts that are asked for and have recordings."""
    if quick and keep is not None:  # small fits must never pass for whole ones
        keep = keep / "quick"
    makers: dict[str, tuple[str, Callable[[], Mapping[str, Figure]]]] = {
        "elbow": (TOSSES, partial(elbow_figures, quick, 1 if quick else draws, keep)),
        "cube": ("contactnets_cube_tosses.parquet", partial(cube_figures, quick, keep)),
        "pendulum": ("double_pendulum.parquet", partial(pendulum_worst, quick)),
        "arm": (ROBOT, partial(arm_figures, quick)),
        "sessions": ("", partial(sessions_figures, quick, draws, keep)),
        "misspecified": ("", partial(misspecified_figures, quick, FITS, keep)),
        "search": ("", partial(search_figures, quick, keep)),
    }
    figures: dict[str, Figure] = {}
    if unknown := set(parts.split(",")) - set(makers):
        raise SystemExit(f"--parts: got {', '.join(sorted(unknown))}; expected some of {', '.join(makers)}")
    for name in parts.split(","):
        file, make = makers[name]
        if file and not shared(file).exists():
            Console(stderr=True).print(f"{name} left out: no {shared(file)}; RSR_SHARED_DATA names another folder")
        else:  # parts of many fits keep these, and their figures follow quickly for however many draws are asked for
            figures |= kept(keep if name in ("pendulum", "arm") else None, name, make)
    return figures


def cube_figures(quick: bool, keep: Path | None) -> dict[str, Figure]:
    draws = dict.fromkeys(COUNTS, 1) if quick else CUBE_DRAWS
    found = toss_figures(draws, keep)
    short = {"position_percent": "position_error_percent", "rotation_deg": "rotation_error_deg"}
    short |= {f"{ours}_se": f"{theirs}_se" for ours, theirs in short.items()}
    short["draws_worse_than_nominal"] = "draws_worse_than_nominal"
    names = {f"cube_{count}_{ours}": f"toss_{count}_{theirs}" for count in COUNTS for ours, theirs in short.items()}
    return {ours: found[theirs] for ours, theirs in names.items() if theirs in found}


def pendulum_worst(quick: bool) -> dict[str, Figure]:
    return {"pendulum_worst_rad": max(map(float, pendulum_figures(SPLITS[-1:] if quick else SPLITS).values()))}


def search_figures(quick: bool, keep: Path | None) -> dict[str, Figure]:
    seeds = range(FIRST_SEED, FIRST_SEED + (1 if quick else STAND_INS))
    found = [kept(keep, f"search-{seed}", partial(methods, seed, {}, quick)) for seed in seeds]
    return {
        f"{kind}_ratio_within_1_percent": float(
            np.median([each[f"{kind}_ratio_cmaes_over_mjx_within_1_percent"] for each in found])
        )
        for kind in ("steps", "wall")
    }


def elbow_figures(quick: bool, draws: int, keep: Path | None) -> dict[str, Figure]:
    """Fit what is not kept, and judge all."""
    scenario, session = elbow()
    judges, others = drawn_judges(session, QUICK_JUDGES if quick else JUDGES)
    nominal = errors(scenario, session, judges, {})
    figures = absolute("elbow_nominal", nominal)
    for count in COUNTS:
        found: dict[str, list[Errors]] = {"rsr": [], "plain": []}
        fits: dict[str, list[dict[str, Figure]]] = {"rsr": [], "plain": []}
        for draw in range(draws):
            recorded = subset(session, generator(draw, "tosses", count).permutation(others)[: RECORDED[count]])
            for method, fit in (("rsr", fitted_by_rsr), ("plain", fitted_plainly)):
                fits[method].append(
                    kept(keep, f"elbow-{method}-{count}-{draw}", partial(fit, scenario, recorded, count, draw, quick))
                )
                found[method].append(errors(scenario, session, judges, fits[method][-1]))
        rsr, plain = (mean_of(found[method]) for method in ("rsr", "plain"))
        figures |= absolute(f"elbow_{count}_rsr", rsr) | absolute(f"elbow_{count}_plain", plain)
        figures |= ratios(f"elbow_{count}", rsr, plain, nominal)
        for method in fits:
            figures[f"elbow_{count}_{method}_cpu_s"] = float(np.mean([fit["cpu_s"] for fit in fits[method]]))
        kept_prior = [fit["status"] == "no improvement" for fit in fits["rsr"]]
        figures[f"elbow_{count}_no_improvement"] = float(np.mean(kept_prior))
    return figures


@cache
def elbow() -> tuple[Scenario, Session]:
    """The example's scenario, and the tosses as its README has them prepared and ingested."""
    scenario = load_scenario(str(EXAMPLE / "scenario.yaml"))
    with tempfile.TemporaryDirectory() as made:
        prepared = Path(made) / "tosses.parquet"
        command = [sys.executable, str(EXAMPLE / "prepare.py"), str(shared(TOSSES)), str(prepared)]
        subprocess.run(command, check=True, capture_output=True)
        lines = read_lines(EXAMPLE / "mapping.yaml")
        folder = ingest([prepared], target_of(scenario), Path(made) / "data", given=lines, keep="hash").folder
        return scenario, read_session(folder)


def drawn_judges(session: Session, count: int) -> tuple[tuple[int, ...], np.ndarray]:
    """Episodes that judge, always the same, and all others, to draw fits from."""
    order = generator(0, "judges").permutation(len(session.episodes))
    return tuple(sorted(order[:JUDGES][:count].tolist())), np.sort(order[JUDGES:])


def subset(session: Session, chosen: np.ndarray) -> Session:
    """A session of some of the episodes, as if nothing else had been recorded."""
    episodes = (session.episodes[index] for index in sorted(chosen.tolist()))
    return replace(session, episodes=tuple(replace(each, index=index) for index, each in enumerate(episodes)))


def fitted_by_rsr(scenario: Scenario, recorded: Session, count: int, draw: int, quick: bool) -> dict[str, Figure]:
    """Values, processor time and what it says of itself, of a fit with defaults."""
    begun = time.process_time()
    if quick:  # without MJX, which would compile for minutes
        fitting = calibrator(TuneConfig(method="cmaes", fit_episodes=count), QUICK_EFFORT)
    else:
        fitting = calibrator(TuneConfig(fit_episodes=count))
    found = fitting.fit(scenario, (recorded,), start_prior(scenario), draw, ignore)
    spent = time.process_time() - begun
    verdicts = [each.verdict for each in found.estimates.values()]
    about = {"cpu_s": spent, "status": found.status, "identified": verdicts.count("identified")}
    return about | {name: each.value for name, each in found.estimates.items()}


def fitted_plainly(scenario: Scenario, recorded: Session, count: int, draw: int, quick: bool) -> dict[str, Figure]:
    """The same of the baseline, on the tosses that `rsr` fits of these."""
    fitted, _ = split(scenario, recorded.episodes, count, generator(draw, "split"))
    begun = time.process_time()
    evaluations = QUICK_EVALUATIONS if quick else EVALUATIONS[count]
    values = fit_plain(scenario, [recorded.episodes[index] for index in fitted], evaluations, draw)
    return {"cpu_s": time.process_time() - begun, **scenario.space.mapping(values)}


def errors(scenario: Scenario, session: Session, judges: tuple[int, ...], values: Mapping[str, Figure]) -> Errors:
    """Every judge's errors with the parameters among `values`."""
    params = {name: float(values[name]) for name in scenario.space.names if name in values}
    found: dict[str, np.ndarray] = {}
    for start, prefix in STARTS.items():
        each = evaluate_recording(scenario, session, params, start, judges)["per_episode"]
        for quantity, unit in UNITS.items():
            metric = f"{quantity}_error_{unit}"
            found[prefix + quantity] = np.array([each[str(index)][metric] for index in judges])
    return found


def mean_of(draws: list[Errors]) -> Errors:
    return {name: np.mean([each[name] for each in draws], axis=0) for name in draws[0]}


def absolute(prefix: str, found: Errors) -> dict[str, Figure]:
    return {f"{prefix}_{name}_{UNITS[name.removeprefix('window_')]}": float(found[name].mean()) for name in found}


def ratios(prefix: str, rsr: Errors, plain: Errors, nominal: Errors) -> dict[str, Figure]:
    """All ratios with their intervals; the same tosses are drawn for numerator and denominator."""
    everyone = np.arange(len(rsr["position"]))[None]
    again = generator(0, "bootstrap").integers(0, everyone.size, (RESAMPLES, everyone.size))
    figures: dict[str, Figure] = {}

    def add(key: str, ratio: Callable[[np.ndarray], np.ndarray]) -> None:
        low, high = np.percentile(ratio(again), [2.5, 97.5])
        figures.update({key: float(ratio(everyone)[0]), f"{key}_low": float(low), f"{key}_high": float(high)})

    for name in rsr:
        add(f"{prefix}_{name}_over_plain", lambda rows, name=name: _ratio(rsr, plain, name, rows))
    for other, than in (("plain", plain), ("nominal", nominal)):
        add(
            f"{prefix}_over_{other}",
            lambda rows, than=than: np.exp(np.mean([np.log(_ratio(rsr, than, name, rows)) for name in UNITS], axis=0)),
        )
    return figures


def _ratio(first: Errors, second: Errors, name: str, rows: np.ndarray) -> np.ndarray:
    return first[name][rows].mean(axis=1) / second[name][rows].mean(axis=1)


if __name__ == "__main__":
    run(measure, __doc__, parts="elbow,cube,pendulum,arm,sessions,misspecified,search", draws=DRAWS, keep=None)
