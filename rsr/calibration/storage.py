"""A calibration on disk: `calibration.json` to read, `trajectories.npz` to draw. Equal results have equal bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from rsr.calibration.contract import Calibration, Checks, Estimate, Evidence, Replays
from rsr.errors import CalibrationError
from rsr.files import DAMAGED, read_arrays, read_json, write_arrays, write_json

DOCUMENT = "calibration.json"
TRAJECTORIES = "trajectories.npz"


def save_calibration(calibration: Calibration, folder: Path) -> None:
    """Write a calibration into a folder; `trajectories.npz` only if it holds replays."""
    document = {
        "scenario": calibration.scenario,
        "method": calibration.method,
        "status": calibration.status,
        "parameters": [{"name": name, **asdict(each)} for name, each in calibration.estimates.items()],
        "covariance": calibration.covariance.tolist(),
        "evidence": asdict(calibration.evidence),
        "trace": calibration.trace.tolist(),
        "warnings": list(calibration.warnings),
        "checks": asdict(calibration.checks),
        "structure": dict(calibration.structure),
        "race": dict(calibration.race),
    }
    write_json(folder / DOCUMENT, document)
    if calibration.replays is not None:
        write_arrays(folder / TRAJECTORIES, vars(calibration.replays))


def load_calibration(folder: Path) -> Calibration:
    """Read what `save_calibration` wrote, but for the replays (`load_replays`).

    Raises:
        CalibrationError: the folder holds no calibration, or a damaged one.
    """
    path = folder / DOCUMENT
    try:
        return _calibration(read_json(path))
    except DAMAGED as error:
        raise _unreadable(path, error) from error


def load_replays(folder: Path) -> Replays:
    """Read the held-out episodes that were stored with a calibration.

    Raises:
        CalibrationError: there are none, or the file is damaged.
    """
    path = folder / TRAJECTORIES
    try:
        return Replays(**read_arrays(path))
    except DAMAGED as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> CalibrationError:
    missing = not path.exists()
    return CalibrationError(
        got="no such file" if missing else f"a damaged file ({type(error).__name__}: {error})",
        expected="a calibration as it was written",
        where=str(path),
        next_step="Tune first (the step `tune`, or `rsr calibrate`)." if missing else "Restore it with `dvc checkout`.",
    )


def _calibration(document: Mapping[str, Any]) -> Calibration:
    evidence = document["evidence"]
    known = {
        "channels": {name: tuple(pair) for name, pair in evidence["channels"].items()},
        "fitted": tuple(evidence["fitted"]),
        "held_out": tuple(evidence["held_out"]),
    }
    parameters = [dict(each) for each in document["parameters"]]
    return Calibration(
        scenario=document["scenario"],
        method=document["method"],
        estimates={each.pop("name"): Estimate(**each) for each in parameters},
        covariance=np.array(document["covariance"], float),
        status=document["status"],
        evidence=Evidence(**{**evidence, **known}),
        trace=np.array(document["trace"], float).reshape(-1, 2),
        warnings=tuple(document["warnings"]),
        checks=Checks(**document.get("checks", {})),
        structure=document.get("structure", {}),
        race=document.get("race", {}),
    )
