"""End the children of a loop that was killed: Prefect's server, workers of a step. Also a small program of its own.

A killed process cannot end its children, and Prefect's embedded server would live on for ever, holding open whatever
the loop wrote to. So a loop starts this file beside itself; it waits for the loop's death and then clears up.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

LOOP_VARIABLE = "RSR_LOOP"
"""Environment variable that every child of a loop inherits: "PID@HOST:WORKSPACE" of the loop.

Children of `rsr_flows.serve` have "PID@HOST:serve:PORT".
"""

_watching: dict[str, subprocess.Popen[bytes]] = {}
"""Watchers that wait beside loops of this process, by the loop's mark."""


@contextmanager
def watched() -> Iterator[None]:
    """Have our children ended should we be killed; as long as we live, that is our own business.

    Where a signal ends the loop (Ctrl-C, a cancelled run), the watcher stays: it ends what we leave behind.
    """
    mark = os.environ[LOOP_VARIABLE]
    if mark in _watching:
        yield
        return
    _watching[mark] = _start()
    try:
        yield
    except BaseException as error:
        if isinstance(error, Exception):
            _stop(mark)
        raise
    _stop(mark)


def _start() -> subprocess.Popen[bytes]:
    # By its path and isolated, so that it starts wherever we were started from and imports nothing of ours.
    command = [sys.executable, "-I", str(Path(__file__).resolve()), str(os.getpid()), os.environ[LOOP_VARIABLE]]
    environment = {name: value for name, value in os.environ.items() if name != LOOP_VARIABLE}
    return subprocess.Popen(
        command,
        env=environment,
        start_new_session=True,  # Ctrl-C is for the loop
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _stop(mark: str) -> None:
    watcher = _watching.pop(mark)
    watcher.kill()
    watcher.wait()


def end_marked(is_ours: Callable[[str], bool]) -> None:
    """End every process, other than this one, whose LOOP_VARIABLE answers the description."""
    found = marked(is_ours)
    for process in found:
        _signal(process.terminate)
    for process in psutil.wait_procs(found, timeout=5)[1]:
        _signal(process.kill)


def marked(is_ours: Callable[[str], bool]) -> list[psutil.Process]:
    """Find every process, other than this one, whose LOOP_VARIABLE answers the description."""
    return [process for process in psutil.process_iter() if process.pid != os.getpid() and is_ours(mark_of(process))]


def mark_of(process: psutil.Process) -> str:
    """Its LOOP_VARIABLE, empty if it has none."""
    try:
        return process.environ().get(LOOP_VARIABLE, "")
    except psutil.Error:
        return ""


def _signal(send: Callable[[], None]) -> None:
    try:
        send()
    except psutil.NoSuchProcess:
        return


def _wait_for_end(pid: int) -> None:
    try:
        if hasattr(os, "pidfd_open"):
            select.select([os.pidfd_open(pid)], [], [])
        else:
            psutil.Process(pid).wait()
    except (ProcessLookupError, psutil.NoSuchProcess):
        return


if __name__ == "__main__":
    _wait_for_end(int(sys.argv[1]))
    end_marked(lambda mark: mark == sys.argv[2])
