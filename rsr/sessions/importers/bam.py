"""BAM: one JSON file a run of a servo on a pendulum (Rhoban/bam), `entries` in time and numbers of the whole run.

Numbers of the run (`kp`, `vin`, `mass`, `length`, ...) become columns with one value, which `ingest` keeps as tags.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from rsr.common import read_bounded
from rsr.sessions.importers.recording import Format, Recording, Samples, Stream, check_size, held_recording, unreadable

_EXPECTED = "a JSON file of BAM: `entries`, a list of rows with `timestamp`, and numbers of the run"
_UNITS = {"position": "rad", "goal_position": "rad", "speed": "rad/s", "input_volts": "V", "vin": "V"}
_LARGEST = 256 << 20


def open_bam(path: Path) -> Recording:
    """Open a log of one run."""
    document = _document(path)
    rows = document["entries"]
    names = [name for name in rows[0] if name != "timestamp" and isinstance(rows[0][name], int | float)]
    check_size(path, len(rows), len(names) + 1)
    try:
        stamps_s = np.array([row["timestamp"] for row in rows], float)
        columns = {name: np.array([row[name] for row in rows], float) for name in names}
    except (KeyError, TypeError, ValueError) as error:
        raise unreadable(path, f"rows that differ in form ({type(error).__name__}: {error})", _EXPECTED) from error
    for name, value in document.items():
        if isinstance(value, int | float) and not isinstance(value, bool) and name not in columns:
            columns[name.replace("-", "_")] = np.full(len(rows), float(value))
    units = {name: _UNITS[name] for name in columns if name in _UNITS}
    whole = Samples(stamps_s, np.column_stack(list(columns.values())))
    stream = Stream("log", tuple(columns), whole, False, units, ("timestamp",))
    return held_recording("bam", path, path.stem, [stream])


def _document(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(read_bounded(path, _LARGEST))
    except (ValueError, RecursionError) as error:
        raise unreadable(path, f"no JSON ({error})", _EXPECTED) from error
    rows = document.get("entries") if isinstance(document, dict) else None
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise unreadable(path, "no list of rows under `entries`", _EXPECTED)
    return document


def _recognises(path: Path) -> bool:
    """A JSON file whose first bytes or last ones name the entries; they are long."""
    return path.is_file() and path.suffix.lower() == ".json" and b'"entries"' in read_bounded(path, _LARGEST)


FORMAT = Format("bam", _EXPECTED, _recognises, open_bam)
