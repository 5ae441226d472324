"""Evidence of unit, order and clock in the numbers themselves: physics that costs a few milliseconds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from rsr.common import SessionError
from rsr.sessions import Channel, Episode, stretches
from rsr.sessions.checks import (
    LIMIT_SLACK,
    find_spikes,
    find_still,
    rank_conventions,
    share_outside,
    turning_signal,
)
from rsr.sessions.clocks import Relation, Signal, estimate_clock
from rsr.sessions.importers import listed
from rsr.sessions.ingest.mapping import Target

_DEG = 180 / np.pi
_TURNS_AS_SAID = 0.35
"""Orientations that miss the angular velocity by less than this share of it turn as it says; the other order misses."""
_NEAR_ONE, _NEAR_NOTHING = 0.9, 0.4
_ENOUGH_ROWS = 20
_UNITS_OF_CHANGE = {"rad/s": {"rad/s": 1.0, "deg/s": _DEG}, "m/s": {"m/s": 1.0, "mm/s": 1e3}}
_AGREE = 1.6
"""Position and velocity agree in a unit if their ratio is within this factor; degrees and radians lie 57 apart."""


@dataclass(frozen=True)
class ClockOffset:
    """Clock offset of the second signal against the first, with the 95 % interval of its size."""

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
    outside = np.flatnonzero(share_outside(values, limits) > LIMIT_SLACK)
    if not outside.size:
        return None
    index = int(outside[0])
    column, (low, high) = values[np.isfinite(values[:, index]), index], limits[index]
    seen = f"{column.min():.3g} to {column.max():.3g}"
    return f"column {index + 1} reads {seen}, its limits are {low:.3g} to {high:.3g}"


def unit_by_motion(ours: str, time_s: np.ndarray, position: np.ndarray, velocity: np.ndarray) -> tuple[str, str | None]:
    """The unit in which a velocity is the change of a position in rad or m.

    What is compared is how far the joints went, by the positions and by the sum of velocities: noise cancels there.
    """
    longest = max(stretches(np.diff(time_s) < 0), key=lambda run: run.stop - run.start)
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
    """Tell wxyz from xyzw by the angular velocity beside it; without one nothing is claimed.

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
    return "wxyz", None


def order_in_names(columns: Sequence[str]) -> str | None:
    """The order that columns such as qw, qx, qy, qz are listed in; None where their names do not tell."""
    order = "".join(str(column).strip().lower()[-1:] for column in columns)
    return order if order in ("wxyz", "xyzw") else None


def near_reference(values: np.ndarray) -> str:
    """A hint at the order, no proof: near the reference orientation w is near 1; upside down x, y or z is."""
    finite = values[np.isfinite(values).all(axis=1)]
    if len(finite) < 2 or finite.shape[1] != 4:
        return ""
    first, last = np.abs(finite[:, 0]).mean(), np.abs(finite[:, 3]).mean()
    for name, one, other in (("first", first, last), ("last", last, first)):
        if one > _NEAR_ONE and other < _NEAR_NOTHING:
            return f"the {name} column is {one:.2f} on average, as w is near the reference orientation"
    return ""


def one_an_episode(values: np.ndarray, episode: np.ndarray | None) -> bool:
    """Whether a column [N] has one value in each episode: another in another one, where `episode` [N] numbers them."""
    if not np.isfinite(values).all() or not len(values):
        return False
    if episode is None:
        return bool(np.ptp(values) == 0)
    changes = np.diff(values) != 0
    return bool(changes.any() and (np.diff(episode)[changes] != 0).all())


def velocity_delay(
    position: tuple[np.ndarray, np.ndarray], velocity: tuple[np.ndarray, np.ndarray]
) -> ClockOffset | None:
    """Estimate the delay of a velocity against its position; None where the motion does not determine it."""
    pairs = []
    for part in _parts(position[0], velocity[0]):
        pairs.append(
            (_signal(position[0][part[0]], position[1][part[0]]), _signal(velocity[0][part[1]], velocity[1][part[1]]))
        )
    return _offset(pairs, "derivative")


def turning_delay(
    orientation: tuple[np.ndarray, np.ndarray], speed: tuple[np.ndarray, np.ndarray], frame: Literal["body", "world"]
) -> ClockOffset | None:
    """Estimate the delay of an angular velocity against orientations wxyz; None where the motion does not show it."""
    pairs = []
    for first, second in _parts(orientation[0], speed[0]):
        turns = _signal(orientation[0][first], orientation[1][first])
        if len(turns.stamps_s) >= _ENOUGH_ROWS:
            turns = turning_signal(turns.stamps_s, turns.values, frame)
            pairs.append((turns, _signal(speed[0][second], speed[1][second])))
    return _offset(pairs, "same")


def _parts(first_s: np.ndarray, second_s: np.ndarray) -> list[tuple[slice, slice]]:
    """Rows of two streams that belong together; in one table the time may begin anew with each episode."""
    if not np.array_equal(first_s, second_s):
        return [(slice(None), slice(None))]
    return [(part, part) for part in stretches(np.diff(first_s) < 0)]


def _offset(pairs: Sequence[tuple[Signal, Signal]], relation: Relation) -> ClockOffset | None:
    pairs = [pair for pair in pairs if min(len(each.stamps_s) for each in pair) >= _ENOUGH_ROWS]
    if not pairs:
        return None
    try:
        first, second = zip(*pairs, strict=True)
        clock = estimate_clock(first, second, relation=relation, drift=False, max_offset_s=0.3)
    except SessionError:  # too short, or at rest
        return None
    if clock.status != "found":
        return None
    ends = sorted(abs(end) for end in clock.offset_interval_s)
    return ClockOffset(clock.offset_s, clock.offset_error_s, *ends)


def _signal(time_s: np.ndarray, values: np.ndarray) -> Signal:
    """The rows that can be used: finite, and not stamped years away from the others."""
    usable = np.isfinite(time_s) & np.isfinite(values).all(axis=1)
    if usable.any():
        low, high = np.quantile(time_s[usable], [0.05, 0.95])
        usable &= (time_s >= low - (high - low)) & (time_s <= high + (high - low))
    return Signal(time_s[usable], values[usable])


# What stands out once it is ingested.


def doubtful(episodes: Sequence[Episode], target: Target) -> Iterator[str]:
    """Say what to look at: readings beyond what the robot can do or unlike their neighbours, and rest."""
    yield from _beyond_limits(episodes, target)
    yield from _spikes(episodes, target)
    still = find_still(episodes, target.channels, target.noise)
    if still:
        yield f"nothing moves by more than its noise, and no command changes, in episode {listed(still)}"


def _beyond_limits(episodes: Sequence[Episode], target: Target) -> Iterator[str]:
    """Channels that read what the robot cannot do: another unit, sign, order or zero, or damage."""
    for name, limits in target.limits.items():
        for episode in episodes:
            words = beyond(episode.values[name], limits) if name in episode.values else None
            if words is not None:
                yield f"{name}, episode {episode.index}: {words}; check its unit, sign, order and zero"
                break


def _spikes(episodes: Sequence[Episode], target: Target) -> Iterator[str]:
    """Channels with readings that stand out from their neighbours, or commands from all others."""
    for channel in target.channels:
        kept = [episode for episode in episodes if channel.name in episode.values]
        places = find_spikes(kept, channel).places if kept else ()
        if places:
            index, row = places[0]
            time_s = next(episode for episode in kept if episode.index == index).time_s[row]
            place = f"first in episode {index} at {time_s:.3f} s"
            yield f"{len(places)} rows of {channel.name} stand out from the others, {place}"
