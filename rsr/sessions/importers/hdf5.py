"""HDF5: demonstrations as robomimic and Isaac Lab's recorder write them (`data/demo_0/...`), or arrays in one file.

Only what lies in the file itself is read: links to other files, external storage and virtual datasets are refused.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from rsr.common import library
from rsr.sessions.importers.recording import (
    HEAD_ROWS,
    Format,
    Recording,
    Samples,
    Stream,
    Wanted,
    check_size,
    is_marked,
    listed,
    printable,
    unreadable,
)

_MAGIC = b"\x89HDF\r\n\x1a\n"
_DEEPEST = 8
_MOST_ENTRIES, _MOST_AGAIN = 50_000, 1_000
_LARGEST_CHUNK = 256 << 20
_LAYOUT = "arrays [N] or [N, C] of numbers, in data/demo_0, data/demo_1, ... or at the top"


def open_hdf5(path: Path) -> Recording:
    """Open a file; each demonstration is a part, each array of numbers a stream."""
    h5py = library("h5py", "hdf5", "to read HDF5 files")
    damage: list[str] = []
    budget = _Budget()
    with h5py.File(path, "r") as file:
        parts = _parts(h5py, file)
        streams: dict[str, Stream] = {}
        whole = []
        for part in parts:
            try:
                found = dict(_arrays(h5py, file[part], damage, budget))
                for name, dataset in found.items():
                    if name not in streams:
                        streams[name] = _stream(path, name, dataset)
                if found:
                    whole.append(part)
            except (OSError, RuntimeError, ValueError, KeyError) as error:
                damage.append(f"part {printable(part)} cannot be read: {printable(str(error), 200)}")
        rate_hz, order = _rate_hz(h5py, file), _quaternion(h5py, file, streams)
    if not streams:
        raise unreadable(path, f"no arrays of numbers{_more(damage)}", _LAYOUT)

    def load(part: str, wanted: Wanted, clock: str) -> dict[str, Samples]:
        with h5py.File(path, "r") as file:
            arrays = dict(_arrays(h5py, file[part], [], _Budget()))
            return {name: _samples(path, arrays[name], wanted[name]) for name in wanted if name in arrays}

    return Recording(
        "hdf5", path, tuple(whole), tuple(streams.values()), load, rate_hz, order, tuple(dict.fromkeys(damage))
    )


def _parts(h5py: Any, file: Any) -> list[str]:
    """Demonstrations in the order of their numbers; the file itself where there are none."""
    data = file["data"] if _is_group(h5py, file, "data") else None
    names = [name for name in data if _is_group(h5py, data, name)] if data is not None else []
    if not names:
        return ["/"]
    return [f"data/{name}" for name in sorted(names, key=_number)]


def _number(name: str) -> tuple[str, int, str]:
    number = re.search(r"\d+$", name)
    return name[: number.start()] if number else name, int(number.group()) if number else -1, name


def _is_group(h5py: Any, group: Any, name: str) -> bool:
    """A group that is really there, not a link to elsewhere."""
    if group.get(name, getlink=True).__class__ is not h5py.HardLink:
        return False
    return isinstance(group.get(name), h5py.Group)


@dataclass
class _Budget:
    """How much of a file may still be looked at: hard links make circles, and many groups of one."""

    left: int = _MOST_ENTRIES
    again: int = _MOST_AGAIN
    seen: set[int] = field(default_factory=set)

    def spent(self, address: int) -> bool:
        """Count an object; True where it is one too many."""
        self.left -= 1
        self.again -= address in self.seen
        self.seen.add(address)
        return self.left < 0 or self.again < 0


def _arrays(
    h5py: Any, group: Any, damage: list[str], budget: _Budget, prefix: str = "", depth: int = 0
) -> Iterator[tuple[str, Any]]:
    """Yield the arrays of numbers below a group that can be streams."""
    for name in group:
        if group.get(name, getlink=True).__class__ is not h5py.HardLink:
            damage.append(f"{printable(prefix + name)} is a link to elsewhere: not followed")
            continue
        found = group[name]
        if budget.spent(h5py.h5o.get_info(found.id).addr):
            damage.append(
                f"more than {_MOST_ENTRIES} groups and arrays, or {_MOST_AGAIN} links to them; the rest is left out"
            )
            return
        if isinstance(found, h5py.Group) and depth < _DEEPEST:
            yield from _arrays(h5py, found, damage, budget, f"{prefix}{name}/", depth + 1)
        elif isinstance(found, h5py.Dataset):
            if found.external or found.is_virtual:
                damage.append(f"{printable(prefix + name)} lies in other files: not followed")
            elif _chunk_bytes(found) > _LARGEST_CHUNK:
                damage.append(f"{printable(prefix + name)} has chunks of {_chunk_bytes(found)} bytes: left out")
            elif found.ndim in (1, 2) and found.dtype.kind in "iufb" and found.size:
                yield prefix + name, found


def _chunk_bytes(dataset: Any) -> int:
    """Bytes that are unpacked at once, however few of them are asked for."""
    return math.prod(dataset.chunks or ()) * dataset.dtype.itemsize


def _stream(path: Path, name: str, dataset: Any) -> Stream:
    width = dataset.shape[1] if dataset.ndim == 2 else 1
    check_size(path, dataset.shape[0], width)
    columns = tuple(str(index) for index in range(width))
    values = np.asarray(dataset[:HEAD_ROWS], float).reshape(-1, width)
    return Stream(name, columns, Samples.unstamped(values), named=False)


def _samples(path: Path, dataset: Any, columns: tuple[str, ...]) -> Samples:
    width = dataset.shape[1] if dataset.ndim == 2 else 1
    check_size(path, dataset.shape[0], width)
    if any(int(column) >= width for column in columns):
        raise unreadable(path, f"{width} columns in {printable(dataset.name)}", f"columns {listed(columns)}")
    values = np.asarray(dataset[:], float).reshape(-1, width)[:, [int(column) for column in columns]]
    return Samples.unstamped(values)


def _environment(h5py: Any, file: Any) -> dict[str, Any]:
    """Description of the environment that both recorders write, as JSON."""
    if not _is_group(h5py, file, "data"):
        return {}
    try:
        text = file["data"].attrs["env_args"]
        found = json.loads(text.decode() if isinstance(text, bytes) else str(text))
    except (KeyError, ValueError, OSError, RuntimeError, AttributeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _rate_hz(h5py: Any, file: Any) -> float | None:
    """Rows a second: robomimic's `control_freq`, or Isaac Lab's `dt` and `decimation`."""
    found = _environment(h5py, file)
    try:
        if "sim_args" in found:
            rate_hz = 1.0 / (float(found["sim_args"]["dt"]) * float(found["sim_args"]["decimation"]))
        else:
            rate_hz = float(found["env_kwargs"]["control_freq"])
    except (KeyError, TypeError, ValueError, ZeroDivisionError):
        return None
    return rate_hz if np.isfinite(rate_hz) and rate_hz > 0 else None


def _quaternion(h5py: Any, file: Any, streams: dict[str, Stream]) -> str | None:
    """robosuite, under robomimic, writes xyzw; Isaac Lab, which records the state of each articulation, wxyz."""
    if any(name.startswith("states/articulation/") for name in streams):
        return "wxyz"
    return "xyzw" if "env_kwargs" in _environment(h5py, file) else None


def _more(damage: list[str]) -> str:
    return f" ({'; '.join(damage[:3])})" if damage else ""


FORMAT = Format(
    "hdf5",
    "an HDF5 file as robomimic or Isaac Lab write it, or of plain arrays",
    lambda path: is_marked(path, (".h5", ".hdf5"), _MAGIC),
    open_hdf5,
)
