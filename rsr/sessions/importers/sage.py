"""SAGE: folders with `control.csv`, `state_motor.csv` and `joint_list.txt`, cells holding lists in brackets.

From robots (rows of type `Control`, `StateMotor`) stamps are microseconds; from its simulator (`CONTROL`,
`STATE_MOTOR`) seconds. Angles are rad. Layout as in the README and collectors of isaac-sim2real/sage.
"""

from __future__ import annotations

import csv
import json
from array import array
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from rsr.sessions.importers.recording import (
    Format,
    Recording,
    Samples,
    Stream,
    Wanted,
    check_size,
    listed,
    printable,
    unreadable,
)

_FILES = {"control": "control.csv", "state_motor": "state_motor.csv"}
_QUANTITIES = {"positions": ("position", "rad"), "velocities": ("velocity", "rad/s"), "torques": ("torque", "N m")}
_SIMULATED = {"CONTROL", "STATE_MOTOR"}
_TEXT_MOST = 1 << 20
_MOST_WORDS = 1000


@dataclass(frozen=True)
class _Table:
    """One file.

    Args:
        samples: stamps as written, of which one is `scale_s` seconds.
    """

    columns: tuple[str, ...]
    units: dict[str, str]
    samples: Samples
    scale_s: float


def open_sage(path: Path) -> Recording:
    """Open one motion's folder, or a folder of such folders (one part each)."""
    folders = {"motion": path} if _is_motion(path) else {folder.name: folder for folder in _motions(path)}
    damage: list[str] = []
    first = _tables(next(iter(folders.values())), damage)
    streams = tuple(
        Stream(name, table.columns, table.samples.head(), True, table.units, ("timestamp",))
        for name, table in first.items()
    )

    def load(part: str, wanted: Wanted, clock: str) -> dict[str, Samples]:
        tables = _tables(folders[part], [])
        found = {}
        for name, columns in wanted.items():
            missing = [column for column in columns if column not in tables[name].columns]
            if missing:
                raise unreadable(folders[part], f"no {listed(missing)}", "the joints of the first motion")
            found[name] = tables[name].samples.taken(tables[name].columns, columns)
        return found

    return Recording("sage", path, tuple(folders), streams, load, damage=tuple(damage))


def _is_motion(path: Path) -> bool:
    return path.is_dir() and all((path / file).is_file() for file in _FILES.values())


def _motions(path: Path) -> list[Path]:
    return sorted(folder for folder in path.iterdir() if _is_motion(folder)) if path.is_dir() else []


def _tables(folder: Path, damage: list[str]) -> dict[str, _Table]:
    joints = _joints(folder / "joint_list.txt")
    tables = {name: _table(folder / file, joints, damage) for name, file in _FILES.items()}
    base = min(table.samples.time_s[0] for table in tables.values())  # first: large stamps lose digits when scaled
    return {
        name: replace(table, samples=Samples((table.samples.time_s - base) * table.scale_s, table.samples.values))
        for name, table in tables.items()
    }


def _joints(path: Path) -> tuple[str, ...]:
    if not path.is_file() or path.stat().st_size > _TEXT_MOST:
        raise unreadable(path, "no list of joints", "one name a line", "Write the joints in the order of the columns.")
    names = tuple(line.strip() for line in path.read_text(errors="replace").replace(",", "\n").splitlines())
    names = tuple(name for name in names if name)
    if not names or len(set(names)) < len(names):
        raise unreadable(path, f"joints {listed(names)}", "each name once, one a line")
    return names


def _table(path: Path, joints: tuple[str, ...], damage: list[str]) -> _Table:
    stamps = array("d")
    rows, width = array("d"), 0
    quantities, simulated = None, False
    with path.open(newline="", errors="replace") as stream:
        for number, row in enumerate(csv.DictReader(stream), 2):
            try:
                lists = {name: _list(row.get(name)) for name in _QUANTITIES}
                stamp = float(row["timestamp"])
                simulated |= str(row["type"]).strip() in _SIMULATED
            except (KeyError, TypeError, ValueError, RecursionError):
                lists, stamp = {}, np.nan
            present = tuple(name for name, values in lists.items() if values)
            quantities = quantities or present
            if not present or present != quantities or any(len(lists[name]) != len(joints) for name in present):
                if len(damage) < _MOST_WORDS:
                    damage.append(f"{path.name}, row {number}: not like those before; left out")
                continue
            stamps.append(stamp)
            rows.extend(value for name in present for value in lists[name])
            width = len(present) * len(joints)
            check_size(path, len(stamps), width)
    if not rows or not quantities:
        raise unreadable(
            path,
            f"no row with {len(joints)} numbers in brackets, one a joint ({printable(str(damage[:1]))})",
            "columns type, timestamp, positions[, velocities, torques]",
        )
    columns = {f"{_QUANTITIES[name][0]}.{joint}": _QUANTITIES[name][1] for name in quantities for joint in joints}
    samples = Samples(np.array(stamps), np.array(rows).reshape(-1, width))
    return _Table(tuple(columns), columns, samples, 1.0 if simulated else 1e-6)


def _list(text: str | None) -> list[float]:
    """Numbers of a cell such as `[0.1, 0.2]`; nothing where it is empty."""
    if not text or not text.strip():
        return []
    found = json.loads(text.replace("nan", "NaN").replace("inf", "Infinity"))
    if not isinstance(found, list):
        raise ValueError("not a list")
    return [float(value) for value in found]


FORMAT = Format(
    "sage",
    "a folder with control.csv, state_motor.csv and joint_list.txt (SAGE), or a folder of them",
    lambda path: _is_motion(path) or bool(_motions(path)),
    open_sage,
)
