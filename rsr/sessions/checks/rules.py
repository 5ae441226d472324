"""Rules by which a recording's numbers are judged, the same when it is ingested and when it is checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from rsr.sessions import Channel, Episode

LIMIT_SLACK = 0.05
"""Stops give way and encoders have an offset: a joint may stray beyond its range by this share of it ..."""
LIMIT_IMPOSSIBLE = 0.2
"""... but by this share no joint does; beyond by a whole range, only another unit explains it."""
_SPIKE = 12.0
"""A spike leaves the line through its neighbours by this many times the channel's usual roughness ..."""
_JUMP = 8.0
"""... and a jump is this many times longer than the steps around it, and than the longest usual steps."""
_USUAL = 0.995
_OUTSIZED = 50.0
"""A command is outsized beyond this many times what 19 of 20 of its rows stay below."""
_ENOUGH_ROWS = 20
_MOVED_NOISES = 6.0
"""Noise alone takes no reading this far from the episode's median, whatever the number of rows."""


@dataclass(frozen=True)
class Events:
    """Where something of one kind happened: (episode index, row) each."""

    places: tuple[tuple[int, int], ...]

    def __str__(self) -> str:
        shown = ", ".join(f"episode {episode} row {row}" for episode, row in self.places[:3])
        return shown + (f" and {len(self.places) - 3} more" if len(self.places) > 3 else "")


def share_outside(values: np.ndarray, limits: np.ndarray) -> np.ndarray:
    """How far each column of [N, W] strays outside its limits [W, 2], as a share of the range.

    Columns without finite limits, or without a finite number, stray by minus infinity.
    """
    finite = np.isfinite(values)
    lowest = np.min(values, axis=0, where=finite, initial=np.inf)
    highest = np.max(values, axis=0, where=finite, initial=-np.inf)
    bounded = np.isfinite(limits[:, 0]) & np.isfinite(limits[:, 1])
    low, high = np.where(bounded, limits[:, 0], 0.0), np.where(bounded, limits[:, 1], 0.0)
    outside = np.maximum(low - lowest, highest - high)
    return np.where(bounded, outside / np.maximum(high - low, 1e-12), -np.inf)


def find_spikes(episodes: Sequence[Episode], channel: Channel) -> Events:
    """Find rows that lie far off the line through their neighbours, and from which the signal comes straight back.

    Commands may jump, so that of a command only rows of another magnitude than all others are spikes.
    """
    if channel.stamp == "held_until_next":
        return _outsized(episodes, channel)
    rough = _roughness(episodes, channel)
    places = []
    for episode in episodes:
        values = _continuous(episode, channel)
        if len(values) < 5:
            continue
        off = values[2:-2] - (values[1:-3] + values[3:-1]) / 2
        around = np.maximum(np.abs(values[1:-3] - values[:-4]), np.abs(values[4:] - values[3:-1]))
        across = np.abs(values[3:-1] - values[1:-3])
        wild = (np.abs(off) > _SPIKE * rough) & (np.abs(off) > 4.0 * np.maximum(around, across))
        places += [(episode.index, int(row) + 2) for row in np.flatnonzero(wild.any(axis=1))]
    return Events(tuple(places))


def find_jumps(episodes: Sequence[Episode], channel: Channel) -> Events:
    """Find single steps of a pose that dwarf those around them and all others of the session, and that last."""
    if channel.frame != "world" or channel.width not in (3, 4):
        return Events(())
    steps = [np.linalg.norm(np.diff(_continuous(episode, channel), axis=0), axis=1) for episode in episodes]
    every = np.concatenate(steps)
    usual = _JUMP * float(np.quantile(every, _USUAL)) / 2 if len(every) else 0.0
    places = []
    for episode, length in zip(episodes, steps, strict=True):
        if len(length) < 7:
            continue
        windows = sliding_window_view(np.pad(length, 3), 7)
        around = np.delete(windows, 3, axis=1).max(axis=1)
        values = _continuous(episode, channel)
        for step in np.flatnonzero((length > usual) & (length > _JUMP * around) & (length > 0)):
            back = values[min(step + 3, len(values) - 1)] - values[step]
            if np.linalg.norm(back) > 0.5 * length[step]:
                places.append((episode.index, int(step) + 1))
    return Events(tuple(places))


def find_still(episodes: Sequence[Episode], channels: Sequence[Channel], noise: Mapping[str, float]) -> tuple[int, ...]:
    """Find episodes in which nothing observed moves by more than its noise and no command changes.

    Args:
        noise: of the observed channels, in their unit; rad for quaternions.
    """
    if not noise:
        return ()
    return tuple(each.index for each in episodes if all(_rests(each, channel, noise) for channel in channels))


def _rests(episode: Episode, channel: Channel, noise: Mapping[str, float]) -> bool:
    command = channel.stamp == "held_until_next"
    if channel.name not in episode.values or not (command or channel.name in noise):
        return True
    values = _continuous(episode, channel)
    off = np.abs(values - np.median(values, axis=0)).max(initial=0.0)
    # A small rotation changes a quaternion by half its angle.
    far = noise.get(channel.name, 0.0) * (0.5 if channel.is_quaternion else 1.0)
    return bool(off <= _MOVED_NOISES * far)


def _outsized(episodes: Sequence[Episode], channel: Channel) -> Events:
    places = []
    for episode in episodes if channel.unit != "1" else ():  # shares, and actions in -1 to 1, are bounded anyway
        sizes = np.abs(np.asarray(episode[channel.name], float))
        if len(sizes) < _ENOUGH_ROWS:
            continue
        usual = np.quantile(sizes, 0.95, axis=0)
        far = ((sizes > _OUTSIZED * usual) & (usual > 0)).any(axis=1)
        places += [(episode.index, int(row)) for row in np.flatnonzero(far)]
    return Events(tuple(places))


def _roughness(episodes: Sequence[Episode], channel: Channel) -> np.ndarray:
    """Usual size [W] of a channel's second differences."""
    bends = [np.abs(np.diff(_continuous(episode, channel), 2, axis=0)) for episode in episodes]
    every = np.concatenate(bends)
    if not len(every):
        return np.full(channel.width, np.inf)
    usual = np.quantile(every, 0.95, axis=0)
    return np.where(usual > 0, usual, np.maximum(every.max(axis=0), 1e-12))


def _continuous(episode: Episode, channel: Channel) -> np.ndarray:
    """Values [T, W]; quaternions with the sign that is nearer to the row before, as both mean one orientation."""
    values = np.asarray(episode[channel.name], float)
    if not channel.is_quaternion or len(values) < 2:
        return values
    flips = np.sign(np.sum(values[1:] * values[:-1], axis=1))
    signs = np.cumprod(np.concatenate([[1.0], np.where(flips < 0, -1.0, 1.0)]))
    return values * signs[:, None]
