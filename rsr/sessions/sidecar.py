"""What was derived of clocks, kept beside the recording: `data/<scenario>/<session>.alignment.json`.

The recording itself is never touched. The sidecar names the bytes that it was derived from, so that it cannot be taken
for another recording's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rsr.errors import SessionError
from rsr.files import DAMAGED, read_json, sha256, write_json
from rsr.sessions._lerobot_v3 import DATA_FILE
from rsr.sessions.motion import MotionClock

_FORMAT = "rsr-alignment-1"
_INTERVALS = ("_interval_s", "_interval_ppm")


@dataclass(frozen=True)
class StoredClock:
    """One line of a sidecar: how late `other` is against `reference`, and the 95 % interval."""

    reference: str
    other: str
    relation: str
    status: str
    offset_s: float
    offset_interval_s: tuple[float, float]
    drift_ppm: float
    drift_interval_ppm: tuple[float, float]
    correlation: float


def alignment_path(folder: Path) -> Path:
    """Where the sidecar of a stored session lies: beside its folder, not in it."""
    return Path(folder).with_name(f"{Path(folder).name}.alignment.json")


def write_alignment(folder: Path, clocks: Sequence[MotionClock]) -> Path:
    """Write what was found of a session's clocks; returns the sidecar's path. Equal findings give equal bytes."""
    lines = [
        {
            "reference": each.reference.name,
            "other": each.other.name,
            "relation": each.relation,
            "status": each.clock.status,
            "offset_s": each.clock.offset_s,
            "offset_interval_s": list(each.clock.offset_interval_s),
            "drift_ppm": each.clock.drift_ppm,
            "drift_interval_ppm": list(each.clock.drift_interval_ppm),
            "correlation": each.clock.correlation,
        }
        for each in clocks
        if each.clock.status != "no common motion"
    ]
    path = alignment_path(folder)
    write_json(path, {"format": _FORMAT, "data_sha256": sha256(Path(folder) / DATA_FILE), "clocks": lines})
    return path


def read_alignment(folder: Path) -> tuple[StoredClock, ...]:
    """Read the sidecar of a stored session.

    Raises:
        SessionError: there is none, it is damaged, or it belongs to other bytes.
    """
    path = alignment_path(folder)
    try:
        document = read_json(path)
        if document["format"] != _FORMAT:
            raise ValueError(f"format {document['format']!r}")
        clocks = tuple(_clock(line) for line in document["clocks"])
        same = document["data_sha256"] == sha256(Path(folder) / DATA_FILE)
    except DAMAGED as error:
        raise _unfit(path, f"{type(error).__name__}: {error}", f"a sidecar of format {_FORMAT}") from error
    if not same:
        raise _unfit(path, "the sidecar of another recording", f"one made from {folder}")
    return clocks


def _clock(line: dict[str, Any]) -> StoredClock:
    intervals = {name: (float(line[name][0]), float(line[name][1])) for name in line if name.endswith(_INTERVALS)}
    return StoredClock(**{**line, **intervals})


def _unfit(path: Path, got: str, expected: str) -> SessionError:
    return SessionError(got=got, expected=expected, where=str(path), next_step="Make it anew: `rsr check --sidecar`.")
