"""Server, worker and deployments on this machine, in one command: `rsr-serve`, or `make serve`.

A server or worker that dies is begun again. Ctrl-C ends all of it; runs that were under way go on from where they were
when their deployment runs again.
"""

from __future__ import annotations

if __name__ == "__main__":
    from rsr_flows.console import serve

    raise SystemExit(serve())

import argparse
import os
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from importlib.resources import as_file, files
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import psutil
from rich.console import Console
from rich.markup import escape

from rsr.cli.command import version_line
from rsr.common import ConfigError
from rsr_flows import api_server
from rsr_flows._password import FILE as PASSWORD_FILE
from rsr_tasks.watcher import LOOP_VARIABLE, end_marked, mark_of, marked, watched

POOL = "rsr"
_DEPLOYMENTS = files("rsr_flows.deployments")
_PATIENCE_S = 180.0
_GRACE_S = 1.5
_DEATHS_ALLOWED, _DEATHS_WITHIN_S = 5, 120.0
_console = Console(highlight=False, soft_wrap=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Bring everything up and stay until interrupted, or until a part keeps dying; returns the exit code."""
    chosen = _parser().parse_args(arguments)
    folder = Path.cwd()  # of the workspaces that the deployments name, of Prefect's history and of the password
    os.environ["RSR_PROJECT"] = str(folder)
    try:
        api_server.prepare(chosen.host, chosen.port)
    except ConfigError as error:
        _console.print(f"[bold red]{escape(str(error))}[/]")
        return 1
    server = _Part("--host", chosen.host, "--port", str(chosen.port), module="rsr_flows.api_server", name="server")
    worker = _Part("--no-prompt", "worker", "start", "--pool", POOL, name="worker")
    try:
        _clear_place(chosen.host, chosen.port)
        with watched():
            _stay(server, worker)
    except KeyboardInterrupt:  # which `supervised` reports
        return 130
    except _Failure as failure:
        _console.print(f"[bold red]{escape(str(failure))}[/]")
        return 1
    finally:
        worker.end()
        server.end()


def _stay(server: _Part, worker: _Part) -> None:
    """Bring everything up, and keep it up."""
    server.start()
    _await_health(server)
    _ensure_pool()
    with as_file(_DEPLOYMENTS / "prefect.yaml") as file:
        _call("prefect", "--no-prompt", "deploy", "--prefect-file", str(file), "--all")
    _call("rsr_flows.automations")
    worker.start()
    address = os.environ["PREFECT_API_URL"].removesuffix("/api")
    _console.print(f"Ready: {address} (Ctrl-C ends it). The page asks once for the password: it is in")
    _console.print(escape(str(api_server.home() / PASSWORD_FILE)))
    _keep_alive(server, worker)


class _Failure(Exception):
    """Say in a sentence why it failed."""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("rsr-serve", description="Server, worker and deployments, here.")
    parser.add_argument("--version", action="version", version=version_line())
    api_server.add_address(parser)
    return parser


class _Part:
    """A part of Prefect as a child of this process, which begins it again when it dies."""

    def __init__(self, *arguments: str, module: str = "prefect", name: str | None = None) -> None:
        self.name = name or " ".join(arguments[:2])
        self._arguments = (module, *arguments)
        self._process: subprocess.Popen[bytes] | None = None
        self._deaths_s: list[float] = []

    def start(self) -> None:
        command = [sys.executable, "-m", *self._arguments]
        self._process = subprocess.Popen(command, start_new_session=True)

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
        """Kill it, or it would report its end at length; the runs that it started may report theirs to the server."""
        if self._process is None or self._process.poll() is not None:
            return
        runs = psutil.Process(self._process.pid).children(recursive=True)
        self._process.kill()
        for run in runs:
            with suppress(psutil.NoSuchProcess):
                run.terminate()
        for run in psutil.wait_procs(runs, timeout=_GRACE_S)[1]:
            with suppress(psutil.NoSuchProcess):
                run.kill()
        self._process.wait()


def _clear_place(host: str, port: int) -> None:
    """See that nobody is at this address, and mark all that we start as ours.

    Raises:
        _Failure: somebody is.
    """
    place = f"serve:{port}"
    found = marked(lambda mark: mark.partition(":")[2] == place)
    living = {owner for owner in map(_owner, found) if owner}
    if living:
        raise _Failure(f"`make serve` is running here already (process {min(living)}). Use it, or end it first.")
    if found:
        end_marked(lambda mark: mark.partition(":")[2] == place)
        _console.print(f"Ended {len(found)} processes that a killed `make serve` had left.")
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise _Failure(
                f"No server can be at {host}, port {port}: {error.strerror}. Is its port taken? Try --port."
            ) from error
    os.environ[LOOP_VARIABLE] = f"{os.getpid()}@{socket.gethostname()}:{place}"


def _owner(process: psutil.Process) -> int | None:
    """Find the `rsr_flows.serve` that looks after it, if that lives."""
    with suppress(psutil.Error):
        began = int(mark_of(process).partition("@")[0])
        return began if began in {parent.pid for parent in process.parents()} else None
    return None


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
    with as_file(_DEPLOYMENTS / "process-pool.json") as file:
        template = ("--base-job-template", str(file))  # a pool of an older version took commands from a run
        if known.returncode != 0:
            _call("prefect", "work-pool", "create", POOL, "--type", "process", *template)
        else:
            _call("prefect", "work-pool", "update", POOL, *template)


def _call(*words: str) -> None:
    """Run a module as a command."""
    done = subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise _Failure(f"`{' '.join(words)}` failed:\n{done.stdout}{done.stderr}")


def _keep_alive(*parts: _Part) -> None:
    """Stay until interrupted, or until a part cannot be kept alive."""
    while True:
        for part in parts:
            part.keep_alive()
        time.sleep(1.0)
