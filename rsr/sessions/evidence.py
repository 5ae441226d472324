"""What numbers themselves say of their unit, their order and their clock: physics that costs a few milliseconds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rsr.errors import SessionError
from rsr.sessions.clocks import Signal, estimate_clock
from rsr.sessions.model import Channel
from rsr.sessions.rotation import rank_conventions

_SLACK = 1.15
"""Readings may pass a limit a little: stops give way, encoders have an offset."""
_DEG = 180 / np.pi
_TURNS_AS_SAID = 0.35
"""Orientations that miss the angular velocity by less than this share of it turn as it says; the other order misses."""
_ENOUGH_ROWS = 20
_STANDS_OUT = 50.0
"""Times the usual size, which 19 of 20 rows stay below."""
_UNITS_OF_CHANGE = {"rad/s": {"rad/s": 1.0, "deg/s": _DEG}, "m/s": {"m/s": 1.0, "mm/s": 1e3}}
_AGREE = 1.6
"""Position and velocity agree in a unit if their ratio is within this factor; degrees and radians lie 57 apart."""


@dataclass(frozen=True)
class Lateness:
    """How much later the second signal is stamped than the first, with its 95 % interval (of its size)."""

    offset_s: float
    error_s: float
    lower_s: float
    upper_s: float


def unit_by_limits(channel: Channel, values: np.ndarray, limits: np.ndarray | None) -> tuple[str, str | None]:
    """Angles far beyond what the joints allow in rad, but within it in degrees, are in degrees.

    Returns:
        A unit, and why; no reason where it is only a suggestion.
    """
    if channel.unit != "rad" or not np.isfinite(values).any():
        return channel.unit, None
    largest = float(np.nanmax(np.abs(values)))
    if limits is not None and np.isfinite(limits).any():
        if beyond(values, limits) is not None and beyond(values / _DEG, limits) is None:
            return "deg", f"up to {largest:.0f}: too much for the joints' limits in rad, and fits them in degrees"
        return "rad", None
    return ("deg" if largest > 8 * np.pi else "rad"), None  # wheels turn without end: only a suggestion


def beyond(values: np.ndarray, limits: np.ndarray | None) -> str | None:
    """Say which column [N, W] leaves its limits [W, 2], if one does."""
    if limits is None or values.shape[1] != len(limits) or not len(values):
        return None
    for index, (low, high) in enumerate(limits):
        column = values[np.isfinite(values[:, index]), index]
        if not (np.isfinite(high - low) and column.size):
            continue
        if float(np.max(np.abs(column - (low + high) / 2))) > _SLACK * (high - low) / 2:
            seen = f"{column.min():.3g} to {column.max():.3g}"
            return f"column {index + 1} reads {seen}, its limits are {low:.3g} to {high:.3g}"
    return None


def spikes(values: np.ndarray) -> np.ndarray:
    """Rows of [T, W] that stand out from both neighbours by far more than rows usually do: damage, or a glitch."""
    if len(values) < _ENOUGH_ROWS:
        return np.zeros(0, int)
    away = np.abs(values[1:-1] - (values[:-2] + values[2:]) / 2)
    return 1 + _far(away)


def enormous(values: np.ndarray) -> np.ndarray:
    """Rows of commands [T, W] far larger than all the others: commands may jump, but not to other magnitudes."""
    return _far(np.abs(values)) if len(values) >= _ENOUGH_ROWS else np.zeros(0, int)


def _far(sizes: np.ndarray) -> np.ndarray:
    """Rows of [T, W] with a number far above what 19 of 20 rows of its column stay below."""
    usual = np.quantile(sizes, 0.95, axis=0)
    return np.flatnonzero(((sizes > _STANDS_OUT * usual) & (usual > 0)).any(axis=1))


def unit_by_motion(ours: str, time_s: np.ndarray, position: np.ndarray, velocity: np.ndarray) -> tuple[str, str | None]:
    """The unit in which a velocity is the change of a position in rad or m.

    What is compared is how far the joints went, by the positions and by the sum of velocities: noise cancels there.
    """
    longest = max(_runs(time_s), key=lambda run: run.stop - run.start)
    time_s, position, velocity = time_s[longest], position[longest], velocity[longest]
    steps_s = np.diff(time_s)
    usable = np.isfinite(position).all(axis=1) & np.isfinite(velocity).all(axis=1) & np.isfinite(time_s)
    if usable.sum() < _ENOUGH_ROWS or not usable.all() or (steps_s <= 0).any():
        return ours, None
    travelled = np.cumsum(velocity[:-1] * steps_s[:, None], axis=0)
    went, summed = _spread(position[1:]), _spread(travelled)
    if not (went > 0 and summed > 0):
        return ours, None
    ratio = summed / went
    for unit, factor in _UNITS_OF_CHANGE.get(ours, {}).items():
        if 1 / _AGREE < ratio / factor < _AGREE:
            return unit, "so it agrees with the change of the position"
    return ours, None


def _spread(values: np.ndarray) -> float:
    """Deviation from a straight line, over all columns [N, W]."""
    rows = np.linspace(-1, 1, len(values))
    slope, middle = np.polyfit(rows, values, 1)
    return float(np.sqrt(np.mean((values - middle - rows[:, None] * slope) ** 2)))


def quaternion_order(time_s: np.ndarray, values: np.ndarray, speed: np.ndarray | None) -> tuple[str, str | None]:
    """Tell wxyz from xyzw by the angular velocity beside it, or by an end column that stays near 1.

    A body that stays near its reference orientation has w near 1. If neither end column does, nothing is claimed: any
    order of a unit quaternion is a unit quaternion.

    Args:
        values: [N, 4]; speed: [N, 3], rad/s or deg/s, in the body's or the world's frame.
    """
    finite = np.isfinite(values).all(axis=1) & np.isfinite(time_s)
    if speed is not None and values.shape[1] == 4 and len(speed) == len(values):
        both = finite & np.isfinite(speed).all(axis=1)
        found = rank_conventions([(time_s[both], values[both], speed[both])]) if both.any() else []
        rival = next((each for each in found if each.order != found[0].order), None)
        if rival is not None and found[0].misfit < _TURNS_AS_SAID < rival.misfit:
            return found[0].order, "so it turns as the angular velocity says"
    if finite.sum() < 2 or values.shape[1] != 4:
        return "wxyz", None
    first, last = np.abs(values[finite][:, 0]).mean(), np.abs(values[finite][:, 3]).mean()
    if first > 0.9 and last < 0.4:
        return "wxyz", f"the first column is {first:.2f} on average, as w is near the reference orientation"
    if last > 0.9 and first < 0.4:
        return "xyzw", f"the last column is {last:.2f} on average, as w is near the reference orientation"
    return "wxyz", None


def lateness(position: tuple[np.ndarray, np.ndarray], velocity: tuple[np.ndarray, np.ndarray]) -> Lateness | None:
    """How much later a velocity is stamped than the position it belongs to; None where they do not tell."""
    pairs = [(_signal(*position), _signal(*velocity))]
    if np.array_equal(position[0], velocity[0]):  # rows of one table, where the time may begin anew with each episode
        parts = _runs(position[0])
        pairs = [
            (_signal(*(each[part] for each in position)), _signal(*(each[part] for each in velocity))) for part in parts
        ]
    pairs = [pair for pair in pairs if min(len(each.stamps_s) for each in pair) >= _ENOUGH_ROWS]
    if not pairs:
        return None
    try:
        first, second = zip(*pairs, strict=True)
        clock = estimate_clock(first, second, relation="derivative", drift=False, max_offset_s=0.3)
    except SessionError:  # too short, or at rest
        return None
    if clock.status != "found":
        return None
    ends = sorted(abs(end) for end in clock.offset_interval_s)
    return Lateness(clock.offset_s, clock.offset_error_s, *ends)


def _runs(time_s: np.ndarray) -> list[slice]:
    """Stretches of rows in which the time does not run back."""
    edges = np.flatnonzero(np.diff(time_s) < 0) + 1
    return [slice(int(start), int(stop)) for start, stop in zip([0, *edges], [*edges, len(time_s)], strict=True)]


def _signal(time_s: np.ndarray, values: np.ndarray) -> Signal:
    """The rows that can be used: finite, and not stamped years away from the others."""
    usable = np.isfinite(time_s) & np.isfinite(values).all(axis=1)
    if usable.any():
        low, high = np.quantile(time_s[usable], [0.05, 0.95])
        usable &= (time_s >= low - (high - low)) & (time_s <= high + (high - low))
    return Signal(time_s[usable], values[usable])
