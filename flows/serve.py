"""Server, worker and deployments on this machine, in one command: `python -m flows.serve`, or `make serve`.

A server or worker that dies is begun again. Ctrl-C ends all of it; runs that were under way go on from where they were
when their deployment runs again.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import psutil
from rich.console import Console

from tasks import environment

POOL = "rsr"
_PROJECT = Path(__file__).resolve().parents[1]
_FILE = _PROJECT / "deployments" / "prefect.yaml"
_PATIENCE_S = 180.0
_DEATHS_ALLOWED, _DEATHS_WITHIN_S = 5, 120.0
_console = Console(highlight=False, soft_wrap=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Bring everything up and stay until interrupted, or until a part keeps dying; returns the exit code."""
    chosen = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    os.environ["PREFECT_API_URL"] = f"http://{chosen.host}:{chosen.port}/api"
    os.environ["RSR_PROJECT"] = str(_PROJECT)
    environment.prepare(_PROJECT)
    os.environ.setdefault("PREFECT_HOME", str(_PROJECT / ".prefect"))
    server = _Part("server", "start", "--host", chosen.host, "--port", str(chosen.port))
    worker = _Part("worker", "start", "--pool", POOL)
    try:
        server.start()
        _await_health(server)
        _ensure_pool()
        _call("prefect", "--no-prompt", "deploy", "--prefect-file", str(_FILE), "--all")
        _call("flows.automations")
        worker.start()
        _console.print(f"Ready: http://{chosen.host}:{chosen.port} (Ctrl-C ends it)")
        _keep_alive(server, worker)
    except KeyboardInterrupt:
        _console.print("Ended.")
        return 0
    except _Failure as failure:
        _console.print(f"[bold red]{failure}[/]")
        return 1
    finally:
        worker.end()
        server.end()


class _Failure(Exception):
    """What went wrong, for a person."""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m flows.serve", description="Server, worker and deployments, here.")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: this machine alone)")
    parser.add_argument("--port", type=int, default=4200, help="default: 4200")
    return parser


class _Part:
    """A part of Prefect as a child of this process, which begins it again when it dies."""

    def __init__(self, *arguments: str) -> None:
        self.name = " ".join(arguments[:2])
        self._arguments = arguments
        self._process: subprocess.Popen[bytes] | None = None
        self._deaths_s: list[float] = []

    def start(self) -> None:
        command = [sys.executable, "-m", "prefect", *self._arguments]
        self._process = subprocess.Popen(command, start_new_session=True, cwd=_PROJECT)

    def ended_with(self) -> int | None:
        """Its exit code, if it is not running."""
        return self._process.poll() if self._process else None

    def keep_alive(self) -> None:
        """Begin it again if it died.

        Raises:
            _Failure: it keeps dying.
        """
        code = self.ended_with()
        if code is None:
            return
        now_s = time.monotonic()
        self._deaths_s = [then_s for then_s in self._deaths_s if now_s - then_s < _DEATHS_WITHIN_S] + [now_s]
        if len(self._deaths_s) > _DEATHS_ALLOWED:
            raise _Failure(f"`{self.name}` ended {len(self._deaths_s)} times in short order, now with code {code}.")
        _console.print(f"`{self.name}` ended with code {code}; it is begun again.")
        self.start()

    def end(self) -> None:
        """End it, and the runs that it started."""
        if self._process is None or self._process.poll() is not None:
            return
        own = psutil.Process(self._process.pid)
        processes = [own, *own.children(recursive=True)]
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.terminate()
        for process in psutil.wait_procs(processes, timeout=20)[1]:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        self._process.wait()


def _await_health(server: _Part) -> None:
    deadline_s = time.monotonic() + _PATIENCE_S
    address = os.environ["PREFECT_API_URL"] + "/health"
    while time.monotonic() < deadline_s:
        if (code := server.ended_with()) is not None:
            raise _Failure(f"The server ended with code {code}. Is its port taken? Try --port.")
        try:
            with urlopen(address, timeout=2):
                return
        except (URLError, OSError):
            time.sleep(0.5)
    raise _Failure(f"The server did not answer at {address} within {_PATIENCE_S:.0f} s.")


def _ensure_pool() -> None:
    known = subprocess.run(
        [sys.executable, "-m", "prefect", "work-pool", "inspect", POOL], capture_output=True, check=False
    )
    if known.returncode != 0:
        _call("prefect", "work-pool", "create", POOL, "--type", "process")


def _call(*words: str) -> None:
    """Run a module as a command."""
    done = subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True, check=False, cwd=_PROJECT)
    if done.returncode != 0:
        raise _Failure(f"`{' '.join(words)}` failed:\n{done.stdout}{done.stderr}")


def _keep_alive(*parts: _Part) -> None:
    """Stay until interrupted, or until a part cannot be kept alive."""
    while True:
        for part in parts:
            part.keep_alive()
        time.sleep(1.0)


if __name__ == "__main__":
    raise SystemExit(main())
