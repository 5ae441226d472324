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
from prefect_api import ask
from test_rsr_loop import offspring
from toy import TABLE_NAME
from toy.bare import find_faults, fingerprint, run_bare_loop

from rsr.config import LoopConfig
from rsr_tasks.campaign import opened

pytestmark = pytest.mark.slow
_PATIENCE_S = 240.0


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def lab(request, tmp_path_factory) -> Iterator[dict[str, str]]:
    """A running `rsr-serve` on either database; yields the environment of those who talk to it."""
    with ExitStack() as stack:
        database = {}
        if request.param == "postgresql":
            database["PREFECT_API_DATABASE_CONNECTION_URL"] = stack.enter_context(postgresql())
        yield stack.enter_context(serving(tmp_path_factory.mktemp("prefect"), database))


@contextmanager
def serving(home: Path, database: dict[str, str]) -> Iterator[dict[str, str]]:
    port = free_port()
    environment = {**os.environ, **database, "PREFECT_HOME": str(home), "TOY_FAULT_FILE": str(home / "fault")}
    with (home / "serve.log").open("w+") as log:
        command = [sys.executable, "-m", "rsr_flows.serve", "--port", str(port)]
        started = subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT)
        await_(lambda: "Ready:" in (home / "serve.log").read_text() or started.poll() is not None, "ready")
        assert started.poll() is None, (home / "serve.log").read_text()
        children = psutil.Process(started.pid).children(recursive=True)
        words = (home / "password").read_text().strip()
        yield {**environment, "PREFECT_API_URL": f"http://127.0.0.1:{port}/api", "PREFECT_API_AUTH_STRING": words}
        started.send_signal(signal.SIGTERM)
        assert started.wait(timeout=60) == 128 + signal.SIGTERM
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
    wide = {**lab, "COLUMNS": "200"}  # lest its tables cut words
    done = subprocess.run(command, env=wide, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


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
        fault = Path(lab["TOY_FAULT_FILE"])
        fault.write_text("tune@1:half:linger")
        said = prefect(lab, "deployment", "run", "rsr-loop/nightly", *options)
        run = re.search(r"UUID: (\S+)", said).group(1)
        await_(lambda: len(offspring(root)) == 1, "at work, a child beside it")
        prefect(lab, "flow-run", "cancel", run)
        await_(lambda: offspring(root) == [], "all ended")
        await_(lambda: "CANCELLED" in prefect(lab, "flow-run", "inspect", run), "cancelled")
        fault.unlink()
        prefect(lab, "deployment", "run", "rsr-loop/nightly", *options, "--watch")
        run_bare_loop(reference, 1)
        assert find_faults(root, 1) == []
        assert fingerprint(root) == fingerprint(reference)

    def test_a_run_of_no_deployment_has_its_command_ignored(self, lab, tmp_path, monkeypatch):
        for name in ("PREFECT_API_URL", "PREFECT_API_AUTH_STRING"):
            monkeypatch.setenv(name, lab[name])
        flow = ask("/flows/filter", {"flows": {"name": {"any_": ["rsr-loop"]}}})[0]["id"]
        variables = {"command": f"touch {tmp_path / 'ran'}"}
        body = {"flow_id": flow, "work_pool_name": "rsr", "job_variables": variables, "state": {"type": "SCHEDULED"}}
        run = ask("/flow_runs/", body)["id"]
        await_(lambda: ask(f"/flow_runs/{run}", None, "GET")["state_type"] in ("CRASHED", "FAILED"), "given up")
        assert not (tmp_path / "ran").exists()

    def test_the_password_is_on_no_command_line_and_in_no_file_but_its_own(self, lab, tmp_path):
        words, home = lab["PREFECT_API_AUTH_STRING"], Path(lab["PREFECT_HOME"])
        seen: set[str] = set()
        parameters = {"workspace": str(tmp_path / "workspace"), "iterations": "1", "table": TABLE_NAME}
        options = [word for name, value in parameters.items() for word in ("--param", f"{name}={value}")]
        command = [sys.executable, "-m", "prefect", "deployment", "run", "rsr-loop/nightly", *options, "--watch"]
        watched = subprocess.Popen(command, env=lab, stdout=subprocess.DEVNULL)
        while watched.poll() is None:
            seen |= {line for process in psutil.process_iter() if (line := _command_line(process))}
            time.sleep(0.1)
        assert watched.returncode == 0
        assert [line for line in seen if "prefect.engine" in line], "the run's own process was among them"
        assert not [line for line in seen if words in line]
        files = [path for path in home.rglob("*") if path.is_file()]
        assert {path.name for path in files} >= {"serve.log", "password"}
        assert [path.name for path in files if words.encode() in path.read_bytes()] == ["password"]

    def test_an_event_sets_a_deployment_going(self, lab, tmp_path):
        """The server's own automations know the password too."""
        root = tmp_path / "workspace"
        with opened(root, config=LoopConfig()) as campaign:
            frozen = campaign.workspace.frozen_path(0)
        assert not frozen.exists()
        told = (
            "import sys; from prefect.events import emit_event; from prefect.events.worker import EventsWorker; "
            "resource = {'prefect.resource.id': 'rsr.workspace.x', 'prefect.resource.name': sys.argv[1], "
            "'rsr.flow': 'rsr-loop'}; emit_event('rsr.session-dropped', resource, payload={'until': 1}); "
            "EventsWorker.instance().drain()"
        )
        subprocess.run([sys.executable, "-c", told, str(root)], env=lab, check=True)
        await_(frozen.exists, "begun")

    def test_a_run_that_falls_silent_is_shown_as_crashed(self, lab):
        told = "import sys; from tests.flows.silence import main; main(sys.argv[1])"
        assert "Proactive" in prefect(lab, "automation", "inspect", "runs that fell silent")
        (run,) = subprocess.run(
            [sys.executable, "-c", told, "10"], env=lab, capture_output=True, text=True, check=True
        ).stdout.split()
        await_(lambda: "CRASHED" in prefect(lab, "flow-run", "inspect", run), "noticed")


def _command_line(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def test_a_part_that_keeps_dying_is_given_up(monkeypatch, capsys):
    from rsr_flows import serve

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
        command = [sys.executable, "-m", "rsr_flows.serve", "--port", port]
        environment = {**os.environ, "PREFECT_HOME": str(tmp_path)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "Is its port taken? Try --port." in done.stdout
