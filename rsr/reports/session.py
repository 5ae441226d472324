"""One page per session: what `rsr check` shows, in a terminal, as HTML and as JSON, from one examination."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rsr.common import RsrError, SessionError
from rsr.planning import Excitation, find_excitation, judge_directions, judge_excitation, judge_support
from rsr.scenarios import SIMULATOR_OF, Scenario, joint_ranges, lacking, load_scenario
from rsr.sessions import (
    EpisodePrint,
    Finding,
    Inspection,
    Session,
    SessionVerdict,
    counted,
    fingerprints,
    from_error,
    inspect_session,
    read_session,
    verdict,
)
from rsr.simulators import judge_poses

_EVEN_S = 1e-6
"""Stamps that stray less than this from a regular clock are even."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class SessionPage:
    """Examination of one session's folder.

    Args:
        inspection: None where the session cannot be read.
        excitation: None where it was not asked for, or the session cannot be simulated.
    """

    folder: Path
    findings: tuple[Finding, ...]
    inspection: Inspection | None = None
    excitation: tuple[Excitation, ...] | None = None

    @property
    def session(self) -> Session | None:
        return self.inspection.session if self.inspection else None

    @property
    def verdict(self) -> SessionVerdict:
        """*use*, *use with care* or *reject*."""
        return verdict(self.findings)


def examine_session(
    folder: Path, scenario: str | None = None, others: Sequence[EpisodePrint] = (), simulate: bool = True
) -> SessionPage:
    """Read and check one stored session.

    Args:
        scenario: what it is to be used for; by default what its card says.
        others: fingerprints of sessions that it may be a copy of, see `known_prints`.
        simulate: also find out which parameters it can say anything about; takes seconds.

    Raises:
        ConfigError: there is no such scenario.
    """
    try:
        session = read_session(folder)
    except SessionError as error:
        return SessionPage(folder, (from_error(error),))
    loaded = load_scenario(scenario or session.card.scenario)
    apart = [each for each in others if each.session != _label(folder)]
    attached = [each.channel.name for each in loaded.observed if each.sensor_columns]
    inspection = inspect_session(session, loaded.channels, joint_ranges(loaded), apart, attached, loaded.channel_noise)
    said = tuple(_missing_values(loaded, session))
    excitation, poses = None, ()
    if not any(finding.severity == "reject" for finding in (*inspection.findings, *said)):
        poses = tuple(judge_poses(loaded, session))
        excitation = _excitation(loaded, session) if simulate else None
        if excitation is not None:  # what can be simulated at all
            falls = tuple(judge_support(loaded, session))
            poses = (*poses, *(falls or judge_directions(loaded, session)))  # in free fall no sign shows
    findings = (
        *inspection.findings,
        *said,
        *poses,
        *judge_excitation(session, excitation or ()),
        *_judge_methods(loaded),
    )
    return SessionPage(folder, findings, inspection, excitation)


def _missing_values(scenario: Scenario, session: Session) -> Iterator[Finding]:
    """Find values per episode that the scenario needs and the first episode without them does not say."""
    for value in scenario.per_episode:
        for episode in session.episodes:
            try:
                value.of(episode)
            except SessionError as error:
                yield from_error(error)
                break


def _judge_methods(scenario: Scenario) -> Iterator[Finding]:
    """Say what of the scenario the methods that differentiate cannot do, the default one among them."""
    lacked = dict.fromkeys(used for _, used in lacking(scenario, "mjx"))
    if lacked:
        methods = " and ".join(method for method, simulator in SIMULATOR_OF.items() if simulator == "mjx")
        yield Finding(
            "note", "excitation", f"scenario '{scenario.name}'",
            got=", ".join(lacked),
            expected=f"what methods {methods} differentiate",
            next_step="Calibrate with --method sysid, or with --sensitivity auto; `rsr capabilities` has more.",
        )  # fmt: skip


def known_prints(folders: Sequence[Path]) -> list[EpisodePrint]:
    """Fingerprints of these sessions and of all that lie beside them; what cannot be read has none."""
    named = {Path(folder).resolve() for folder in folders}
    beside = {meta.parent for folder in named for meta in folder.parent.glob("[!.]*/meta")}
    found = []
    for folder in sorted(named | beside):
        try:
            prints = fingerprints(read_session(folder))
        except (SessionError, ValueError, KeyError) as error:
            _log.debug("no fingerprint of %s: %s", folder, error)
            continue
        found += [replace(each, session=_label(folder)) for each in prints]
    return found


def _label(folder: Path) -> str:
    """Name a session by where it lies: the same name in two places may be two recordings, or one."""
    return str(Path(folder).resolve())


def page_document(page: SessionPage) -> dict[str, Any]:
    """Everything on the page as plain values, for machines."""
    document: dict[str, Any] = {
        "folder": str(page.folder),
        "verdict": page.verdict,
        "findings": [vars(finding) for finding in page.findings],
    }
    if page.inspection is not None:
        document |= _inspected(page.inspection)
    if page.excitation is not None:
        document["excitation"] = {
            each.parameter.name: {
                "std_share": each.std_share,
                "observability": each.observability,
                "correlated": list(each.correlated),
            }
            for each in page.excitation
        }
    return _finite(document)


def facts(page: SessionPage) -> Iterator[tuple[str, str]]:
    """Name and value of what stands at the head of a page."""
    if page.inspection is None:
        return
    session, frames = page.inspection.session, page.inspection.frames
    rows = sum(len(episode) for episode in session.episodes)
    yield "recorded", "in a simulation" if session.card.simulated else "in reality"
    size = f"{counted(len(session.episodes), 'episode')}, {counted(rows, 'row')}"
    yield "length", f"{size}, {session.card.control_dt_s * rows:.0f} s"
    if frames is not None:
        even = "evenly" if frames.jitter_s < _EVEN_S else f"to {1e3 * frames.jitter_s:.2g} ms"
        yield "rate", f"{frames.rate_hz:.4g} Hz, stamped {even}, {counted(frames.lost, 'frame')} lost"
    for each in page.inspection.clocks:
        lower_s, upper_s = each.clock.offset_interval_s
        interval = f"{1e3 * each.clock.offset_s:.2f} ms late ({1e3 * lower_s:.2f} to {1e3 * upper_s:.2f})"
        kind = "" if each.relation == "derivative" else ", the drive's delay included"
        yield f"{each.other.name} against {each.reference.name}", f"{interval}{kind}; {each.clock.status}"
    fall = page.inspection.free_fall
    if fall is not None:
        yield "free fall", f"{fall.reading:.3f} m/s2 ({fall.lower:.3f} to {fall.upper:.3f}) in {fall.falls} flights"


def _excitation(scenario: Scenario, session: Session) -> tuple[Excitation, ...] | None:
    """A session that another check faults may also be impossible to simulate; that is no reason to stop."""
    try:
        return find_excitation(scenario, session)
    except (RsrError, ValueError, FloatingPointError) as error:
        _log.warning("no excitation of %s: %s", session.card.session, error)
        return None


def _inspected(inspection: Inspection) -> dict[str, Any]:
    session, frames, fall = inspection.session, inspection.frames, inspection.free_fall
    return {
        "session": session.card.session,
        "scenario": session.card.scenario,
        "simulated": session.card.simulated,
        "episodes": len(session.episodes),
        "rows": sum(len(episode) for episode in session.episodes),
        "rate_hz": frames.rate_hz if frames else None,
        "jitter_s": frames.jitter_s if frames else None,
        "frames_lost": frames.lost if frames else None,
        "free_fall_m_s2": fall.reading if fall else None,
        "channels": [
            {
                "name": row.channel.name,
                "unit": row.channel.unit,
                "lowest": list(row.lowest),
                "highest": list(row.highest),
                "moving": row.moving,
                "range_covered": row.covered,
            }
            for row in inspection.channels
        ],
        "clocks": [
            {
                "reference": each.reference.name,
                "other": each.other.name,
                "relation": each.relation,
                "status": each.clock.status,
                "offset_s": each.clock.offset_s,
                "offset_interval_s": list(each.clock.offset_interval_s),
                "correlation": each.clock.correlation,
            }
            for each in inspection.clocks
        ],
    }


def _finite(value: Any) -> Any:
    """JSON has no NaN: what is no number is null."""
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
