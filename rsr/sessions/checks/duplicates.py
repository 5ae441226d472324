"""The same recording under another name, or the same trial under another yaw: found by content alone."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from rsr.sessions import Episode, Session
from rsr.sessions.checks.findings import Finding, counted

_SAMPLES = 16
_ALIKE = 1e-3
"""Two recordings of one motion differ by noise, by more than this share of the motion; copies differ by rounding."""
_MOVED = 1e-6
_LEAST_MOVING = 2
"""Columns that must move before a likeness means anything."""


@dataclass(frozen=True)
class EpisodePrint:
    """Fingerprint that tells one episode from another.

    Args:
        digest: of all bytes of channels and times from the start; copies share it.
        rows: length.
        sketch: moving measured columns by name -> values at evenly spaced rows, and their spread.
        turn_invariant: those of them that a turn of the world about the vertical does not change: heights, and how far
            bodies are from where they began.
        words: the episode's tags.
    """

    session: str
    episode: int
    digest: str
    rows: int
    sketch: dict[str, np.ndarray]
    turn_invariant: tuple[str, ...] = ()
    words: frozenset[tuple[str, str]] = frozenset()


def fingerprints(session: Session) -> list[EpisodePrint]:
    """Describe every episode of a session by its content: names and the card play no part."""
    with np.errstate(over="ignore", invalid="ignore"):  # damaged numbers have a fingerprint as well
        return [_fingerprint(session, episode) for episode in session.episodes]


def judge_duplicates(own: Sequence[EpisodePrint], others: Sequence[EpisodePrint]) -> Iterator[Finding]:
    """Find episodes of a session that are in it twice, or in another one as well.

    Args:
        others: of other sessions alone.
    """
    where = f"session '{own[0].session}'" if own else ""
    inside = [(first, second) for first, second in _alike(own, own) if first.episode > second.episode]
    untold = [pair for pair in inside if not pair[0].words & pair[1].words]
    if untold:
        shown = ", ".join(f"{first.episode} and {second.episode}" for first, second in untold[:3])
        yield Finding(
            "care", "duplicate", where,
            got=f"{counted(len(untold), 'pair')} of equal episodes ({shown}{', ...' if len(untold) > 3 else ''})",
            expected="every trial once",
            next_step="Tag repeats with one word and name the tag in the scenario (`repeats_share`), or drop them: "
            "a repeat on both sides of a split makes held-out evidence worthless.",
        )  # fmt: skip
    elif inside:
        yield Finding(
            "note", "duplicate", where,
            got=f"{counted(len(inside), 'pair')} of equal episodes, tagged as such", expected="every trial once",
            next_step="Split by that tag (`repeats_share` in the scenario).",
        )  # fmt: skip
    shared = defaultdict(set)
    for mine, theirs in _alike(own, others):
        shared[theirs.session].add(mine.episode)
    for session, copied in sorted(shared.items()):
        yield Finding(
            "reject" if len(copied) == len(own) else "care", "duplicate", where,
            got=f"{len(copied)} of {counted(len(own), 'episode')} that {session} holds as well",
            expected="recordings of its own",
            next_step="Use one of the two: with both, what they share counts twice and judges itself. "
            f"Where this one was ingested anew, delete the older: {session}.",
        )  # fmt: skip


def _alike(
    first: Sequence[EpisodePrint], second: Sequence[EpisodePrint]
) -> Iterator[tuple[EpisodePrint, EpisodePrint]]:
    """Yield the pairs that are one recording. Compared one by one are only those that agree in one number already."""
    groups = defaultdict(list)
    for each in second:
        groups[each.rows, each.turn_invariant, tuple(each.sketch)].append(each)
    mine = defaultdict(list)
    for each in first:
        mine[each.rows, each.turn_invariant, tuple(each.sketch)].append(each)
    for kind, own in mine.items():
        theirs = groups.get(kind, [])
        if not theirs:
            continue
        apart = np.abs(_number(own)[:, None] - _number(theirs)[None])
        tolerance = _ALIKE * np.array([_spread(each) for each in own])[:, None]
        for i, j in np.argwhere(apart <= tolerance):
            if same_recording(own[i], theirs[j]):
                yield own[i], theirs[j]


def same_recording(first: EpisodePrint, second: EpisodePrint) -> bool:
    """Tell whether two episodes are one recording: equal bytes, or equal motion closer than noise allows.

    Where bodies move in the world, what a yaw of the world leaves alone decides: it makes no other trial.
    """
    if first.digest == second.digest:
        return True
    names = first.turn_invariant or tuple(first.sketch)
    if first.rows != second.rows or first.sketch.keys() != second.sketch.keys() or len(first.sketch) < _LEAST_MOVING:
        return False
    return all(
        np.abs(first.sketch[name] - second.sketch[name]).max() <= _ALIKE * np.ptp(first.sketch[name]) for name in names
    )


def _number(prints: Sequence[EpisodePrint]) -> np.ndarray:
    """One number an episode that copies share: a reading in its middle (0 where nothing moves)."""
    return np.array([each.sketch[_telling(each)][_SAMPLES // 3] if each.sketch else 0.0 for each in prints])


def _spread(each: EpisodePrint) -> float:
    return float(np.ptp(each.sketch[_telling(each)])) if each.sketch else 0.0


def _telling(each: EpisodePrint) -> str:
    return each.turn_invariant[0] if each.turn_invariant else next(iter(each.sketch))


def _fingerprint(session: Session, episode: Episode) -> EpisodePrint:
    digest = hashlib.sha256()
    sketch: dict[str, np.ndarray] = {}
    turn_invariant: list[str] = []
    for channel in sorted(session.channels, key=lambda each: each.name):
        values = np.ascontiguousarray(episode[channel.name], dtype=float)
        digest.update(values.tobytes())
        if channel.stamp == "at_sample":
            sketch |= _sketched(channel.name, channel.columns, values)
            if channel.unit == "m" and channel.frame == "world" and channel.width == 3:
                reach = np.hypot(*(values[:, :2] - values[0, :2]).T)
                turned = _sketched(channel.name, ("reach", channel.columns[2]), np.column_stack([reach, values[:, 2]]))
                sketch |= turned
                turn_invariant += turned
    time_s = np.asarray(episode.time_s, float)
    digest.update(np.round(time_s - time_s[0], 9).tobytes())
    words = frozenset((str(key), str(value)) for key, value in episode.tags.items())
    return EpisodePrint(
        session.card.session, episode.index, digest.hexdigest(), len(episode), sketch, tuple(turn_invariant), words
    )


def _sketched(channel: str, columns: Sequence[str], values: np.ndarray) -> dict[str, np.ndarray]:
    """The columns that move, each at a few rows."""
    rows = np.linspace(0, len(values) - 1, _SAMPLES).astype(int)
    spread, size = np.ptp(values, axis=0), np.maximum(1.0, np.abs(values).max(axis=0))
    moving = np.flatnonzero(spread > _MOVED * size)  # NaN is not more than anything
    return {f"{channel}.{columns[place]}": values[rows, place] for place in moving.tolist()}
