"""A calibration on disk: `calibration.json`, `trajectories.npz` (replays), `posterior.npz` (samples).

Equal results have equal bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from rsr.calibration.interface import Calibration, Checks, Estimate, Evidence, Misfit, Replays
from rsr.common import DAMAGED, CalibrationError, advice, new_key, read_arrays, read_json, write_arrays, write_json

DOCUMENT = "calibration.json"
TRAJECTORIES = "trajectories.npz"
POSTERIOR = "posterior.npz"


def save_calibration(calibration: Calibration, folder: Path) -> None:
    """Write a calibration into a folder; replays and posterior samples only if it has them."""
    document = {
        "scenario": calibration.scenario,
        "method": calibration.method,
        "status": calibration.status,
        "parameters": [{"name": name, **asdict(each)} for name, each in calibration.estimates.items()],
        "covariance": calibration.covariance.tolist(),
        "shared": None if calibration.shared is None else calibration.shared.tolist(),
        "data_std": dict(calibration.data_std),
        "degrees": calibration.degrees,
        "evidence": asdict(calibration.evidence),
        "trace": calibration.trace.tolist(),
        "warnings": list(calibration.warnings),
        "checks": asdict(calibration.checks),
        "misfits": {name: asdict(each) for name, each in calibration.misfits.items()},
        "rejected": dict(calibration.rejected),
        "structure": dict(calibration.structure),
        "structure_losses": dict(calibration.structure_losses),
    }
    write_json(folder / DOCUMENT, document)
    if calibration.replays is not None:
        write_arrays(folder / TRAJECTORIES, vars(calibration.replays))
    # Samples of an earlier calibration in this folder would be read as those of this one.
    (folder / POSTERIOR).unlink(missing_ok=True)
    if calibration.samples is not None:
        write_arrays(folder / POSTERIOR, {"samples": calibration.samples})


def load_calibration(folder: Path) -> Calibration:
    """Read what `save_calibration` wrote, but for the replays (`load_replays`).

    Raises:
        CalibrationError: the folder holds no calibration, or a damaged one.
    """
    path = folder / DOCUMENT
    try:
        document = read_json(path)
        _refuse_old_names(path, document)
        return replace(_calibration(document), samples=_samples(folder / POSTERIOR))
    except DAMAGED as error:
        raise _unreadable(path, error) from error


def _refuse_old_names(path: Path, document: Mapping[str, Any]) -> None:
    for key in document:
        if new := new_key(key):
            raise CalibrationError(got=f"'{key}'", expected=f"'{new}'", where=str(path), next_step=advice(new))


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


def _samples(path: Path) -> np.ndarray | None:
    if not path.is_file():
        return None
    try:
        return read_arrays(path)["samples"]
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
        shared=None if document.get("shared") is None else np.array(document["shared"], float),
        data_std=document.get("data_std", {}),
        degrees=document.get("degrees", 1),
        evidence=Evidence(**{**evidence, **known}),
        trace=np.array(document["trace"], float).reshape(-1, 2),
        warnings=tuple(document["warnings"]),
        checks=Checks(**document.get("checks", {})),
        misfits={name: Misfit(**each) for name, each in document.get("misfits", {}).items()},
        rejected=document.get("rejected", {}),
        structure=document.get("structure", {}),
        structure_losses=document["structure_losses"],
    )
