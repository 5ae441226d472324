"""Single channels under the magnifying glass: limits, spikes, jumps of a tracker, saturation, frames sent twice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from rsr.sessions import Channel, Session
from rsr.sessions.checks.findings import Finding, counted
from rsr.sessions.checks.frames import sent_twice
from rsr.sessions.checks.rules import (
    LIMIT_IMPOSSIBLE,
    LIMIT_SLACK,
    Events,
    find_jumps,
    find_spikes,
    find_still,
    share_outside,
)
from rsr.sessions.importers import listed

_DEGREES = 180.0 / np.pi
_PLATEAUS = 3
_PLATEAU_ROWS = 3
_QUANTA = 3.0
_REPEATED_SHARE = 0.01
_SLOWER_SHARE = 0.05
"""Repeats in more than the first share of all rows are mentioned, in more than the second they are a fault."""
_DROP = "Drop these rows' episodes, or repair them by hand and store the session again."


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
        spikes = find_spikes(session.episodes, channel)
        if spikes.places:
            expected = "a motion without spikes" if channel.stamp == "at_sample" else "commands of one magnitude"
            yield _said(where, spikes, "spike", expected, _DROP)
        if channel.stamp == "at_sample":
            jumps = find_jumps(session.episodes, channel)
            if jumps.places:
                remedy = "A tracker took another tag or face: correct its pose from there on, or drop these episodes."
                yield _said(where, jumps, "jump", "a pose that moves, not one that jumps", remedy)
            yield from _frozen(session, channel, where)
        yield from _saturated(session, channel, where)


def judge_stillness(session: Session, noise: Mapping[str, float]) -> Iterator[Finding]:
    """Name the episodes in which nothing moves: seldom what a lab meant to record.

    Args:
        noise: of the observed channels, in their unit.
    """
    still = find_still(session.episodes, session.channels, noise)
    if still:
        yield Finding(
            "note", "excitation", f"session '{session.card.session}', episode {listed(still)}",
            got="nothing observed that moves by more than its noise, and no command that changes",
            expected="motion",
            next_step="Was the robot switched on, and did its motion fall into the recording? Such an episode tells "
            "of rest alone; what it was meant to show is to be recorded again.",
        )  # fmt: skip


def _limits(session: Session, channel: Channel, values: np.ndarray, limits: np.ndarray | None) -> Iterator[Finding]:
    where = f"session '{session.card.session}', channel '{channel.name}'"
    if limits is None or not np.isfinite(limits).all():
        if np.abs(values).max() > 4 * np.pi:
            yield Finding(
                "care", "units", where,
                got=f"angles up to {np.abs(values).max():.4g} rad", expected="a turn or two",
                next_step="If these are degrees, multiply by pi / 180 and store the session again; if it is a wheel "
                "that rolls so far, all is well.",
            )  # fmt: skip
        return
    beyond = share_outside(values, limits)
    column = int(np.argmax(beyond))
    if beyond[column] <= LIMIT_SLACK:
        return
    lower, upper = limits[column]
    degrees = bool((share_outside(values / _DEGREES, limits) <= LIMIT_SLACK).all())
    yield Finding(
        "reject" if beyond[column] > LIMIT_IMPOSSIBLE else "care", "units", where,
        got=f"{channel.columns[column]} from {values[:, column].min():.4g} to {values[:, column].max():.4g} rad",
        expected=f"{lower:.4g} to {upper:.4g} rad, what the joint can do",
        next_step="These are degrees: multiply by pi / 180 and store the session again."
        if degrees and beyond[column] > 1.0
        else f"{'If these are degrees, multiply by pi / 180; otherwise check' if degrees else 'Check'} the unit, the "
        "zero and the order of the joints, or their ranges in the scenario.",
    )  # fmt: skip


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


def _stacked(session: Session, channel: Channel) -> np.ndarray:
    return np.concatenate([np.asarray(episode[channel.name], float) for episode in session.episodes])


def _said(where: str, events: Events, noun: str, expected: str, next_step: str) -> Finding:
    got = f"{counted(len(events.places), noun)} ({events})"
    return Finding("care", "signal", where, got, expected, next_step)
