"""Commands in a pseudo-terminal of their own: typed at, signalled, and looked after whom they leave behind."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path

import psutil

_MARK = "RSR_IN_TERMINAL"
_PATIENCE_S = 300.0
_TAKE_TERMINAL = """
import fcntl, os, signal, sys, termios
for number in (signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_DFL)
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execvp(sys.argv[1], sys.argv[1:])
"""
"""In the child itself, not before it begins (`preexec_fn`): JAX, which other tests load, warns of every plain fork.

As a login does, it heeds the signals that whoever started us in the background (`nohup`, `&`) has us ignore.
"""
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class InTerminal:
    """A command that leads the session of a terminal, as one that a shell was replaced by."""

    def __init__(self, command: Sequence[str], cwd: Path | None = None, **environment: str) -> None:
        self._mark, self._heard = uuid.uuid4().hex, bytearray()
        self._screen, keyboard = pty.openpty()
        self._process = subprocess.Popen(
            [sys.executable, "-c", _TAKE_TERMINAL, *command],
            cwd=cwd,
            env={**os.environ, **environment, _MARK: self._mark},
            stdin=keyboard,
            stdout=keyboard,
            stderr=keyboard,
            start_new_session=True,
        )
        os.close(keyboard)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def text(self) -> str:
        """What is on the screen so far."""
        return self._heard.decode(errors="replace").replace("\r\n", "\n")

    def await_(self, condition: Callable[[], object], what: str) -> None:
        """Wait until it is so, or the command has ended."""
        deadline_s = time.monotonic() + _PATIENCE_S
        while not condition() and self.runs():
            if time.monotonic() > deadline_s:
                raise TimeoutError(f"no {what} within {_PATIENCE_S:.0f} s: {self.text}")
            time.sleep(0.1)

    def send(self, number: signal.Signals) -> None:
        """Type Ctrl-C, which goes to every process of the foreground, or send another signal to the command alone."""
        if number == signal.SIGINT:
            os.write(self._screen, b"\x03")
        else:
            self._process.send_signal(number)

    def runs(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def end(self, within_s: float = 60.0) -> int:
        """Wait until nothing is left of it; returns the exit code."""
        deadline_s = time.monotonic() + within_s
        code = self._process.wait(within_s)
        while left := self.offspring():
            if time.monotonic() > deadline_s:
                raise TimeoutError(f"left running: {[_command_line(process) for process in left]}")
            time.sleep(0.05)
        self._reader.join(1.0)
        os.close(self._screen)
        return code

    def offspring(self) -> list[psutil.Process]:
        """Everything that it started and that still runs, the command itself included."""
        return [process for process in psutil.process_iter() if self._is_ours(process)]

    def find(self, words: str) -> psutil.Process | None:
        """Find one of them by its command line."""
        return next((process for process in self.offspring() if words in _command_line(process)), None)

    def _is_ours(self, process: psutil.Process) -> bool:
        try:
            return process.environ().get(_MARK) == self._mark
        except psutil.Error:
            return False

    def _read(self) -> None:
        while True:
            try:
                self._heard += os.read(self._screen, 65536)
            except OSError:  # closed: here, or by the last who wrote to it
                return


def _command_line(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""
