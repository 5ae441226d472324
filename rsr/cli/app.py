"""The list of commands, and what becomes of their errors."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import tyro

from rsr.cli.chain import report, status, step
from rsr.cli.lab import doctor, drift
from rsr.cli.published import data
from rsr.cli.recordings import calibrate, check, evaluate
from rsr.cli.screen import say_error
from rsr.cli.training import train
from rsr.errors import RsrError

COMMANDS: tuple[Callable[..., int], ...] = (status, step, report, check, calibrate, evaluate, train, data, drift, doctor)

FAILED = 2
"""Exit code for whatever the user can mend: wrong options and every RsrError."""
INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code. Wrong usage and `--help` leave through SystemExit, as is usual."""
    run = tyro.extras.subcommand_cli_from_dict(
        {command.__name__: _later(command) for command in COMMANDS},
        prog="rsr",
        description="Close the gap between simulation and reality: look at the loop, or do a part of it by hand. "
        "The loop itself: python -m flows.rsr_loop --help",
        args=arguments,
        config=(tyro.conf.FlagCreatePairsOff,),
    )
    try:
        return run()
    except RsrError as error:
        say_error(error)
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED


def _later(command: Callable[..., int]) -> Callable[..., Callable[[], int]]:
    """Let tyro only collect the options: it would show a ValueError raised within a command as wrong usage."""

    @functools.wraps(command)
    def collect(*positional: object, **options: object) -> Callable[[], int]:
        return functools.partial(command, *positional, **options)

    return collect
