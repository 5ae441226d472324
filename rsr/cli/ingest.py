"""Command: a lab's recordings, in whatever format, as a session."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Annotated, Any, Literal

from tyro.conf import Positional, arg

import rsr
from rsr.cli.command import Count, Folder, Name, OptionalFile, OptionalFolder, Switch, ask, hint, say
from rsr.common import ConfigError, Refused, progress

_Optional = arg(metavar="NAME", help_behavior_hint="")


def ingest(
    sources: Positional[Annotated[tuple[Path, ...], arg(metavar="SOURCE [SOURCE ...]", help_behavior_hint="")]],
    /,
    *,
    scenario: Name,
    format: Annotated[str | None, _Optional] = None,
    map: OptionalFile = None,
    out: Folder = Path("data"),
    name: Annotated[str | None, _Optional] = None,
    robot: Annotated[str | None, _Optional] = None,
    keep: Literal["copy", "hash"] = "copy",
    simulated: Switch = False,
    largest_mb: Count = 1024,
    quarantine: OptionalFolder = None,
) -> int:
    """Turn recordings (bags, MCAP, LeRobot, HDF5, CSV, parquet, npz, ...) into a session, guessing what can be guessed.

    Args:
        sources: files or folders of one format; each becomes one or more episodes.
        scenario: what they are to be used for: a built-in scenario, or the path of a scenario's YAML file.
        format: of the sources, where it is not recognised: rosbag1, rosbag2, mcap, lerobot, hdf5, npz, csv,
            parquet, sage, rsr_text, pace, bam.
        map: YAML file that says which columns are which channels; what it lacks is guessed, asked and written to it. By
            default mappings/<scenario>.yaml.
        out: folder of the sessions.
        name: of the session; by default the next free session-NNN.
        robot: for the card: which one it was.
        keep: copy the raw files into the session's folder, or only note their checksums.
        simulated: say on the card that a simulator recorded this.
        largest_mb: how large each source may be, unpacked, in 2**20 bytes.
        quarantine: folder that a source is moved to which could run code, fill the disk, or is not what it says it is,
            the reason beside it in a text file; by default a refused source stays where it is.
    """
    from rsr.sessions.ingest import session as sessions

    _check(sources, largest_mb)
    loaded = rsr.scenarios.load_scenario(scenario)
    file = map or Path("mappings") / f"{loaded.name}.yaml"
    given = _lines(file)
    answers = _ask if sys.stdin.isatty() and sys.stderr.isatty() else None
    bar = progress.bar("ingest") if answers is None else nullcontext(progress.ignore)
    with _explained(file, sources, quarantine), bar as advance:
        found = sessions.ingest(
            sources,
            rsr.scenarios.target_of(loaded),
            out,
            given=given,
            format=format,
            name=name,
            origin=sessions.Origin("simulator" if simulated else "lab", simulated, robot),
            keep=keep,
            limits=rsr.sessions.IntakeLimits(largest_mb),
            ask=answers,
            say=hint,
            advance=advance,
        )
    rsr.sessions.write_mapping(file, found.mapping)
    _tell(found, file, scenario, loaded)
    say(str(found.folder))
    return 0


def _lines(file: Path) -> dict[str, Any]:
    """What the mapping's file says, where there is one."""
    given = rsr.sessions.read_lines(file) if file.is_file() else {}
    if given:
        hint(f"mapping: {file}")
    return given


@contextmanager
def _explained(file: Path, sources: tuple[Path, ...], quarantine: Path | None) -> Iterator[None]:
    """Have errors name the mapping's file; what is refused is moved only where that was asked for."""
    try:
        yield
    except ConfigError as error:
        words = error.next_step.replace("the file that you name with --map", str(file))
        raise error.reworded(next_step=words) from error
    except Refused as error:
        raise _set_aside(error, sources, quarantine) from error


def _check(sources: tuple[Path, ...], largest_mb: int) -> None:
    """Refuse a command line that no recording could satisfy, before anything is read or moved."""
    if largest_mb < 1:
        raise ConfigError(
            got=f"--largest-mb {largest_mb}",
            expected="a number from 1",
            where="command line",
            next_step="Leave it out for 1024.",
        )
    if not sources:
        raise ConfigError(
            got="no source",
            expected="at least one file or folder with a recording",
            where="command line",
            next_step="Name it, e.g. rsr ingest run.csv --scenario push_cube",
        )


def _ask(question: rsr.sessions.Question) -> Any:
    """Ask in the terminal; Enter takes the suggestion."""
    import yaml

    hint(f"\n{question.text}")
    shown = yaml.safe_dump(question.suggestion, default_flow_style=True).removesuffix("\n...\n").strip()

    def read(answer: str) -> Any:
        try:
            return question.suggestion if answer == shown else yaml.safe_load(answer)
        except yaml.YAMLError as error:
            raise ValueError("That cannot be read; write a word, a number or a list such as [a, b].") from error

    return ask(".".join(question.place), shown, read)


def _set_aside(error: Refused, sources: tuple[Path, ...], folder: Path | None) -> Refused:
    """Move the source that was refused to the folder that was named for it; the others stay, and without one all do."""
    source = _named_in(error, sources) if folder is not None else None
    moved = (
        "and nothing was moved"
        if source is None
        else f"the source is now {rsr.sessions.quarantine(source, error, folder)}"
    )
    return error.reworded(next_step=f"Nothing was stored, {moved}. {error.next_step}")


def _named_in(error: Refused, sources: tuple[Path, ...]) -> Path | None:
    """The refused source, where it can be identified: a good one must not be moved."""
    named = [each for each in sources if error.where.startswith((str(each), str(each.resolve())))]
    if not named and len(sources) > 1:
        return None
    return max(named or sources, key=lambda each: len(str(each.resolve())))  # run-10 begins like run-1


def _tell(found: rsr.sessions.Ingested, file: Path, scenario: str, loaded: rsr.scenarios.Scenario) -> None:
    for words in found.damage:
        hint(f"note: {words}")
    if found.known:
        hint("These files are a session already; nothing was written.")
    else:
        hint(f"{found.episodes} episodes, {found.seconds:.1f} s; mapping kept in {file}")
    hint(f"Now look at it: rsr check {found.folder} --scenario {scenario}")
    for finding in () if found.known else _poses(loaded, found.folder):
        hint(f"{finding.severity}: {finding}")


def _poses(scenario: rsr.scenarios.Scenario, folder: Path) -> list[rsr.sessions.Finding]:
    """Poses that the scene does not allow; of a session that lacks what they need, none."""
    session = rsr.sessions.read_session(folder)
    try:
        rsr.sessions.check_session(session, scenario.channels)
    except rsr.common.SessionError:  # a channel was left out: `rsr check` says which
        return []
    return list(rsr.simulators.judge_poses(scenario, session))


# Command: recordings that research groups publish, as sessions.


def data(
    action: Positional[Literal["get"]],
    name: Positional[Annotated[str, arg(metavar="NAME")]],
    /,
    *,
    root: Folder = Path("data"),
    source: OptionalFolder = None,
) -> int:
    """Store published recordings as a session, fetched from their authors and compared with their checksums.

    Args:
        action: get.
        name: contactnets (cube tosses) or double-pendulum.
        root: folder of the sessions.
        source: take the authors' files, or one parquet table of them, from here instead of fetching them.
    """
    published = rsr.sessions.public_data(name)
    with progress.bar("data") as advance:
        folder = rsr.sessions.get_data(name, root, source, advance)
    say(f"{folder}: {published.title} ({published.licence}), from {published.page}")
    return 0


# `rsr convert`: a stored session in a format of others.


def convert(
    session: Positional[Annotated[Path, arg(metavar="SESSION")]],
    /,
    *,
    to: Annotated[str, arg(metavar="FORMAT")],
    out: Annotated[Path, arg(metavar="PATH")],
    calibration: OptionalFolder = None,
) -> int:
    """Write a stored session in a format that the tools of others read.

    Args:
        session: folder of a stored session.
        to: lerobot (a LeRobotDataset v3.0), mcap (JSON channels) or rrd (Rerun, recorded against simulated).
        out: what to write; nothing that is there is overwritten.
        calibration: for rrd, whose parameters to simulate with; nominal ones without it.
    """
    recorded = rsr.sessions.read_session(session)
    wanted = to in rsr.sessions.EXPORTERS and (rsr.sessions.EXPORTERS[to].takes_simulated or calibration is not None)
    simulated = _simulated(recorded, calibration) if wanted else None
    say(str(rsr.sessions.export_session(recorded, to, out, simulated)))
    return 0


def _simulated(session: rsr.sessions.Session, folder: Path | None) -> rsr.sessions.Simulated:
    """Replay every episode open loop, restarted as the scenario says."""
    scenario = rsr.scenarios.load_scenario(session.card.scenario)
    rsr.sessions.check_session(session, scenario.channels)
    values = scenario.space.nominal if folder is None else rsr.calibration.load_calibration(folder).vector()
    with rsr.simulators.MujocoSimulator(scenario) as simulator:
        return [
            scenario.measure(states) for states in rsr.calibration.replay(scenario, simulator, session.episodes, values)
        ]
