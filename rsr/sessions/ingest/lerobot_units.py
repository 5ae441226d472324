"""LeRobot's own unit of motors, -100 to 100 of the range that calibration found, in rad by the calibration's file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from rsr.common import ConfigError, read_object
from rsr.sessions.importers import listed

_TICKS = 4096
"""Of a turn, in Feetech's and Dynamixel's encoders."""
_KEYS = ("range_min", "range_max", "drive_mode")


def in_radians(file: str, columns: Sequence[str], values: np.ndarray, where: str) -> np.ndarray:
    """Angles [N, W] from the middle of each motor's range, of numbers [N, W]; of a gripper they are 0 to 100.

    Args:
        file: JSON that LeRobot's calibration wrote: motor -> `range_min` and `range_max` in ticks, `drive_mode`.
        columns: such as `shoulder_pan.pos`.
    """
    known = _motors(file, where)
    scaled = np.empty(values.shape)
    for index, column in enumerate(columns):
        name = column.removesuffix(".pos").removeprefix("main_")
        if name not in known:
            raise _wrong(f"no motor '{name}' in {file}", f"one of {listed(known)}", where)
        low, high, is_reversed = known[name]
        share = values[:, index] / 50.0 - 1.0 if name.startswith("gripper") else values[:, index] / 100.0
        half_turn = np.pi * (high - low) / _TICKS
        scaled[:, index] = (-share if is_reversed else share) * half_turn
    return scaled


def _motors(file: str, where: str) -> dict[str, tuple[float, float, bool]]:
    """Lowest and highest tick of each motor, and whether it is counted the other way."""
    found = {}
    if not Path(file).is_file():
        raise _wrong(f"no file {file}", "a calibration file of LeRobot", where)
    for name, entry in read_object(Path(file)).items():
        if not isinstance(entry, dict) or not all(isinstance(entry.get(key), int) for key in _KEYS):
            raise _wrong(f"motor '{name}' without {', '.join(_KEYS)}", "a calibration file of LeRobot", where)
        low, high = entry["range_min"], entry["range_max"]
        if not low < high:
            raise _wrong(f"motor '{name}' from {low} to {high}", "range_min below range_max", where)
        found[str(name)] = (low, high, bool(entry["drive_mode"]))
    return found


def _wrong(got: str, expected: str, where: str) -> ConfigError:
    next_step = "Name the JSON that LeRobot keeps under calibration/robots, of the very robot that was recorded."
    return ConfigError(got=got, expected=expected, where=f"{where}, calibration", next_step=next_step)
