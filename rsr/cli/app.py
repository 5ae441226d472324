"""The list of commands, and what becomes of their errors."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence

import tyro

from rsr.cli.chain import report, status, step
from rsr.cli.checking import check
from rsr.cli.clash import clash
from rsr.cli.converting import convert
from rsr.cli.deploying import deploy, export, recover
from rsr.cli.gnn import gnn
from rsr.cli.groups import later
from rsr.cli.ingesting import ingest
from rsr.cli.lab import answer, approve, doctor, drift
from rsr.cli.planning import divergence, plan
from rsr.cli.published import data
from rsr.cli.recordings import calibrate, evaluate
from rsr.cli.screen import say_error
from rsr.cli.training import train
from rsr.errors import RsrError

COMMANDS: tuple[Callable[..., int], ...] = (
    status,
    step,
    report,
    ingest,
    check,
    convert,
    calibrate,
    evaluate,
    divergence,
    plan,
    train,
    export,
    deploy,
    recover,
    data,
    clash,
    gnn,
    drift,
    answer,
    approve,
    doctor,
)

FAILED = 2
"""Exit code for whatever the user can mend: wrong options and every RsrError."""
INTERRUPTED = 130
UNREAD = 141


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code. Wrong usage and `--help` leave through SystemExit, as is usual."""
    try:
        return _run(arguments)
    except RsrError as error:
        say_error(error)
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # `rsr ... | head` has read enough; nor shall Python complain when it flushes at the end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return UNREAD


def _run(arguments: Sequence[str] | None) -> int:
    try:
        return _parsed(arguments)()
    finally:
        sys.stdout.flush()  # here, where a reader that is gone can still be dealt with


def _parsed(arguments: Sequence[str] | None) -> Callable[[], int]:
    return tyro.extras.subcommand_cli_from_dict(
        {command.__name__: later(command) for command in COMMANDS},
        prog="rsr",
        description="Close the gap between simulation and reality: look at the loop, or do a part of it by hand. "
        "The loop itself: python -m flows.rsr_loop --help",
        args=arguments,
        config=(tyro.conf.FlagCreatePairsOff,),
    )
