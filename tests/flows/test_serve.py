"""One command brings up server, worker and deployments: schedules are kept, runs are done, nothing is left behind."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import pytest
from databases import postgresql
from ports import free_port
from test_rsr_loop import offspring
from toy import TABLE_NAME
from toy.bare import find_faults, fingerprint, run_bare_loop

pytestmark = pytest.mark.slow
_PATIENCE_S = 240.0


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def lab(request, tmp_path_factory) -> Iterator[dict[str, str]]:
    """A running `python -m flows.serve` on either database; yields the environment of those who talk to it."""
    with ExitStack() as stack:
        database = {}
        if request.param == "postgresql":
            database["PREFECT_API_DATABASE_CONNECTION_URL"] = stack.enter_context(postgresql())
        yield stack.enter_context(serving(tmp_path_factory.mktemp("prefect"), database))


@contextmanager
def serving(home: Path, database: dict[str, str]) -> Iterator[dict[str, str]]:
    port = free_port()
    environment = {**os.environ, **database, "PREFECT_HOME": str(home)}
    with (home / "serve.log").open("w+") as log:
        command = [sys.executable, "-m", "flows.serve", "--port", str(port)]
        started = subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT)
        await_(lambda: "Ready:" in (home / "serve.log").read_text() or started.poll() is not None, "ready")
        assert started.poll() is None, (home / "serve.log").read_text()
        children = psutil.Process(started.pid).children(recursive=True)
        yield {**environment, "PREFECT_API_URL": f"http://127.0.0.1:{port}/api"}
        started.send_signal(signal.SIGTERM)
        assert started.wait(timeout=60) == 0
        _, alive = psutil.wait_procs(children, timeout=30)
    assert alive == []
    assert (home / "prefect.db").exists() == (not database)


def await_(condition, what: str) -> None:
    deadline_s = time.monotonic() + _PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline_s, f"not {what} within {_PATIENCE_S:.0f} s"
        time.sleep(1.0)


def prefect(lab: dict[str, str], *arguments: str) -> str:
    command = [sys.executable, "-m", "prefect", *arguments]
    done = subprocess.run(command, env=lab, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.timeout(600)
class TestServed:
    def test_deployments_are_there_and_their_schedules_kept(self, lab):
        listed = prefect(lab, "deployment", "ls")
        assert "rsr-loop/nightly" in listed
        assert "gap-watch/every-morning" in listed
        await_(lambda: "SCHE" in prefect(lab, "flow-run", "ls"), "scheduled")

    def test_a_run_started_by_hand_is_done_by_the_worker(self, lab, tmp_path):
        root, reference = tmp_path / "workspace", tmp_path / "reference"
        parameters = {"workspace": str(root), "iterations": "2", "table": TABLE_NAME}
        options = [word for name, value in parameters.items() for word in ("--param", f"{name}={value}")]
        prefect(lab, "deployment", "run", "rsr-loop/nightly", *options, "--watch")
        run_bare_loop(reference, 2)
        assert find_faults(root, 2) == []
        assert fingerprint(root) == fingerprint(reference)

    def test_cancelled_on_its_page_it_leaves_no_child_and_goes_on_later(self, lab, tmp_path):
        root, reference = tmp_path / "workspace", tmp_path / "reference"
        parameters = {"workspace": str(root), "iterations": "1", "table": TABLE_NAME}
        options = [word for name, value in parameters.items() for word in ("--param", f"{name}={value}")]
        fault = ["--job-variable", 'env={"TOY_FAULT": "tune@1:half:linger"}']
        said = prefect(lab, "deployment", "run", "rsr-loop/nightly", *options, *fault)
        run = re.search(r"UUID: (\S+)", said).group(1)
        await_(lambda: len(offspring(root)) == 1, "at work, a child beside it")
        prefect(lab, "flow-run", "cancel", run)
        await_(lambda: offspring(root) == [], "all ended")
        await_(lambda: "CANCELLED" in prefect(lab, "flow-run", "inspect", run), "cancelled")
        prefect(lab, "deployment", "run", "rsr-loop/nightly", *options, "--watch")
        run_bare_loop(reference, 1)
        assert find_faults(root, 1) == []
        assert fingerprint(root) == fingerprint(reference)

    def test_a_run_that_falls_silent_is_shown_as_crashed(self, lab):
        told = "import sys; from tests.flows.silence import main; main(sys.argv[1])"
        assert "Proactive" in prefect(lab, "automation", "inspect", "runs that fell silent")
        (run,) = subprocess.run(
            [sys.executable, "-c", told, "10"], env=lab, capture_output=True, text=True, check=True
        ).stdout.split()
        await_(lambda: "CRASHED" in prefect(lab, "flow-run", "inspect", run), "noticed")


def test_a_part_that_keeps_dying_is_given_up(monkeypatch, capsys):
    from flows import serve

    monkeypatch.setattr(serve.sys, "executable", "/bin/false")
    part = serve._Part("worker", "start")
    part.start()
    with pytest.raises(serve._Failure, match="`worker start` ended 6 times in short order, now with code 1"):
        await_(part.keep_alive, "given up")
    assert capsys.readouterr().out.count("it is begun again") == 5


def test_a_taken_port_is_said(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        command = [sys.executable, "-m", "flows.serve", "--port", port]
        environment = {**os.environ, "PREFECT_HOME": str(tmp_path)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "Is its port taken? Try --port." in done.stdout
