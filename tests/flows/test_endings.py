"""Signals, a lost server, a full disk end the loop soon with one sentence; the next run goes on to the same bytes."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from urllib.request import urlopen

import psutil
import pytest
from machine import crowding
from ports import free_port
from terminals import SIGNALS, InTerminal
from toy import TABLE_NAME
from toy.bare import fingerprint, run_bare_loop

_PROJECT = Path(__file__).resolve().parents[2]
_SOON_S = 5.0
"""On a core of its own; `crowding` says how much longer that is beside other work."""
_SENTENCES = {
    signal.SIGINT: "Interrupted. ",
    signal.SIGTERM: "Ended by SIGTERM. ",
    signal.SIGHUP: "Ended, as the terminal was closed. ",
}
_GOES_ON = "The same command goes on from here.\n"


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    root = tmp_path_factory.mktemp("reference") / "workspace"
    run_bare_loop(root, 1)
    return fingerprint(root)


def loop(root: Path, **environment: str) -> InTerminal:
    command = [sys.executable, "-m", "loop_of", TABLE_NAME, "--workspace", str(root), "--iterations", "1"]
    return InTerminal(command, **environment)


def end(begun: InTerminal, number: signal.Signals) -> tuple[int, str, float]:
    """Send a signal; returns the exit code, what was said then, and the seconds until nothing was left."""
    before, began_s = len(begun.text), time.monotonic()
    begun.send(number)
    code = begun.end()
    lines = begun.text[before:].removeprefix("^C").replace("\x1b[?25h", "").lstrip().splitlines(keepends=True)
    said = "".join(line for line in lines if "━" not in line)  # a bar may move once more
    return code, said, time.monotonic() - began_s


class TestSignals:
    """A step with a stubborn child, in a session of its own, does not keep anybody waiting."""

    def interrupt_each_way_and_finish(self, root: Path, **environment: str) -> None:
        for number in SIGNALS:
            begun = loop(root, TOY_FAULT="tune@1:half:linger", **environment)
            begun.await_(lambda: begun.find("SIG_IGN"), "stubborn child")  # noqa: B023
            code, said, seconds = end(begun, number)
            assert (code, said) == (128 + number, _SENTENCES[number] + _GOES_ON)
            assert seconds < _SOON_S * crowding()
        finished = loop(root, **environment)
        assert finished.end(200.0) == 0, finished.text

    @pytest.mark.slow
    def test_end_all_of_the_loop(self, tmp_path, prefect_server, undisturbed):
        self.interrupt_each_way_and_finish(tmp_path / "workspace", PREFECT_API_URL=prefect_server)
        assert fingerprint(tmp_path / "workspace") == undisturbed

    @pytest.mark.slow
    def test_end_an_embedded_server_too(self, tmp_path, undisturbed):
        self.interrupt_each_way_and_finish(tmp_path / "workspace")
        assert fingerprint(tmp_path / "workspace") == undisturbed


class TestSupervised:
    """Any command in place of a loop."""

    def begin(self, folder: Path, body: str, *before: str) -> InTerminal:
        (folder / "supervised_command.py").write_text(f"import os, subprocess, sys, time\ndef main():\n    {body}\n")
        call = "from rsr_flows._supervisor import supervised; raise SystemExit(supervised('supervised_command:main'))"
        path = os.pathsep.join([str(folder), os.environ["PYTHONPATH"]])
        return InTerminal([*before, sys.executable, "-c", call], cwd=folder, PYTHONPATH=path)

    def ready(self, folder: Path, body: str, *before: str) -> InTerminal:
        begun = self.begin(folder, f"print('ready', flush=True); {body}", *before)
        begun.await_(lambda: "ready" in begun.text, "ready")
        return begun

    def test_its_exit_code_is_the_commands(self, tmp_path):
        assert self.begin(tmp_path, "return 7").end() == 7

    def test_it_may_bring_a_robot_to_rest(self, tmp_path):
        body = "\n    try: time.sleep(60)\n    finally: time.sleep(1); open('rest', 'w').close()"
        assert end(self.ready(tmp_path, body), signal.SIGTERM)[0] == 128 + signal.SIGTERM
        assert (tmp_path / "rest").exists()

    def test_compiled_code_that_does_not_come_back_is_killed(self, tmp_path):
        code, said, seconds = end(self.ready(tmp_path, "'x' in 'y' * 10; sum(range(10**12))"), signal.SIGINT)
        assert (code, said) == (130, _SENTENCES[signal.SIGINT] + _GOES_ON)
        assert seconds < _SOON_S * crowding()

    def test_a_killed_command_is_told(self, tmp_path):
        begun = self.ready(tmp_path, "os.kill(os.getpid(), 9)")
        assert begun.end() == 137
        assert f"Killed by SIGKILL. {_GOES_ON}" in begun.text

    def test_killed_itself_it_takes_the_command_along(self, tmp_path):
        begun = self.ready(tmp_path, "time.sleep(60)")
        os.kill(begun.pid, signal.SIGKILL)
        assert begun.end(_SOON_S * crowding()) == -signal.SIGKILL

    def test_nohup_outlives_its_terminal(self, tmp_path):
        begun = self.ready(tmp_path, "time.sleep(1.5); return 5", "nohup")
        begun.send(signal.SIGHUP)
        assert begun.end() == 5


@pytest.mark.slow
def test_a_lost_server_ends_the_loop(tmp_path, undisturbed):
    root = tmp_path / "workspace"
    begun = loop(root, TOY_FAULT="tune@1:half:linger")
    begun.await_(lambda: begun.find("SIG_IGN"), "tuning")
    began_s = time.monotonic()
    begun.find("uvicorn").kill()
    assert begun.end() == 1
    assert time.monotonic() - began_s < (_SOON_S + 1.0) * crowding()
    assert begun.text.count("ServerLost") == 1
    assert f"(More in {root}/.rsr/loop.log.)" in begun.text
    assert "Traceback" not in begun.text
    assert loop(root).end(200.0) == 0
    assert fingerprint(root) == undisturbed


def _answers(port: int) -> bool:
    try:
        with urlopen(f"http://127.0.0.1:{port}/api/health", timeout=2):
            return True
    except OSError:
        return False


@pytest.mark.slow
def test_a_lost_server_of_ones_own_ends_the_loop_after_a_minute_of_patience(tmp_path, undisturbed):
    root, port = tmp_path / "workspace", free_port()
    command = [sys.executable, "-m", "prefect", "--no-prompt", "server", "start", "--port", str(port)]
    server = InTerminal(command, PREFECT_HOME=str(tmp_path / "home"))
    server.await_(lambda: _answers(port), "server")
    begun = loop(root, PREFECT_API_URL=f"http://127.0.0.1:{port}/api", TOY_FAULT="tune@1:half:pause")
    begun.await_(lambda: begun.find("time.sleep(6)"), "tuning")
    began_s = time.monotonic()
    os.killpg(server.pid, signal.SIGKILL)
    assert begun.end(200.0) == 1
    assert time.monotonic() - began_s < 100.0 * crowding()
    assert begun.text.count("ServerLost") == 1
    assert "Traceback" not in begun.text
    assert loop(root).end(200.0) == 0
    assert fingerprint(root) == undisturbed
    server.end()


@pytest.mark.slow
@pytest.mark.parametrize("step", ["collect@1", "report@1"])
def test_a_disk_that_fills_up_in_the_middle(tmp_path, step):
    (tmp_path / "mount").mkdir()
    mounted = f'mount -t tmpfs -o size=200m tmpfs {tmp_path}/mount && exec {sys.executable} -c "$1" {tmp_path}/mount'
    namespace = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mounted, "sh", _FILL]
    done = subprocess.run(namespace, env={**os.environ, "STEP": step}, capture_output=True, text=True, check=False)
    if "unshare" in done.stderr or "mount:" in done.stderr:
        pytest.skip("this machine allows no mount namespaces")
    first, again, last = done.stdout.split("---\n")
    for said in (first, again):
        assert said.startswith("1 ")
        assert said.count("No space left on device") == said.count("nothing was lost") == 1
        assert "Traceback" not in said
    assert last == "0 []\n", done.stderr


_FILL = """
import os, subprocess, sys, time
from pathlib import Path
from toy.bare import find_faults
mount, audit = Path(sys.argv[1]), Path(sys.argv[1] + "-audit")
command = [sys.executable, "-m", "loop_of", "toy:TABLE", "--workspace", str(mount / "w"), "--iterations", "1"]
fault = {"TOY_FAULT": os.environ["STEP"] + ":after:pause", "TOY_AUDIT": str(audit)}
begun = subprocess.Popen(command, env={**os.environ, **fault}, stderr=subprocess.PIPE, text=True, stdout=2)
while begun.poll() is None and not (audit.exists() and os.environ["STEP"] in audit.read_text()):
    time.sleep(0.2)
time.sleep(2.0)
with (mount / "big").open("wb", buffering=0) as big:
    try:
        while True:
            big.write(bytes(4096))
    except OSError:
        pass
said = begun.communicate()[1]
print(begun.returncode, said, end="---\\n")
again = subprocess.run(command, capture_output=True, text=True)
print(again.returncode, again.stderr, end="---\\n")
(mount / "big").unlink()
print(subprocess.run(command, stdout=2).returncode, find_faults(mount / "w", 1))
"""


@pytest.mark.slow
class TestServe:
    def begin(self, home: Path, port: int) -> InTerminal:
        command = [sys.executable, "-m", "rsr_flows.serve", "--port", str(port)]
        return InTerminal(command, cwd=_PROJECT, PREFECT_HOME=str(home))

    def test_what_a_killed_one_left_is_ended_and_a_living_one_is_not(self, tmp_path):
        port = free_port()
        killed = self.begin(tmp_path, port)
        killed.await_(lambda: killed.find("rsr_flows.api_server"), "server")
        watcher, server = killed.find("watcher.py"), killed.find("rsr_flows.api_server")
        watcher.kill()
        os.kill(killed.pid, signal.SIGKILL)
        killed.await_(lambda: not killed.runs(), "death")
        assert server.is_running()

        begun = self.begin(tmp_path, port)
        begun.await_(lambda: "Ready:" in begun.text, "ready")
        assert "that a killed `make serve` had left." in begun.text
        assert not server.is_running()

        second = self.begin(tmp_path, port)
        assert second.end() == 1
        named = re.search(r"`make serve` is running here already \(process (\d+)\)", second.text)
        assert psutil.Process(int(named.group(1))).ppid() == begun.pid  # the child that does the work
        code, said, seconds = end(begun, signal.SIGHUP)
        assert code == 129
        assert said == _SENTENCES[signal.SIGHUP] + "Runs that were under way go on when their deployment runs again.\n"
        assert seconds < _SOON_S * crowding()

    def test_killed_it_takes_its_children_along(self, tmp_path):
        begun = self.begin(tmp_path, free_port())
        begun.await_(lambda: begun.find("rsr_flows.api_server"), "server")
        os.kill(begun.pid, signal.SIGKILL)
        assert begun.end(20.0 * crowding()) == -signal.SIGKILL
