"""Server, worker and deployments on this machine, in one command: `python -m flows.serve`, or `make serve`.

Ctrl-C ends all of it. Runs that were under way go on from where they were when their deployment runs again.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from rich.console import Console

from tasks import environment

POOL = "rsr"
_PROJECT = Path(__file__).resolve().parents[1]
_FILE = _PROJECT / "deployments" / "prefect.yaml"
_PATIENCE_S = 180.0
_console = Console(highlight=False, soft_wrap=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Bring everything up and stay until interrupted, or until a part of it dies; returns the exit code."""
    chosen = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    os.environ["PREFECT_API_URL"] = f"http://{chosen.host}:{chosen.port}/api"
    os.environ["RSR_PROJECT"] = str(_PROJECT)
    environment.prepare(_PROJECT)
    os.environ.setdefault("PREFECT_HOME", str(_PROJECT / ".prefect"))
    try:
        with _running("server", "start", "--host", chosen.host, "--port", str(chosen.port)) as server:
            _await_health(server)
            _ensure_pool()
            _prefect("--no-prompt", "deploy", "--prefect-file", str(_FILE), "--all")
            with _running("worker", "start", "--pool", POOL) as worker:
                _console.print(f"Ready: http://{chosen.host}:{chosen.port} (Ctrl-C ends it)")
                return _first_to_end(server, worker)
    except KeyboardInterrupt:
        _console.print("Ended.")
        return 0
    except _Failure as failure:
        _console.print(f"[bold red]{failure}[/]")
        return 1


class _Failure(Exception):
    """What went wrong, for a person."""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m flows.serve", description="Server, worker and deployments, here.")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: this machine alone)")
    parser.add_argument("--port", type=int, default=4200, help="default: 4200")
    return parser


@contextmanager
def _running(*arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a part of Prefect as a child; it and its children end with the block."""
    child = subprocess.Popen([sys.executable, "-m", "prefect", *arguments], start_new_session=True, cwd=_PROJECT)
    try:
        yield child
    finally:
        _end(child)


def _end(child: subprocess.Popen[bytes]) -> None:
    if child.poll() is None:
        child.terminate()
        try:
            child.wait(timeout=20)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()


def _await_health(server: subprocess.Popen[bytes]) -> None:
    deadline_s = time.monotonic() + _PATIENCE_S
    address = os.environ["PREFECT_API_URL"] + "/health"
    while time.monotonic() < deadline_s:
        if server.poll() is not None:
            raise _Failure(f"The server ended with code {server.returncode}. Is its port taken? Try --port.")
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
        _prefect("work-pool", "create", POOL, "--type", "process")


def _prefect(*arguments: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "prefect", *arguments], capture_output=True, text=True, check=False, cwd=_PROJECT
    )
    if done.returncode != 0:
        raise _Failure(f"`prefect {' '.join(arguments)}` failed:\n{done.stdout}{done.stderr}")


def _first_to_end(*children: subprocess.Popen[bytes]) -> int:
    """Wait until a child ends by itself, which none should."""
    while True:
        for child in children:
            if child.poll() is not None:
                raise _Failure(f"`{' '.join(child.args[3:5])}` ended with code {child.returncode}.")  # type: ignore
        time.sleep(1.0)


if __name__ == "__main__":
    raise SystemExit(main())
