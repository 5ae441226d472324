"""What the adaptation is worth: figures for the chain of iterations, all methods side by side, the learning curve."""

from __future__ import annotations

from typing import Any

import numpy as np

from rsr.calibration import Calibration, load_calibration
from rsr.clash import load_surrogate
from rsr.clash.comparison import Comparison, compare, learning_curve, write_comparison
from rsr.clash.learning import reproducible
from rsr.clash.methods import METHODS, NEEDS
from rsr.clash.recordings import Recordings, strikes_of
from rsr.clash.tuning import Figures, Predicted, joined
from rsr.files import write_bytes, write_json
from rsr.progress import Advance
from rsr.randomness import derive_seed
from rsr.reports.strikes import strike_picture
from rsr.scenarios import load_scenario
from rsr.scenarios.strike import RecordedStrikes
from rsr.sessions import read_session
from rsr.steps.clash.base import clash_settings, surrogate_dir
from rsr.steps.clash.calibration import predictor_in, strikes_in
from rsr.workspace import Workspace


def evaluate(workspace: Workspace, iteration: int, advance: Advance) -> None:
    """Write evaluation/: metrics.json, comparison.json, curve.json and adaptation.png."""
    config, folder = workspace.config(iteration), workspace.evaluation_dir(iteration)
    surrogate = load_surrogate(surrogate_dir(workspace))
    calibration = load_calibration(workspace.calibration_dir(iteration))
    scenario = load_scenario(config.scenario)
    recordings = strikes_of(scenario, [read_session(workspace.session_dir(iteration))])
    known = strikes_in(workspace.calibration_dir(iteration), surrogate.shape)
    unseen = _unseen(recordings, calibration)
    every = known if unseen is None else joined(known, unseen)
    seed = derive_seed(config.seed, iteration, "evaluate")
    # Strikes that nothing was fitted to judge; where there are none, each judges models fitted without it.
    with reproducible(seed):
        found = compare({"default": surrogate}, every, _methods(workspace, iteration), len(known), seed, advance)
        curve = learning_curve(surrogate, every, seed=seed)
    judged = recordings.strikes if unseen is None else unseen
    previous = predictor_in(workspace.calibration_dir(iteration - 1), surrogate)
    before = Predicted(judged, *previous(judged.strikes)).figures(surrogate.shape)
    write_comparison(folder / "comparison.json", found, curve)
    write_json(folder / "curve.json", [{"strikes": count, "accuracy": share} for count, share in curve.items()])
    write_bytes(folder / "adaptation.png", strike_picture(surrogate.shape, found, curve))
    document = {"iteration": iteration, "seed": config.seed, "shape": surrogate.shape.name}
    document |= _counts(recordings, known) | _figures(calibration, before, found)
    write_json(workspace.metrics_path(iteration), document)


def _methods(workspace: Workspace, iteration: int) -> tuple[str, ...]:
    """The methods that need no surrogate of another recipe."""
    wanted = METHODS if clash_settings(workspace.config(iteration)).baselines else ("adapted", "identified")
    return tuple(name for name in wanted if NEEDS.get(name, "default") == "default")


def _unseen(recordings: Recordings, calibration: Calibration) -> RecordedStrikes | None:
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
        **{f"accuracy_{judged.name}": judged.accuracy for judged in found.methods},
        "params": {name: estimate.value for name, estimate in calibration.estimates.items()},
        "verdicts": {name: estimate.verdict for name, estimate in calibration.estimates.items()},
    }
