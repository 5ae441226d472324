"""Everything there is to say of one session: numbers, findings with remedies, and a verdict. Data in, words out.

    inspection = inspect_session(session, scenario.channels, limits=joint_limits(scenario))
    inspection.verdict          # "use with care"
    inspection.findings[0]      # ... got a velocity 3.34 ms behind its position: half a frame late ...

Whether the session fits its scenario is asked first (`rsr.sessions.checks.problems`); physics and signals only of
arrays that are sound. What a simulator knows of it (excitation) is added by `rsr.reports.session`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from rsr.common import SessionError
from rsr.sessions import Channel, Session
from rsr.sessions.checks.duplicates import EpisodePrint, fingerprints, judge_duplicates
from rsr.sessions.checks.findings import Finding, SessionVerdict, from_error, verdict
from rsr.sessions.checks.frames import Frames, find_frames
from rsr.sessions.checks.free_fall import FreeFall, find_free_fall, judge_free_fall
from rsr.sessions.checks.motion import MotionClock, find_motion_clocks, find_responses, judge_motion
from rsr.sessions.checks.problems import check_shapes, find_problems
from rsr.sessions.checks.rotation import judge_rotation
from rsr.sessions.checks.signals import judge_limits, judge_signals, judge_stillness
from rsr.sessions.checks.turns import judge_turns, without_wraps

_STILL = 1e-3
"""A channel that stays within this share of its whole range over a second's rows does not move there."""


@dataclass(frozen=True)
class ChannelRow:
    """One channel in numbers.

    Args:
        lowest, highest: per column.
        moving: share of rows around which it moves.
        covered: share of the joints' range that was visited, mean over columns; None where no range is known.
    """

    channel: Channel
    lowest: tuple[float, ...]
    highest: tuple[float, ...]
    moving: float
    covered: float | None


@dataclass(frozen=True)
class Inspection:
    """Result of the check of one session.

    Args:
        frames: the stamps of all episodes: rate, jitter, losses; None where there are too few.
        clocks: velocities against positions, and positions against their commands.
    """

    session: Session
    findings: tuple[Finding, ...]
    channels: tuple[ChannelRow, ...] = ()
    frames: Frames | None = None
    clocks: tuple[MotionClock, ...] = ()
    free_fall: FreeFall | None = None
    prints: tuple[EpisodePrint, ...] = field(default=(), repr=False)

    @property
    def verdict(self) -> SessionVerdict:
        """*use*, *use with care* or *reject*."""
        return verdict(self.findings)


@np.errstate(over="ignore", invalid="ignore", divide="ignore")  # damaged numbers are findings, not warnings
def inspect_session(
    session: Session,
    channels: tuple[Channel, ...] | None = None,
    limits: Mapping[str, np.ndarray] | None = None,
    others: Sequence[EpisodePrint] = (),
    attached: Collection[str] = (),
    noise: Mapping[str, float] | None = None,
) -> Inspection:
    """Check one session.

    Args:
        channels: what its scenario expects; by default what the session itself describes.
        limits: channel -> [W, 2], what its joints can do.
        others: fingerprints of other sessions, to find duplicates.
        attached: channels whose positions are of no free body, such as a tool's: they never fall.
        noise: of the observed channels; without it no episode is said to show no motion.
    """
    limits = limits or {}
    findings = [from_error(problem) for problem in find_problems(session, channels or session.channels)]
    try:
        check_shapes(session)
    except SessionError:
        return Inspection(session, tuple(findings))
    prints = tuple(fingerprints(session))
    findings += judge_turns(session, limits)
    session = without_wraps(session, limits)
    sound = not any(finding.severity == "reject" for finding in findings)
    clocks = tuple(find_motion_clocks(session)) if sound else ()
    fall = find_free_fall(session, attached) if sound else None
    findings += [*judge_limits(session, limits), *judge_duplicates(prints, others)]
    if sound:
        findings += [*judge_motion(session, list(clocks)), *judge_rotation(session)]
        findings += [*judge_free_fall(session, fall), *judge_signals(session)]
        findings += judge_stillness(session, noise or {})
    rows = tuple(_row(session, channel, limits.get(channel.name)) for channel in session.channels)
    clocks += tuple(find_responses(session)) if sound else ()
    return Inspection(session, tuple(findings), rows, _frames(session), clocks, fall, prints)


def _row(session: Session, channel: Channel, limits: np.ndarray | None) -> ChannelRow:
    values = np.concatenate([np.asarray(episode[channel.name], float) for episode in session.episodes])
    finite = values[np.isfinite(values).all(axis=1)]
    if not len(finite):
        return ChannelRow(channel, (), (), 0.0, None)
    lowest, highest = finite.min(axis=0), finite.max(axis=0)
    limits = np.full((channel.width, 2), np.nan) if limits is None else limits
    known = bool(np.isfinite(limits).all())
    covered = float(np.mean(np.clip((highest - lowest) / np.ptp(limits, axis=1), 0, 1))) if known else None
    return ChannelRow(
        channel, tuple(lowest.tolist()), tuple(highest.tolist()), _moving(session, channel, highest - lowest), covered
    )


def _moving(session: Session, channel: Channel, span: np.ndarray) -> float:
    """Share of seconds within which some column leaves the place it had."""
    rows = max(2, round(1.0 / session.card.control_dt_s))
    moved, total = 0, 0
    for episode in session.episodes:
        values = np.asarray(episode[channel.name], float)
        for start in range(0, max(1, len(values) - 1), rows):
            part = values[start : start + rows + 1]
            moved += bool((np.ptp(part, axis=0) > _STILL * np.maximum(span, 1e-12)).any())
            total += 1
    return moved / max(1, total)


def _frames(session: Session) -> Frames | None:
    """Ask the longest episode's stamps; all share one recorder."""
    longest = max(session.episodes, key=len)
    try:
        return find_frames(longest.time_s)
    except SessionError:
        return None
