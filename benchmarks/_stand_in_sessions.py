"""Parts of `strangers.py` on stand-ins: what several sessions know, and intervals where the model is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
from _common import Figure, kept
from calibration import Pusher

from rsr.calibration import (
    Calibration,
    Effort,
    calibrator,
    load_calibration,
    next_prior,
    save_calibration,
    start_calibration,
    start_prior,
)
from rsr.common import derive_seed, ignore
from rsr.config import TuneConfig
from rsr.realities import CollectionPlan, StandIn
from rsr.realities._truth import draw_truth
from rsr.scenarios import Scenario, load_scenario
from rsr.sessions import Session

SESSIONS, SEEDS, FITS = 3, 5, 30
FIRST_SEED = 300
"""Stand-ins from here on were not looked at while anything was designed."""
EPISODES = 32
NONE: Mapping[str, float] = {}
CHANGE = {"table_friction": 1.4}
"""Before the last session, times what the stand-in hides."""
QUICK = Effort(budget=48, max_windows=12)


def sessions_figures(quick: bool, seeds: int, keep: Path | None) -> dict[str, Figure]:
    """See `strangers.py`, sessions."""
    tally = _Sessions()
    for seed in range(FIRST_SEED, FIRST_SEED + (1 if quick else seeds)):
        before = start_calibration(load_scenario("push_cube"))
        for number in range(1, SESSIONS + 1):
            found = _calibrated(seed, number, before, quick, keep)
            tally.count(number, before, found)
            truth = draw_truth(seed, load_scenario("push_cube")).parameters
            tally.held.setdefault(number, []).extend(inside for _, inside in _holding(found, truth))
            before = found
        same, other = (_calibrated(seed, SESSIONS + 1, before, quick, keep, each) for each in ({}, CHANGE))
        tally.false_alarms += len(_changed(same))
        tally.noticed += int(set(CHANGE) <= _changed(other))
    return tally.figures()


def _calibrated(
    seed: int, number: int, before: Calibration, quick: bool, keep: Path | None, change: Mapping[str, float] = NONE
) -> Calibration:
    """Fit one session as the loop does, or take the fit that an interrupted run left."""
    folder = None if keep is None else keep / "-".join(["sessions", str(seed), str(number), *change])
    if folder is not None and (folder / "calibration.json").exists():
        return load_calibration(folder)
    scenario = load_scenario("push_cube")
    session = recorded(scenario, seed, number, change)
    fitting = calibrator(TuneConfig(fit_episodes=EPISODES // 2), *([QUICK] if quick else []))
    prior = next_prior(scenario, before)
    found = fitting.fit(scenario, (session,), prior, derive_seed(seed, "session", number), ignore)
    if folder is not None:
        save_calibration(found, folder)
    return found


def _changed(found: Calibration) -> set[str]:
    """Parameters that a fit says have changed."""
    return {warning.split()[0] for warning in found.warnings if " has changed since " in warning}


def recorded(scenario: Scenario, seed: int, number: int, change: Mapping[str, float] = NONE) -> Session:
    plan = CollectionPlan(f"session-{number:03d}", episodes=EPISODES, seed=derive_seed(seed, "recording", number))
    return StandIn(scenario, seed, changed=dict(change) or None).collect(Pusher(), plan, ignore)  # pyright: ignore[reportArgumentType]


@dataclass
class _Sessions:
    widths: dict[int, list[np.ndarray]] = field(default_factory=dict)
    lost: int = 0
    held: dict[int, list[bool]] = field(default_factory=dict)
    noticed: int = 0
    false_alarms: int = 0

    def count(self, number: int, before: Calibration, found: Calibration) -> None:
        self.widths.setdefault(number, []).append(np.sqrt(np.diag(found.covariance)))
        self.lost += sum(
            before.estimates[name].verdict == "identified" != each.verdict for name, each in found.estimates.items()
        )
        self.false_alarms += len(_changed(found))

    def figures(self) -> dict[str, Figure]:
        first, last = (np.array(self.widths[number]) for number in (1, SESSIONS))
        return {
            f"width_ratio_after_{SESSIONS}_sessions": float(last.mean() / first.mean()),
            "sessions_coverage_first": float(np.mean(self.held[1])),
            "sessions_coverage_last": float(np.mean(self.held[SESSIONS])),
            "sessions_lost_identified": self.lost,
            "sessions_changes_noticed": self.noticed / len(first),
            "sessions_false_alarms": self.false_alarms,
        }


def misspecified_figures(quick: bool, fits: int, keep: Path | None) -> dict[str, Figure]:
    """See `strangers.py`, misspecified."""
    counts = np.zeros(4)
    for seed in range(FIRST_SEED, FIRST_SEED + (1 if quick else fits)):
        one = kept(keep, f"misspecified-{seed}", partial(_covered, seed, quick))
        counts += [one[name] for name in ("all", "inside", "identified", "identified_inside")]
    every, inside, identified, identified_inside = counts
    return {
        "coverage_misspecified": inside / max(1, every),
        "identified_coverage_misspecified": identified_inside / max(1, identified),
        "misspecified_identified": int(identified),
        "misspecified_parameters": int(every),
    }


def _covered(seed: int, quick: bool) -> dict[str, Figure]:
    scenario = load_scenario("push_cube")
    fitting = calibrator(TuneConfig(fit_episodes=EPISODES // 2), *([QUICK] if quick else []))
    session = recorded(scenario, seed, 1)
    found = fitting.fit(scenario, (session,), start_prior(scenario), derive_seed(seed, "misspecified"), ignore)
    held = dict(_holding(found, draw_truth(seed, scenario).parameters))
    sure = [name for name in held if found.estimates[name].verdict == "identified"]
    return {
        "all": len(held),
        "inside": sum(held.values()),
        "identified": len(sure),
        "identified_inside": sum(held[name] for name in sure),
        "missed": " ".join(name for name, inside in held.items() if not inside),
    }


def _holding(found: Calibration, truth: dict[str, float]) -> Iterator[tuple[str, bool]]:
    for name, each in found.estimates.items():
        yield name, bool(each.lower <= truth[name] <= each.upper)
