"""A command in a child process, so that a signal ends all of it within seconds, whatever it is doing.

Ctrl-C in a terminal goes to every process of the foreground: Prefect's server would die before the loop that needs it.
And a signal waits until Python is back from compiled code, which may take minutes. So the child has a session of its
own, and this parent, which does nothing but wait, asks it to end, and after a few seconds ends all that is left. No
more is needed: a workspace survives a kill at any moment.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import signal
import sys
import time
from contextlib import suppress
from types import FrameType

import psutil

GOES_ON = "The same command goes on from here."
_GRACE_S = 2.5
"""For what must not be cut off, such as bringing a robot to rest; what takes longer is killed."""
_KILLED_WITHIN_S = 1.5
_GIVEN_UP = signal.SIGUSR1
_SENTENCES = {
    signal.SIGINT: "Interrupted.",
    signal.SIGTERM: "Ended by SIGTERM.",
    signal.SIGHUP: "Ended, as the terminal was closed.",
}
_SHOW_CURSOR = "\x1b[?25h"
_SET_DEATH_SIGNAL, _SET_SUBREAPER = 1, 36  # prctl(2)

_supervisor: int | None = None
"""In the child: its parent."""


def supervised(main: str, *arguments: object, afterwards: str = GOES_ON) -> int:
    """Call the main function of a command in a child process; returns the exit code.

    Where SIGINT, SIGTERM or SIGHUP ended it, nothing that it started is left, and the code is 128 + the signal. What is
    ignored from the start stays so (`nohup`). To be called early: before it, a signal meets a bare Python.

    Args:
        main: "module:function", which is imported in the child; it returns an exit code.
        arguments: of that function.
        afterwards: a sentence for whoever ended it.
    """
    heeded = {number for number in (*_SENTENCES, _GIVEN_UP) if signal.getsignal(number) is not signal.SIG_IGN}
    signal.pthread_sigmask(signal.SIG_BLOCK, {*heeded, signal.SIGCHLD})
    _control(_SET_SUBREAPER, 1)  # whose parent is killed becomes our child, so that none escapes
    parent, child = os.getpid(), os.fork()
    if child == 0:
        _begin(parent, heeded)
        module, name = main.split(":")
        return getattr(importlib.import_module(module), name)(*arguments)
    asked, code = _wait(child, heeded)
    if asked is None and code >= 0:
        return code
    _end_offspring()
    _tell(asked, code, afterwards)
    return 1 if asked is _GIVEN_UP else 128 + (asked or -code)


def give_up(error: Exception) -> bool:
    """End the command from any of its threads, because of this; False where nobody supervises it."""
    from rsr_tasks import terminal

    if _supervisor is None:
        return False
    terminal.complain(error)
    os.kill(_supervisor, _GIVEN_UP)
    return True


def _begin(parent: int, heeded: set[signal.Signals]) -> None:
    """Cut the child's ties to the terminal, but not to its parent."""
    global _supervisor
    _supervisor = parent
    os.setsid()
    _control(_SET_DEATH_SIGNAL, signal.SIGKILL)  # should the parent be killed; tasks/watcher.py ends what we started
    if os.getppid() != parent:
        os._exit(1)
    signal.signal(signal.SIGINT, _ask)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {*heeded, signal.SIGCHLD})


def _ask(_: int, frame: FrameType | None) -> None:
    """Have the child run through its `finally` blocks, without a word: the parent has the last one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Nothing is imported here: the signal may have come in the middle of an import.
    terminal = getattr(sys.modules.get("rsr.common.progress"), "terminal", None)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for number in (1, 2, *([terminal.fileno()] if terminal else [])):
        os.dup2(nowhere, number)
    raise KeyboardInterrupt


def _wait(child: int, heeded: set[signal.Signals]) -> tuple[signal.Signals | None, int]:
    """Wait for the child's end; returns the signal that asked for it, if any did, and the child's exit code."""
    asked, deadline_s = None, float("inf")
    while (left_s := deadline_s - time.monotonic()) > 0.0:
        came = signal.sigtimedwait({*heeded, signal.SIGCHLD}, min(left_s, 3600.0))
        code = _reap(child)
        if code is not None:
            return asked, code
        if came is not None and came.si_signo != signal.SIGCHLD and asked is None:
            asked, deadline_s = signal.Signals(came.si_signo), time.monotonic() + _GRACE_S
            os.kill(child, signal.SIGINT)
    return asked, -signal.SIGKILL


def _reap(child: int) -> int | None:
    """Bury all that have ended; returns the child's exit code if it is among them."""
    code = None
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            code = os.waitstatus_to_exitcode(ended[1]) if ended[0] == child else code
    return code


def _end_offspring() -> None:
    """Kill until nobody is left: who is killed may have had children of its own a moment before."""
    deadline_s = time.monotonic() + _KILLED_WITHIN_S
    while (found := psutil.Process().children(recursive=True)) and time.monotonic() < deadline_s:
        for process in found:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(found, timeout=0.5)


def _tell(asked: signal.Signals | None, code: int, afterwards: str) -> None:
    """Say it by what is loaded already: on a busy machine an import takes a second, of the five that there are."""
    sentence = f"Killed by {signal.Signals(-code).name}." if asked is None else _SENTENCES.get(asked)
    in_terminal = os.isatty(2) and os.environ.get("TERM") not in {"dumb", "unknown"}
    words = "" if sentence is None else "\n" * in_terminal + f"{sentence} {afterwards}\n"
    with suppress(OSError):  # the terminal may be gone
        os.write(2, (_SHOW_CURSOR * in_terminal + words).encode())  # a bar may have hidden the cursor


def _control(option: int, argument: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(option, argument, 0, 0, 0)
