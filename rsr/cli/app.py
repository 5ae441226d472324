"""The list of commands, and what becomes of their errors."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import entry_points

import tyro

from rsr.cli.calibrate import calibrate
from rsr.cli.campaign import report, status, step
from rsr.cli.capabilities import capabilities
from rsr.cli.check import check
from rsr.cli.clash import clash
from rsr.cli.command import hint, later, say, say_error, version_line
from rsr.cli.deploy import deploy, export, recover, train
from rsr.cli.doctor import doctor
from rsr.cli.evaluate import evaluate
from rsr.cli.ingest import convert, data, ingest
from rsr.cli.lab import answer, approve, drift
from rsr.cli.plan import divergence, plan
from rsr.cli.push import push
from rsr.common import RsrError, tolerate_ascii

COMMANDS: tuple[Callable[..., int], ...] = (
    status, step, report, ingest, check, convert, calibrate, capabilities, evaluate, divergence, plan, train, export,
    deploy, recover, data, clash, push, drift, answer, approve, doctor,
)  # fmt: skip

FAILED = 2
"""Exit code for whatever the user can mend: wrong options and every RsrError."""
INTERRUPTED = 130
UNREAD = 141


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code. Wrong usage and `--help` leave through SystemExit, as is usual."""
    tolerate_ascii()
    try:
        return _run(arguments)
    except RsrError as error:
        say_error(error)
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # `rsr ... | head` has read enough; nor may Python complain when it flushes at the end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return UNREAD


def _run(arguments: Sequence[str] | None) -> int:
    try:
        given = sys.argv[1:] if arguments is None else list(arguments)
        if given == ["--version"]:
            say(version_line())
            return 0
        with _without_colours():
            command = _parsed(given)
        return command()
    finally:
        sys.stdout.flush()  # here, where a reader that is gone can still be dealt with


@contextmanager
def _without_colours() -> Iterator[None]:
    """Respect NO_COLOR in the help, too: rich does so by itself, tyro asks only what the terminal can do."""
    kept = os.environ.get("TERM")
    if kept is None or not os.environ.get("NO_COLOR"):
        yield
        return
    os.environ["TERM"] = "dumb"
    try:
        yield
    finally:
        os.environ["TERM"] = kept


def _lent() -> Iterator[Callable[..., int]]:
    """Commands that need git and DVC, which the library does not know: what is installed beside it lends them."""
    for name, entry in sorted({entry.name: entry for entry in entry_points(group="rsr.commands")}.items()):
        try:
            yield entry.load()
        except (ImportError, AttributeError) as error:
            hint(f"The command '{name}' of {entry.value} is missing: {error}")


def _parsed(arguments: Sequence[str] | None) -> Callable[[], int]:
    return tyro.extras.subcommand_cli_from_dict(
        {command.__name__: later(command) for command in (*_lent(), *COMMANDS)},
        prog="rsr",
        description="Close the gap between simulation and reality: look at the loop, or do a part of it by hand. "
        "Begin with rsr init. The loop itself: rsr-loop --help. Which version this is: rsr --version",
        args=arguments,
        config=(tyro.conf.FlagCreatePairsOff,),
    )
