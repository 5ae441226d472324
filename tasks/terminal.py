"""Who writes to the terminal: bars and our own sentences. Everything else on standard error can be sent to a file."""

from __future__ import annotations

import os
import sys
import threading
import traceback
from contextlib import suppress
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from rsr.common import progress

_first = threading.Lock()
"""Taken by whoever complains: one error often leads to others, in other threads."""
_log: Path | None = None


def divert(log: Path) -> None:
    """From now on standard error, of libraries and of children too, goes to this file, written anew.

    Whoever sets PREFECT_LOGGING_LEVEL gets it on the terminal.
    """
    global _log
    if "PREFECT_LOGGING_LEVEL" in os.environ:
        return
    try:
        file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o644)
    except OSError:  # a full disk must not keep us from saying that it is full
        file = os.open(os.devnull, os.O_WRONLY)
    else:
        _log = log
    letters = sys.stderr  # it may know ASCII alone
    progress.terminal = os.fdopen(os.dup(2), "w", buffering=1, encoding=letters.encoding, errors=letters.errors)
    os.dup2(file, 2)
    os.close(file)


def complain(error: Exception) -> None:
    """Report an error in one sentence, without a traceback, and only the first. The traceback goes to the file."""
    if not _first.acquire(blocking=False):
        return
    console = Console(file=progress.terminal, stderr=True, highlight=False, soft_wrap=True)
    more = ""
    if _log is not None:
        with suppress(OSError):  # the disk may be full
            traceback.print_exception(error)
        more = f" (More in {_log}.)"
    console.print(f"[bold red]{type(error).__name__}[/]", escape(str(error) + more))
