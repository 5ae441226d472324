"""A lab's machine for benchmarks: `rsr-serve` on a free port, its parts mortal, its clock ours."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import psutil

PROJECT = Path(__file__).resolve().parents[1]
# The toy steps of tests/ and the small ones beside this file: for us, and for every process that we start.
_FOLDERS = [str(PROJECT), str(PROJECT / "tests"), str(PROJECT / "benchmarks")]
sys.path[:0] = [folder for folder in _FOLDERS if folder not in sys.path]
os.environ["PYTHONPATH"] = os.pathsep.join(_FOLDERS)

PATIENCE_S = 300.0
_UNAVAILABLE = 503


@contextmanager
def served(folder: Path) -> Iterator[Served]:
    """Bring up server, worker and deployments with a history of their own in this folder; end all of it afterwards."""
    from ports import free_port

    port = free_port()
    os.environ["PREFECT_API_URL"] = f"http://127.0.0.1:{port}/api"
    os.environ["PREFECT_HOME"] = str(folder / "prefect")
    os.environ["PREFECT_WORKER_QUERY_SECONDS"] = "2"  # of waiting for the worker nothing is learnt; by default 10
    log = (folder / "serve.log").open("w")
    command = [sys.executable, "-m", "rsr_flows.serve", "--port", str(port)]
    serving = subprocess.Popen(command, cwd=PROJECT, stdout=log, stderr=subprocess.STDOUT)
    try:
        lab = Served(serving.pid)
        await_(lambda: "Ready:" in (folder / "serve.log").read_text() or serving.poll() is not None, "server")
        if serving.poll() is not None:
            raise RuntimeError(f"`rsr_flows.serve` ended: {(folder / 'serve.log').read_text()}")
        os.environ["PREFECT_API_AUTH_STRING"] = (folder / "prefect" / "password").read_text().strip()
        yield lab
    finally:
        serving.send_signal(signal.SIGTERM)
        serving.wait()
        log.close()


class Served:
    """What runs, and what Prefect says of it."""

    def __init__(self, pid: int) -> None:
        self._pid = pid

    def answers(self) -> bool:
        """Whether the server is there."""
        try:
            with urlopen(f"{os.environ['PREFECT_API_URL']}/health", timeout=2):
                return True
        except OSError:
            return False

    def due(self, deployment: str, **parameters: Any) -> str:
        """Have a deployment run now, as if the hour of its schedule had struck; returns the run's id."""
        body = {"parameters": parameters, "state": {"type": "SCHEDULED"}}
        return _ask(f"/deployments/{_deployment(deployment)['id']}/create_flow_run", body)["id"]

    def has_ended(self, run: str) -> bool:
        """Whether a run has come to its end, a good one or not."""
        return _ask(f"/flow_runs/{run}", None, "GET")["state_type"] in {"COMPLETED", "FAILED", "CRASHED", "CANCELLED"}

    def prefer(self, deployment: str, limit: bool = True, **parameters: Any) -> None:
        """Change what a deployment's runs are given, as one does on its page.

        Args:
            limit: False lets its runs begin at once, whoever else holds a place in its queue.
        """
        found = _deployment(deployment)
        body: dict[str, Any] = {"parameters": {**found["parameters"], **parameters}}
        _ask(f"/deployments/{found['id']}", body if limit else {**body, "concurrency_limit": None}, "PATCH")

    def runs(self, flow: str, deployment: str | None = None) -> list[str]:
        """The states of the runs of a flow, or of one of its deployments, that have begun; oldest first."""
        question: dict[str, Any] = {"flows": {"name": {"any_": [flow]}}, "sort": "START_TIME_ASC"}
        if deployment is not None:
            question["deployments"] = {"name": {"any_": [deployment]}}
        return [run["state_name"] for run in _ask("/flow_runs/filter", question) if run["start_time"]]

    def events(self, name: str) -> list[dict[str, Any]]:
        """What was emitted under this name."""
        return _ask("/events/filter", {"filter": {"event": {"name": [name]}}})["events"]

    def runs_on(self, part: str) -> psutil.Process | None:
        """The process of a part: server or worker."""
        word = {"server": "rsr_flows.api_server"}.get(part, part)
        found = (child for child in psutil.Process(self._pid).children(recursive=True) if word in _words(child))
        return next(found, None)

    def kill(self, part: str) -> bool:
        """SIGKILL; returns whether there was anything to kill."""
        process = self.runs_on(part)
        if process is not None:
            process.kill()
        return process is not None


def await_(condition: Callable[[], object], what: str) -> None:
    """Look twice a second until it is so."""
    deadline_s = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline_s:
            raise TimeoutError(f"no {what} within {PATIENCE_S:.0f} s")
        time.sleep(0.5)


def _deployment(name: str) -> dict[str, Any]:
    return _ask(f"/deployments/name/{name}", None, "GET")


def _ask(path: str, body: Any, method: str = "POST") -> Any:
    from prefect_api import ask

    deadline_s = time.monotonic() + PATIENCE_S
    while True:
        try:
            return ask(path, body, method)
        except OSError as error:  # it is coming back, or its database is busy
            if (isinstance(error, HTTPError) and error.code != _UNAVAILABLE) or time.monotonic() > deadline_s:
                raise
            time.sleep(0.5)


def _words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []
