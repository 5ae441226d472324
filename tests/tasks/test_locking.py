"""One loop at a time in a workspace."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading

import pytest

from rsr.common.errors import WorkspaceError
from rsr_tasks.locking import held, is_held, live_holder
from rsr_tasks.watcher import LOOP_VARIABLE

_HOLD = """
import os, sys
from rsr_tasks.locking import held
with held(sys.argv[1]):
    if len(sys.argv) > 2 and os.fork() == 0:
        sys.stdin.read()  # a child that outlives its parent
        os._exit(0)
    print("held", flush=True)
    sys.stdin.read()
"""


def holder(root, *arguments):
    process = subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(root), *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "held\n"
    return process


def finish(process):
    process.stdin.close()
    process.stdout.close()
    process.wait()


def test_a_second_process_is_refused_and_told_who(tmp_path):
    first = holder(tmp_path)
    with pytest.raises(WorkspaceError) as caught, held(tmp_path):
        pass
    finish(first)
    message = re.sub(r"on \S+, since \S+\)", "on HOST, since THEN)", str(caught.value))
    assert message == (
        f"{tmp_path}: got a workspace in which a loop is running (process {first.pid} on HOST, since THEN); "
        "expected one loop at a time. "
        "Wait for it or stop it, then run the same command again; or use another workspace."
    )
    with held(tmp_path) as dead:
        assert dead is None


def test_whoever_begins_while_another_lets_go_waits_for_it(tmp_path):
    """The record of a holder goes a moment before its lock."""
    first = holder(tmp_path)
    (tmp_path / ".rsr" / "lock").write_text("")
    entered = threading.Event()

    def enter():
        with held(tmp_path):
            entered.set()

    thread = threading.Thread(target=enter)
    thread.start()
    assert not entered.wait(0.1)
    finish(first)
    thread.join()
    assert entered.is_set()


def test_a_second_entry_in_this_process_is_refused(tmp_path):
    with held(tmp_path), pytest.raises(WorkspaceError, match="in this process"), held(tmp_path):
        pass


def test_whoever_dies_lets_go_and_is_named(tmp_path):
    first = holder(tmp_path)
    first.kill()
    finish(first)
    with held(tmp_path) as dead:
        assert dead.pid == first.pid
    with held(tmp_path) as dead:
        assert dead is None


def test_the_orphan_of_a_dead_loop_does_not_hold_it(tmp_path):
    first = holder(tmp_path, "fork")
    first.send_signal(signal.SIGKILL)
    first.wait()
    with held(tmp_path) as dead:
        assert dead.pid == first.pid
    finish(first)


def test_children_know_whose_they_are(tmp_path, monkeypatch):
    monkeypatch.delenv(LOOP_VARIABLE, raising=False)
    with held(tmp_path):
        mark = os.environ[LOOP_VARIABLE]
        assert mark.startswith(f"{os.getpid()}@")
        assert mark.endswith(f":{tmp_path}")
        assert json.loads((tmp_path / ".rsr/lock").read_text())["pid"] == os.getpid()
    assert LOOP_VARIABLE not in os.environ


def test_only_the_holding_thread_holds(tmp_path):
    seen = []
    with held(tmp_path):
        thread = threading.Thread(target=lambda: seen.append(is_held(tmp_path)))
        thread.start()
        thread.join()
        assert is_held(tmp_path)
    assert seen == [False]
    assert not is_held(tmp_path)


@pytest.mark.parametrize("text", ["{", "[]", '{"pid": 1}', "\x00\xff"])
def test_a_torn_note_about_the_holder(tmp_path, text):
    (tmp_path / ".rsr").mkdir()
    (tmp_path / ".rsr/lock").write_text(text)
    with held(tmp_path) as dead:
        assert dead is None


class TestLiveHolder:
    """Who is at work, said without touching the lock."""

    def test_of_a_free_workspace_there_is_none(self, tmp_path):
        assert live_holder(tmp_path) is None
        with held(tmp_path):
            assert live_holder(tmp_path).pid == os.getpid()
        assert live_holder(tmp_path) is None

    def test_whoever_died_is_none(self, tmp_path):
        first = holder(tmp_path)
        assert live_holder(tmp_path).pid == first.pid
        first.kill()
        finish(first)
        assert live_holder(tmp_path) is None

    def test_nor_is_a_process_that_was_given_its_number(self, tmp_path):
        (tmp_path / ".rsr").mkdir()
        long_ago = {"pid": os.getpid(), "host": socket.gethostname(), "since": "2020-01-01T00:00:00+00:00"}
        (tmp_path / ".rsr/lock").write_text(json.dumps({**long_ago, "command": "loop"}))
        assert live_holder(tmp_path) is None
