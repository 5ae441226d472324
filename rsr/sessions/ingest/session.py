"""A lab's recording becomes a session: opened, mapped, put on the scenario's grid, checked, stored with its source."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rsr.common import Advance, ConfigError, chosen, ignore
from rsr.sessions import Card, Channel, Episode, Session, is_session, write_session
from rsr.sessions.checks import find_problems
from rsr.sessions.importers import Recording, open_recording
from rsr.sessions.ingest.assemble import assemble
from rsr.sessions.ingest.evidence import doubtful
from rsr.sessions.ingest.guessing import Proposal, propose
from rsr.sessions.ingest.mapping import (
    Mapping as ChannelMapping,
    Question,
    Target,
    check_lines,
    merged,
    parse_mapping,
    plain,
    to_yaml,
)
from rsr.sessions.ingest.raw_files import (
    MAPPING_FILE,
    SOURCE_FILE,
    Keep,
    RawFile,
    describe,
    made_from,
    made_with,
    raw_files,
)
from rsr.sessions.intake import IntakeLimits, admitted, check_stored

Ask = Callable[[Question], Any]
"""Ask a person; returns the answer as a plain value."""


@dataclass(frozen=True)
class Origin:
    """Entries of the card that are not in the recording itself."""

    reality: str = "lab"
    simulated: bool = False
    robot: str | None = None


@dataclass(frozen=True)
class Ingested:
    """Result of an ingest.

    Args:
        known: this very recording had been stored before; nothing was written.
        damage: what could not be read or used, in words.
    """

    folder: Path
    mapping: ChannelMapping
    known: bool = False
    damage: tuple[str, ...] = ()
    episodes: int = 0
    seconds: float = 0.0
    said: tuple[str, ...] = ()


def ingest(
    sources: Sequence[Path],
    target: Target,
    root: Path,
    *,
    given: Mapping[str, Any] | None = None,
    format: str | None = None,
    name: str | None = None,
    origin: Origin | None = None,
    keep: Keep = "copy",
    limits: IntakeLimits | None = None,
    ask: Ask | None = None,
    say: Callable[[str], None] = lambda text: None,
    advance: Advance = ignore,
) -> Ingested:
    """Store recordings as one session under `root/<scenario>/`.

    Args:
        sources: files or folders of one format, episodes in this order.
        given: lines of a mapping that are settled already.
        name: of the session; by default the next free `session-NNN`.
        limits: how large each source may be.
        keep: `copy` the raw files into the session's folder, or only their checksums.
        ask: asks a person what cannot be guessed; without it such questions are an error that lists the lines to add.
        say: called with each guess.

    Raises:
        SessionError: nothing usable could be read, or what was read does not fit the scenario.
        ConfigError: the mapping is wrong, or lacks lines that only the lab can give.
        Refused: a source is not safe to be read, or a stored session that is not what it says it is.

    Example:
        >>> ingest([Path("run.csv")], target, Path("data"))  # doctest: +SKIP
    """
    check_lines(given or {}, "mapping")
    with ExitStack() as held:
        sources = held.enter_context(admitted(sources, limits or IntakeLimits()))
        opened = _opened(sources, format or (given or {}).get("format"), held, advance)
        mapping, said = settle(opened[0], target, given or {}, ask, say)
        files = raw_files(sources)
        advance(0.2, "hashed")
        folder = _stored(Path(root), target.scenario, files)
        if folder is not None and (name in (None, folder.name) or made_with(folder) == to_yaml(plain(mapping))):
            if name not in (None, folder.name):
                say(f"These files are session '{folder.name}' already, so nothing is stored under the name '{name}'.")
            return Ingested(folder, mapping, known=True, said=said)
        episodes, notes = _assembled(opened, mapping, target, advance)
        damage = (*(words for recording in opened for words in recording.damage), *notes)
        if folder is not None:
            damage += (f"the same files are session '{folder.name}' as well, mapped otherwise: use one of the two",)
        damage += tuple(doubtful(episodes, target))
        session = _session(Path(root), name, target, mapping, episodes, origin or Origin(), (opened[0], damage))
        _check(session, target, mapping)
        folder = write_session(Path(root), session, _beside(files, keep, mapping, opened[0], damage))
        advance(1.0, "stored")
    seconds = sum(float(episode.time_s[-1]) for episode in episodes)
    return Ingested(folder, mapping, False, damage, len(episodes), seconds, said)


def settle(
    recording: Recording, target: Target, given: Mapping[str, Any], ask: Ask | None, say: Callable[[str], None]
) -> tuple[ChannelMapping, tuple[str, ...]]:
    """Guess a mapping, ask what is left (one by one: an answer may change later guesses), and check it."""
    check_lines(given, "mapping")
    lines = dict(given)
    for key, expected in (("scenario", target.scenario), ("format", recording.format)):
        if lines.get(key, expected) != expected:
            raise ConfigError(
                got=f"a mapping for {key} '{lines[key]}'",
                expected=f"'{expected}'",
                where="mapping",
                next_step="Name another file with --map, or leave it away to have a new one made.",
            )
    proposal = propose(recording, target, lines)
    if proposal.questions and ask is None:
        for line in proposal.said:
            say(line)
        raise _needs_answers(recording, proposal)
    while proposal.questions:
        question = proposal.questions[0]
        lines = merged(lines, question.place, ask(question) if ask is not None else question.suggestion)
        proposal = propose(recording, target, lines)
    for line in proposal.said:
        say(line)
    mapping = parse_mapping(proposal.document, "mapping")
    _check_names(mapping, target)
    return mapping, proposal.said


def _needs_answers(recording: Recording, proposal: Proposal) -> ConfigError:
    """List what is to be added to the mapping, ready to be copied, with what it is about."""
    lines: dict[str, Any] = {}
    for question in proposal.questions:
        lines = merged(lines, question.place, question.suggestion)
    about = "\n".join(f"  # {text}" for text in dict.fromkeys(question.text for question in proposal.questions))
    block = "\n".join(f"  {line}" for line in to_yaml(lines).splitlines())
    count = len({question.text for question in proposal.questions})
    return ConfigError(
        got=f"a recording that leaves {count} question{'' if count == 1 else 's'} open",
        expected="answers that only the lab can give",
        where=str(recording.path),
        next_step="Add these lines to the file that you name with --map, corrected where the suggestion is wrong, "
        f"and run the command again (in a terminal it asks):\n{about}\n{block}",
    )


def _check_names(mapping: ChannelMapping, target: Target) -> None:
    channels = {channel.name: channel for channel in target.channels}
    for name in mapping.channels:
        chosen(name, channels, "channel", f"mapping, scenario {target.scenario}", "Correct the name.")
    if all(entry.source is None for entry in mapping.channels.values()):
        raise ConfigError(
            got="a mapping that takes nothing from the recording",
            expected="at least one channel with `from:` and `columns:`",
            where="mapping",
            next_step="Name the columns of what was recorded.",
        )


def _opened(sources: Sequence[Path], form: str | None, held: ExitStack, advance: Advance) -> list[Recording]:
    """Open the sources, which must be of one format, until `held` lets go of them."""
    opened: list[Recording] = []
    for source in sources:
        if is_session(source):
            check_stored(source)
        opened.append(open_recording(source, form))
        held.callback(opened[-1].close)
        advance(0.1 * len(opened) / len(sources), f"opened {source.name}")
    formats = {recording.format for recording in opened}
    if len(formats) != 1:
        raise ConfigError(
            got=f"sources in formats {', '.join(sorted(formats)) or '(none)'}",
            expected="sources of one format, at least one",
            where="command line",
            next_step="Ingest them as sessions of their own.",
        )
    return opened


def _stored(root: Path, scenario: str, files: Sequence[RawFile]) -> Path | None:
    """The session that was made from exactly these files, if there is one."""
    sums = tuple(sorted(file.sha256 for file in files))
    return next((found for found in sorted((root / scenario).glob("*")) if made_from(found) == sums), None)


def _assembled(
    opened: Sequence[Recording], mapping: ChannelMapping, target: Target, advance: Advance
) -> tuple[tuple[Episode, ...], tuple[str, ...]]:
    episodes: tuple[Episode, ...] = ()
    notes: tuple[str, ...] = ()
    for done, recording in enumerate(opened, 1):
        made, left_out = assemble(recording, mapping, target, len(episodes))
        episodes, notes = episodes + made, notes + left_out
        advance(0.2 + 0.6 * done / len(opened), f"{len(episodes)} episodes")
    return episodes, notes


def _session(
    root: Path,
    name: str | None,
    target: Target,
    mapping: ChannelMapping,
    episodes: tuple[Episode, ...],
    origin: Origin,
    opened: tuple[Recording, tuple[str, ...]],
) -> Session:
    recording, damage = opened
    notes = [f"Ingested from {recording.format}; raw/ has the source and the mapping.", *recording.notes]
    notes += [f"Left out or doubtful: {words}." for words in damage]
    card = Card(
        session=name or _next_free(root / target.scenario),
        scenario=target.scenario,
        reality=origin.reality,
        simulated=origin.simulated,
        control_dt_s=target.control_dt_s,
        robot=origin.robot,
        notes=" ".join(notes),
    )
    return Session(card, _kept(target, mapping), episodes)


def _kept(target: Target, mapping: ChannelMapping) -> tuple[Channel, ...]:
    return tuple(channel for channel in target.channels if not mapping.channels[channel.name].leave_out)


def _next_free(folder: Path) -> str:
    number = 1
    while (folder / f"session-{number:03d}").exists():
        number += 1
    return f"session-{number:03d}"


def _check(session: Session, target: Target, mapping: ChannelMapping) -> None:
    """Whatever was assembled must pass the checks of the channels it has, or nothing is written."""
    for problem in find_problems(session, _kept(target, mapping)):
        raise problem.reworded(next_step="Correct the mapping.")


def _beside(
    files: Sequence[RawFile], keep: Keep, mapping: ChannelMapping, recording: Recording, damage: tuple[str, ...]
) -> dict[str, bytes | Path]:
    beside: dict[str, bytes | Path] = {
        MAPPING_FILE: to_yaml(plain(mapping)).encode(),
        SOURCE_FILE: describe(files, keep, {"format": recording.format, "left_out_or_doubtful": list(damage)}),
    }
    if keep == "copy":
        beside |= {file.name: file.path for file in files}
    return beside
