"""Children that die on purpose: work in forks of a process that has imported everything and started no thread."""

from __future__ import annotations

import os
from collections.abc import Callable


def in_fork(work: Callable[[], object]) -> int:
    """Run in a child; returns its exit code, or minus the signal that ended it."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
            os._exit(0)
        except BaseException as error:
            say(f"{type(error).__name__}: {error}")
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def say(words: str) -> None:
    """Write a line, unbuffered: the next moment may be the last."""
    os.write(1, f"{words}\n".encode())
