"""Single channels under the magnifying glass: limits, spikes, jumps of a tracker, saturation, frames sent twice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from rsr.sessions.findings import Finding, counted
from rsr.sessions.frames import sent_twice
from rsr.sessions.model import Channel, Episode, Session

_SLACK = 0.05
"""Stops give way and encoders have an offset: a joint may stray beyond its range by this share of it ..."""
_IMPOSSIBLE = 0.2
"""... but by this share no joint does; beyond by a whole range, only another unit explains it."""
_DEGREES = 180.0 / np.pi
_SPIKE = 12.0
"""A spike leaves the line through its neighbours by this many times the channel's usual roughness ..."""
_JUMP = 8.0
"""... and a jump is this many times longer than the steps around it, and the longest steps otherwise seen."""
_USUAL = 0.995
_PLATEAUS = 3
_PLATEAU_ROWS = 3
_QUANTA = 3.0
_REPEATED_SHARE = 0.01
_SLOWER_SHARE = 0.05
"""Repeats in more than the first share of all rows are mentioned, in more than the second they are a fault."""
_DROP = "Drop these rows' episodes, or repair them by hand and store the session again."


@dataclass(frozen=True)
class Events:
    """Where something of one kind happened: (episode index, row) each."""

    places: tuple[tuple[int, int], ...]

    def __str__(self) -> str:
        shown = ", ".join(f"episode {episode} row {row}" for episode, row in self.places[:3])
        return shown + (f" and {len(self.places) - 3} more" if len(self.places) > 3 else "")


def judge_limits(session: Session, limits: Mapping[str, np.ndarray]) -> Iterator[Finding]:
    """Compare joint channels with what the joints can do; far beyond it, angles are in degrees.

    Args:
        limits: channel -> [W, 2], NaN or infinite where there are none.
    """
    for channel in session.channels:
        if channel.unit != "rad" or channel.frame != "joint" or channel.width < 1:
            continue
        values = _stacked(session, channel)
        values = values[np.isfinite(values).all(axis=1)]
        if len(values):
            yield from _limits(session, channel, values, limits.get(channel.name))


def judge_signals(session: Session) -> Iterator[Finding]:
    """Look for what recorders, trackers and drives do wrong, channel by channel."""
    for channel in session.channels:
        if not np.isfinite(_stacked(session, channel)).all():
            continue  # said already, and worse
        where = f"session '{session.card.session}', channel '{channel.name}'"
        if channel.stamp == "at_sample":
            spikes, jumps = find_spikes(session, channel), find_jumps(session, channel)
            if spikes.places:
                yield _said(where, spikes, "spike", "a motion without spikes", _DROP)
            if jumps.places:
                remedy = "A tracker took another tag or face: correct its pose from there on, or drop these episodes."
                yield _said(where, jumps, "jump", "a pose that moves, not one that jumps", remedy)
            yield from _frozen(session, channel, where)
        yield from _saturated(session, channel, where)


def find_spikes(session: Session, channel: Channel) -> Events:
    """Find rows that lie far off the line through their neighbours, and from which the signal comes straight back."""
    rough = _roughness(session, channel)
    places = []
    for episode in session.episodes:
        values = _continuous(episode, channel)
        if len(values) < 5:
            continue
        off = values[2:-2] - (values[1:-3] + values[3:-1]) / 2
        around = np.maximum(np.abs(values[1:-3] - values[:-4]), np.abs(values[4:] - values[3:-1]))
        across = np.abs(values[3:-1] - values[1:-3])
        wild = (np.abs(off) > _SPIKE * rough) & (np.abs(off) > 4.0 * np.maximum(around, across))
        places += [(episode.index, int(row) + 2) for row in np.flatnonzero(wild.any(axis=1))]
    return Events(tuple(places))


def find_jumps(session: Session, channel: Channel) -> Events:
    """Find single steps of a pose that dwarf those around them and all others of the session, and that last."""
    if channel.frame != "world" or channel.width not in (3, 4):
        return Events(())
    steps = [np.linalg.norm(np.diff(_continuous(episode, channel), axis=0), axis=1) for episode in session.episodes]
    every = np.concatenate(steps)
    usual = _JUMP * float(np.quantile(every, _USUAL)) / 2 if len(every) else 0.0
    places = []
    for episode, length in zip(session.episodes, steps, strict=True):
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


def _limits(session: Session, channel: Channel, values: np.ndarray, limits: np.ndarray | None) -> Iterator[Finding]:
    where = f"session '{session.card.session}', channel '{channel.name}'"
    if limits is None or not np.isfinite(limits).all():
        if np.abs(values).max() > 4 * np.pi:
            yield Finding(
                "care", "units", where,
                got=f"angles up to {np.abs(values).max():.4g} rad", expected="a turn or two",
                next_step="If these are degrees, multiply by pi / 180 and store the session again.",
            )  # fmt: skip
        return
    beyond = _beyond(values, limits)
    column = int(np.argmax(beyond))
    if beyond[column] <= _SLACK:
        return
    lower, upper = limits[column]
    degrees = bool((_beyond(values / _DEGREES, limits) <= _SLACK).all())
    yield Finding(
        "reject" if beyond[column] > _IMPOSSIBLE else "care", "units", where,
        got=f"{channel.columns[column]} from {values[:, column].min():.4g} to {values[:, column].max():.4g} rad",
        expected=f"{lower:.4g} to {upper:.4g} rad, what the joint can do",
        next_step="These are degrees: multiply by pi / 180 and store the session again."
        if degrees and beyond[column] > 1.0
        else f"{'If these are degrees, multiply by pi / 180; otherwise check' if degrees else 'Check'} the unit, the "
        "zero and the order of the joints, or their ranges in the scenario.",
    )  # fmt: skip


def _beyond(values: np.ndarray, limits: np.ndarray) -> np.ndarray:
    """How far each column [N, W] strays outside its limits, as a share of the range."""
    outside = np.maximum(limits[:, 0] - values.min(axis=0), values.max(axis=0) - limits[:, 1])
    return outside / np.maximum(limits[:, 1] - limits[:, 0], 1e-12)


def _frozen(session: Session, channel: Channel, where: str) -> Iterator[Finding]:
    places = [
        (episode.index, int(row))
        for episode in session.episodes
        for row in np.flatnonzero(sent_twice(np.asarray(episode[channel.name], float)))
    ]
    rows = sum(len(episode) for episode in session.episodes)
    if len(places) > max(2, _REPEATED_SHARE * rows):
        yield Finding(
            "care" if len(places) > _SLOWER_SHARE * rows else "note", "clock", where,
            got=f"{counted(len(places), 'repeated reading')} in motion ({Events(tuple(places))})",
            expected="a new reading a row",
            next_step="Either the source is slower than the recorder: keep its own stamps, or drop the repeats and "
            "resample. Or a median filter did this: then the channel is late by half its length.",
        )  # fmt: skip


def _saturated(session: Session, channel: Channel, where: str) -> Iterator[Finding]:
    """Find values that run into one and the same end again and again and stay there."""
    values = _stacked(session, channel)
    for index, column in enumerate(channel.columns):
        share = max(_at_end(session, channel, index, end) for end in (values[:, index].min(), values[:, index].max()))
        if share > 0:
            measured = channel.stamp == "at_sample"
            yield Finding(
                "care" if measured else "note", "signal", where,
                got=f"{column} at one end of its range in {100 * share:.1f} % of all rows",
                expected="readings that are not cut off" if measured else "commands that are seldom cut off",
                next_step="Choose a wider range of the sensor, or gentler motions: what is cut off cannot be fitted."
                if measured else "That is fine for a policy; for identification ask for less.",
            )  # fmt: skip
            return


def _at_end(session: Session, channel: Channel, index: int, end: float) -> float:
    """Share of rows that lie on plateaus at a value, if those were run into at speed, and often enough."""
    plateaus, rows = 0, 0
    for episode in session.episodes:
        values = episode[channel.name][:, index]
        at_end = np.concatenate([[0], (values == end).astype(int), [0]])
        moved = np.abs(np.diff(values))
        quantum = moved[moved > 0].min() if (moved > 0).any() else np.inf
        edges = np.flatnonzero(np.diff(at_end))
        for start, stop in zip(edges[::2], edges[1::2], strict=True):
            if stop - start >= _PLATEAU_ROWS and start > 0 and moved[start - 1] > _QUANTA * quantum:
                plateaus, rows = plateaus + 1, rows + stop - start
    total = sum(len(episode) for episode in session.episodes)
    return rows / total if plateaus >= _PLATEAUS else 0.0


def _roughness(session: Session, channel: Channel) -> np.ndarray:
    """What second differences of a channel usually are, per column."""
    bends = [np.abs(np.diff(_continuous(episode, channel), 2, axis=0)) for episode in session.episodes]
    every = np.concatenate(bends)
    if not len(every):
        return np.full(channel.width, np.inf)
    usual = np.quantile(every, 0.95, axis=0)
    return np.where(usual > 0, usual, np.maximum(every.max(axis=0), 1e-12))


def _continuous(episode: Episode, channel: Channel) -> np.ndarray:
    """Values [T, W]; quaternions with the sign that is nearer to the row before, as both mean one orientation."""
    values = np.asarray(episode[channel.name], float)
    if channel.width != 4 or len(values) < 2:
        return values
    flips = np.sign(np.sum(values[1:] * values[:-1], axis=1))
    signs = np.cumprod(np.concatenate([[1.0], np.where(flips < 0, -1.0, 1.0)]))
    return values * signs[:, None]


def _stacked(session: Session, channel: Channel) -> np.ndarray:
    return np.concatenate([np.asarray(episode[channel.name], float) for episode in session.episodes])


def _said(where: str, events: Events, noun: str, expected: str, next_step: str) -> Finding:
    got = f"{counted(len(events.places), noun)} ({events})"
    return Finding("care", "signal", where, got, expected, next_step)
