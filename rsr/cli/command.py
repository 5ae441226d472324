"""How functions become commands, the options that they share, and what they write."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any, Union

import tyro
from rich.console import Console, RenderableType
from tyro.conf import arg

import rsr
from rsr.common import ConfigError, RsrError, show_whole
from rsr.workspace import Workspace

NOT_IN_ORDER = 1
"""Exit code where the answer is bad news: the robot has changed, or something here must be mended."""


def later(command: Callable[..., int]) -> Callable[..., Callable[[], int]]:
    """Let tyro only collect the options: it would show a ValueError raised within a command as wrong usage."""

    @functools.wraps(command)
    def collect(*positional: object, **options: object) -> Callable[[], int]:
        return functools.partial(command, *positional, **options)

    return collect


def group(name: str, title: str, commands: Sequence[Callable[..., int]]) -> Callable[..., int]:
    """Make one command of several, which are named as their functions are."""
    choices = tuple(
        Annotated[Any, tyro.conf.subcommand(command.__name__, prefix_name=False, constructor=later(command))]
        for command in commands
    )

    def run(command: Callable[[], int]) -> int:
        return command()

    run.__name__, run.__doc__ = name, title
    run.__annotations__["command"] = Annotated[Union[choices], tyro.conf.OmitArgPrefixes]  # noqa: UP007 - made at run time
    return run


# What a command works on: a campaign's folder, or stored sessions.


def located(folder: Path | None) -> Workspace:
    """Find the workspace: the folder itself where one was named, else the current one or the nearest above it."""
    return Workspace.find(Path.cwd()) if folder is None else Workspace.at(folder)


def at_least_one(sessions: Sequence[Path]) -> None:
    """Refuse a command line that names no session."""
    if not sessions:
        raise ConfigError(
            got="no session",
            expected="at least one folder of a stored session",
            where="command line",
            next_step="Name them, e.g. data/push_cube/session-001.",
        )


# Options that several commands take, and what these name: sessions, a calibration.

Name = Annotated[str, arg(metavar="S")]
Folders = Annotated[tuple[Path, ...], arg(metavar="DIR [DIR ...]")]
Folder = Annotated[Path, arg(metavar="DIR")]
OptionalFolder = Annotated[Path | None, arg(metavar="DIR", help_behavior_hint="")]
OptionalFile = Annotated[Path | None, arg(metavar="FILE", help_behavior_hint="")]
Count = Annotated[int, arg(metavar="N")]
OptionalCount = Annotated[int | None, arg(metavar="N", help_behavior_hint="")]
OptionalName = Annotated[str | None, arg(metavar="S", help_behavior_hint="")]
Switch = Annotated[bool, arg(help_behavior_hint="")]


def read_sessions(scenario: rsr.scenarios.Scenario, folders: Sequence[Path]) -> tuple[rsr.sessions.Session, ...]:
    """Read sessions and make sure that the scenario can use them."""
    at_least_one(folders)
    sessions = tuple(rsr.sessions.read_session(folder) for folder in folders)
    for session in sessions:
        rsr.sessions.check_session(session, scenario.channels)
    return sessions


def calibration_of(scenario: rsr.scenarios.Scenario, folder: Path | None) -> rsr.calibration.Calibration | None:
    if folder is None:
        return None
    calibration = rsr.calibration.load_calibration(folder)
    if calibration.scenario != scenario.name:
        raise ConfigError(
            got=f"a calibration of scenario {calibration.scenario}",
            expected=f"one of scenario {scenario.name}",
            where=str(folder),
            next_step="Name the scenario that it was made for.",
        )
    return calibration


# What commands write: results to stdout, everything else to stderr.


def show(what: RenderableType) -> None:
    """Show a table or a text with markup to a person."""
    show_whole(Console(), what)


def say(text: str) -> None:
    """Write text as it is, for people and machines alike: paths and JSON are neither wrapped nor coloured."""
    Console().out(text, highlight=False)


def hint(text: str) -> None:
    """Write beside the result, where it does not disturb a machine that reads the result."""
    Console(stderr=True).out(text, highlight=False)


def version_line() -> str:
    """Say which version is installed."""
    return f"rsr {metadata.version('rsr')}"


def say_error(error: RsrError) -> None:
    console = Console(stderr=True)
    console.print(f"[bold red]{type(error).__name__}[/] ", end="")
    console.out(str(error), highlight=False)


def ask(question: str, suggestion: str, read: Callable[[str], Any]) -> Any:
    """Ask in the terminal until `read` can use the answer; Enter takes the suggestion.

    Raises:
        KeyboardInterrupt: standard input has ended.
    """
    while True:
        sys.stderr.write(f"{question} [{suggestion}]: ")
        sys.stderr.flush()
        answer = sys.stdin.readline()
        if not answer:
            raise KeyboardInterrupt
        try:
            return read(answer.strip() or suggestion)
        except (RsrError, ValueError) as error:
            hint(str(error))
