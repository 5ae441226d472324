"""One loop at a time: a lock on the workspace, which the operating system drops when its holder dies."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import psutil

from rsr.common import WorkspaceError, cannot_write
from rsr_tasks.watcher import LOOP_VARIABLE

_held: dict[Path, int] = {}
"""Workspaces that this process holds, and by which thread: the system's lock does not distinguish threads."""
_CHANGING_HANDS_S = 5.0
"""For which a lock may be held without a record; usually some microseconds."""


@dataclass(frozen=True)
class Holder:
    """Who holds, or held, a workspace."""

    pid: int
    host: str
    since: str
    command: str

    def mark(self, root: Path) -> str:
        """The value of LOOP_VARIABLE in the environment of this holder's children."""
        return f"{self.pid}@{self.host}:{root}"


def is_held(root: Path) -> bool:
    """Whether this thread holds the workspace."""
    return _held.get(Path(root).resolve()) == threading.get_ident()


def live_holder(root: Path) -> Holder | None:
    """Who holds the workspace at this moment, as far as can be said without touching the lock."""
    try:
        holder = Holder(**json.loads((Path(root).resolve() / ".rsr" / "lock").read_text()))
        since = datetime.fromisoformat(holder.since).timestamp()
        # A process that began later only bears the number of one that is gone.
        gone = holder.host == socket.gethostname() and psutil.Process(holder.pid).create_time() > since + 2.0
    except (OSError, ValueError, TypeError, psutil.NoSuchProcess):
        return None
    return None if gone else holder


@contextmanager
def held(root: Path) -> Iterator[Holder | None]:
    """Hold the workspace; yields the previous holder if that one died without letting go.

    A POSIX record lock is used because children do not inherit it: an orphan of a killed loop cannot keep the
    workspace locked.

    Raises:
        WorkspaceError: another loop holds it, or the folder cannot be written.
    """
    root = Path(root).resolve()
    if root in _held:
        raise _busy(root, "in this process")
    file = _open(root / ".rsr" / "lock")
    try:
        _acquire(file, root)
        dead = _read(file)
        with _recorded(file, root):
            yield dead
    finally:
        os.close(file)


@contextmanager
def _recorded(file: int, root: Path) -> Iterator[None]:
    """Say who holds the workspace: in the lock's file, and in the environment of every child."""
    me = Holder(os.getpid(), socket.gethostname(), datetime.now(UTC).isoformat(timespec="seconds"), " ".join(sys.argv))
    try:
        _write(file, json.dumps(asdict(me)).encode())
    except OSError as error:  # a full disk
        raise cannot_write(root / ".rsr" / "lock", error) from error
    _held[root] = threading.get_ident()
    before = os.environ.get(LOOP_VARIABLE)
    os.environ[LOOP_VARIABLE] = me.mark(root)
    try:
        yield
    finally:
        _restore(before)
        del _held[root]
        _write(file, b"")


def _open(path: Path) -> int:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise cannot_write(path, error) from error


def _acquire(file: int, root: Path) -> None:
    """Take the lock, or say who has it; a holder without a record is letting go or taking hold, and is waited for."""
    until_s = time.monotonic() + _CHANGING_HANDS_S
    while True:
        try:
            return fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = _read(file)
            if holder is not None or time.monotonic() > until_s:
                who = f"process {holder.pid} on {holder.host}, since {holder.since}" if holder else "another process"
                raise _busy(root, who) from error
        time.sleep(0.01)


def _busy(root: Path, who: str) -> WorkspaceError:
    return WorkspaceError(
        got=f"a workspace in which a loop is running ({who})",
        expected="one loop at a time",
        where=str(root),
        next_step="Wait for it or stop it, then run the same command again; or use another workspace.",
    )


def _read(file: int) -> Holder | None:
    try:
        return Holder(**json.loads(os.pread(file, 10_000, 0)))
    except (ValueError, TypeError):  # empty: its holder let go; torn: it died while taking hold, before any work
        return None


def _write(file: int, content: bytes) -> None:
    os.ftruncate(file, 0)
    os.pwrite(file, content, 0)


def _restore(value: str | None) -> None:
    if value is None:
        os.environ.pop(LOOP_VARIABLE, None)
    else:
        os.environ[LOOP_VARIABLE] = value
