"""Evidence of an adaptation: figures for the chain of iterations, before and after, the learning curve, the page."""

from __future__ import annotations

from typing import Any

import numpy as np

from rsr.calibration import Calibration, load_calibration
from rsr.files import write_bytes, write_json, write_text
from rsr.learned.clash import (
    Comparison,
    Recordings,
    compare,
    learning_curve,
    load_surrogate,
    reproducible,
    strikes_of,
    write_comparison,
)
from rsr.learned.clash.calibration import Figures, Predicted, joined
from rsr.pipelines.clash.base import surrogate_dir
from rsr.pipelines.clash.calibration import predictor_in, strikes_in
from rsr.progress import Advance
from rsr.randomness import derive_seed
from rsr.reports.collision_page import render_collision_report
from rsr.reports.strikes import strike_picture
from rsr.scenarios import load_scenario
from rsr.scenarios.built_in.strike import RecordedStrikes
from rsr.sessions import read_session
from rsr.workspace import Workspace


def evaluate(workspace: Workspace, iteration: int, advance: Advance) -> None:
    """Write evaluation/: metrics.json, comparison.json, curve.json and adaptation.png."""
    config, folder = workspace.config(iteration), workspace.evaluation_dir(iteration)
    surrogate = load_surrogate(surrogate_dir(workspace))
    calibration = load_calibration(workspace.calibration_dir(iteration))
    scenario = load_scenario(config.scenario)
    recordings = strikes_of(scenario, [read_session(workspace.session_dir(iteration))])
    known = strikes_in(workspace.calibration_dir(iteration), surrogate.shape)
    held_out = _held_out(recordings, calibration)
    # Earlier iterations' strikes come first, so that the split keeps what the model knows apart from what judges it.
    every = known if held_out is None else joined(known, held_out)
    seed = derive_seed(config.seed, iteration, "evaluate")
    # Strikes that nothing was fitted to judge; where there are none, each judges models fitted without it.
    with reproducible(seed):
        found = compare(surrogate, every, len(known), seed, advance)
        curve = learning_curve(surrogate, every, seed=seed)
    judged = recordings.strikes if held_out is None else held_out
    # "Before" is the model of the iteration before, on the same strikes: the gain of this iteration alone.
    previous = predictor_in(workspace.calibration_dir(iteration - 1), surrogate)
    before = Predicted(judged, *previous(judged.strikes)).figures(surrogate.shape)
    write_comparison(folder / "comparison.json", found, curve)
    write_json(folder / "curve.json", [{"strikes": count, "accuracy": share} for count, share in curve.items()])
    write_bytes(folder / "adaptation.png", strike_picture(surrogate.shape, found, curve))
    document = {"iteration": iteration, "seed": config.seed, "shape": surrogate.shape.name}
    document |= _counts(recordings, known) | _figures(calibration, before, found)
    write_json(workspace.metrics_path(iteration), document)


def _held_out(recordings: Recordings, calibration: Calibration) -> RecordedStrikes | None:
    """The session's strikes that the model was not fitted to; None where it was fitted to all."""
    evidence = calibration.evidence
    episodes = set(evidence.held_out) - set(evidence.fitted)
    rows = np.flatnonzero([episode in episodes for episode in recordings.episodes])
    return recordings.strikes.take(rows) if len(rows) else None


def _counts(recordings: Recordings, known: RecordedStrikes) -> dict[str, int]:
    return {
        "episodes": len(recordings.strikes) + len(recordings.rejected),
        "rejected": len(recordings.rejected),
        "strikes_known": len(known),
    }


def _figures(calibration: Calibration, before: Figures, found: Comparison) -> dict[str, Any]:
    evidence = calibration.evidence
    return {
        "gap_before": evidence.gap_before,
        "gap_after": evidence.gap_after,
        "accuracy_before": before.accuracy,
        "accuracy_after": found["adapted"].accuracy,
        "inside_90": found["adapted"].inside,
        "judged": found.how,
        "accuracy_law": found["law"].accuracy,
        "params": {name: estimate.value for name, estimate in calibration.estimates.items()},
        "verdicts": {name: estimate.verdict for name, estimate in calibration.estimates.items()},
    }


# Write the iteration's HTML page.


def report(workspace: Workspace, iteration: int, advance: Advance) -> None:
    """Write report.html: the evidence beside that of the iterations before it."""
    write_text(workspace.report_path(iteration), render_collision_report(workspace, iteration))
    advance(1.0, "written")
