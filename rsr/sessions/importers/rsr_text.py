"""The text files of the RSR paper's robot node: `real_obs.txt` and `real_action.txt`, rows of numbers without names.

Row i of both belongs to one step. There are neither stamps nor marks between runs: on the original robot a step lasts
until the joints have settled, 0.1 to 5 s, so that any rate is a stand-in. Commands are the policy's raw output.
"""

from __future__ import annotations

from array import array
from pathlib import Path

import numpy as np

from rsr.sessions.importers.recording import Format, Recording, Samples, Stream, check_size, held_recording, unreadable

_XYZ = ("x", "y", "z")
_JOINTS = tuple(f"joint{number}" for number in range(1, 7))
_LONGEST_LINE = 1 << 16
_Layout = dict[str, tuple[tuple[str, ...], str]]
_CUBE: _Layout = {
    "joint_position": (_JOINTS, "rad"),
    "tip_position": (_XYZ, "m"),
    "target_position": (_XYZ, "m"),
    "block_position": (_XYZ, "m"),
    "push_point": (("x", "y"), "m"),
    "target_from_block": (_XYZ, "m"),
    "block_from_tip": (_XYZ, "m"),
}
_T_SHAPE: _Layout = {
    "joint_position": (_JOINTS, "rad"),
    "tip_height": (("z",), "m"),
    "base_error": (_XYZ, "m"),
    "stem_error": (_XYZ, "m"),
    "angle": (("angle",), "1"),
    "push_point_error": (("x", "y"), "m"),
}
_LEGS = tuple(f"joint{number}" for number in range(1, 13))
_GO2: _Layout = {
    "linear_velocity": (("vx", "vy", "vz"), "m/s"),
    "angular_velocity": (("wx", "wy", "wz"), "rad/s"),
    "gravity": (_XYZ, "1"),
    "joint_error": (_LEGS, "rad"),
    "joint_velocity": (_LEGS, "rad/s"),
    "last_action": (_LEGS, "1"),
    "velocity_command": (("vx", "vy", "yaw_rate"), "1"),
}
_LAYOUTS = {sum(len(columns) for columns, _ in layout.values()): layout for layout in (_CUBE, _T_SHAPE, _GO2)}
_OBSERVED, _SENT = "real_obs.txt", "real_action.txt"
_NOTE = (
    "RSR text files have no stamps and no marks between runs: the rate is a stand-in. Actions are the policy's output "
    "before it was scaled by 0.02 and added to the measured joints."
)


def open_rsr_text(path: Path) -> Recording:
    """Open a folder with `real_obs.txt` and, if there, `real_action.txt`."""
    damage: list[str] = []
    observed = _rows(path / _OBSERVED, damage)
    layout = _LAYOUTS.get(observed.shape[1])
    if layout is None:
        raise unreadable(path / _OBSERVED, f"{observed.shape[1]} numbers a row", f"{', '.join(map(str, _LAYOUTS))}")
    tables = _divided(observed, layout)
    units = {name: unit for name, (_, unit) in layout.items()}
    columns = {name: names for name, (names, _) in layout.items()}
    if (path / _SENT).is_file():
        sent = _rows(path / _SENT, damage)
        if len(sent) != len(observed):
            damage.append(f"{len(observed)} observations and {len(sent)} actions: cut to the shorter")
        length = min(len(sent), len(observed))
        tables = {name: values[:length] for name, values in tables.items()} | {"action": sent[:length]}
        columns["action"], units["action"] = tuple(f"action{index}" for index in range(sent.shape[1])), "1"
    streams = [
        Stream(name, columns[name], Samples.unstamped(values), units=dict.fromkeys(columns[name], units[name]))
        for name, values in tables.items()
    ]
    return held_recording("rsr_text", path, path.name or "run", streams, tuple(damage), (_NOTE,))


def _rows(path: Path, damage: list[str]) -> np.ndarray:
    """Rows [N, C] of a text file; a row of another length, or with a word in it, ends what is taken."""
    rows, width = array("d"), 0
    with path.open(encoding="ascii", errors="replace") as stream:
        for number, line in enumerate(iter(lambda: stream.readline(_LONGEST_LINE), ""), 1):
            if not line.strip():
                continue
            try:
                row = [float(cell) for cell in line.split(",")]
            except ValueError:
                row = []
            if not row or len(row) != (width or len(row)) or not np.isfinite(row).all():
                damage.append(f"{path.name}, line {number}: not a row like those before; nothing after it was taken")
                break
            width = len(row)
            rows.extend(row)
            check_size(path, len(rows) // width, width)
    if not rows:
        raise unreadable(path, "no row of numbers", "rows of numbers, separated by commas")
    return np.array(rows).reshape(-1, width)


def _divided(values: np.ndarray, layout: _Layout) -> dict[str, np.ndarray]:
    edges = np.cumsum([len(columns) for columns, _ in layout.values()])[:-1]
    return dict(zip(layout, np.split(values, edges, axis=1), strict=True))


FORMAT = Format(
    "rsr_text",
    "a folder with real_obs.txt and real_action.txt",
    lambda path: (path / _OBSERVED).is_file(),
    open_rsr_text,
)
