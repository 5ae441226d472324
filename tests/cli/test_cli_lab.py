"""`rsr doctor`, `rsr drift`, `rsr answer` and `rsr approve`."""

from __future__ import annotations

import json
import os
import socket

import pytest
from toy.bare import run_bare_loop

from rsr.cli import main
from rsr.cli.doctor import of_hashes, of_machine, of_workspace
from rsr.config import RealityConfig
from rsr.sessions import read_session
from tests.pipelines.test_arrivals import drop, waiting


def states(findings) -> dict[str, str]:
    return {finding.what: finding.state for finding in findings}


def test_this_machine_is_in_order_where_the_tests_run(tmp_path):
    found = states(of_machine(tmp_path))
    assert {found[what] for what in ("Python", "packages", "git", "dvc", "Prefect's server")} == {"good"}


def test_a_server_that_does_not_answer_is_bad(tmp_path, monkeypatch):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    monkeypatch.setenv("PREFECT_API_URL", f"http://127.0.0.1:{port}/api")
    (server,) = [finding for finding in of_machine(tmp_path) if finding.what == "Prefect's server"]
    assert (server.state, server.remedy) == ("bad", "Start it: `make serve`.")


def test_the_environment_is_shown_without_what_may_be_secret(tmp_path, monkeypatch):
    monkeypatch.setenv("RSR_ENGINE", "dask")
    monkeypatch.setenv("PREFECT_API_KEY", "planted-1")
    monkeypatch.setenv("PREFECT_API_URL", "http://lab:planted-2@127.0.0.1:9/api")
    found = {finding.what: finding.found for finding in of_machine(tmp_path)}
    assert "RSR_ENGINE=dask" in found["environment"]
    assert "PREFECT_API_KEY is set" in found["environment"]
    assert "planted" not in str(found)


class TestWorkspace:
    @pytest.fixture
    def root(self, tmp_path):
        for name in (".git", ".dvc", ".rsr"):
            (tmp_path / name).mkdir()
        (tmp_path / "iterations.json").write_text('{"chain": {}}')
        return tmp_path

    def test_a_plain_one(self, root):
        assert states(of_workspace(root)) == {"workspace": "good", "loop": "good", "DVC remote": "note"}

    def test_a_folder_without_dvc(self, root):
        (root / ".dvc").rmdir()
        (finding,) = of_workspace(root)
        assert finding.state == "bad"
        assert finding.found.endswith("lacks .dvc")

    def test_a_living_and_a_dead_holder(self, root):
        holder = {"pid": os.getpid(), "host": socket.gethostname(), "since": "2026-01-01", "command": "x"}
        (root / ".rsr/lock").write_text(json.dumps(holder))
        assert any(f.found.endswith("is running") for f in of_workspace(root))
        (root / ".rsr/lock").write_text(json.dumps({**holder, "pid": 2**22 + 1}))
        (finding,) = [f for f in of_workspace(root) if f.what == "loop"]
        assert finding.found.endswith("which is dead")
        assert finding.remedy == "The next run goes on from where it stopped."

    def test_a_remote_and_a_left_lock(self, root):
        (root / "store").mkdir()
        (root / ".dvc/config").write_text("[core]\n    remote = shared\n['remote \"shared\"']\n    url = ../store\n")
        (root / ".git/index.lock").write_text("")
        found = {f.what: f for f in of_workspace(root)}
        assert (found["DVC remote"].state, found["DVC remote"].found) == ("good", "shared: ../store")
        assert found["git"].found == "index.lock is there"

    def test_an_address_may_have_a_percent_sign_and_a_broken_file_is_named(self, root, capsys):
        (root / ".dvc/config").write_text("[core]\n    remote = far\n['remote \"far\"']\n    url = s3://x/a%20b\n")
        assert {f.what: f.found for f in of_workspace(root)}["DVC remote"] == "far: s3://x/a%20b"
        (root / ".dvc/config").write_text("remote = far\n")
        assert main(["doctor", "--workspace", str(root)]) == 2
        assert "expected settings as `dvc config` and `dvc remote` write them" in capsys.readouterr().err

    def test_a_secret_in_what_git_keeps_is_bad_and_is_not_repeated(self, root, capsys):
        (root / ".dvc/config").write_text(
            "[core]\n    remote = shared\n['remote \"shared\"']\n    url = https://lab:planted-1@store/x\n"
            "    secret_access_key = planted-2\n"
        )
        found = [f for f in of_workspace(root) if f.what == "secrets"]
        assert [(f.state, f.found.split(": ")[1]) for f in found] == [("bad", "secret_access_key"), ("bad", "url")]
        main(["doctor", "--workspace", str(root)])
        assert "planted" not in capsys.readouterr().out

    def test_the_same_in_the_file_that_git_ignores_is_as_it_should_be(self, root):
        (root / ".dvc/config").write_text("[core]\n    remote = shared\n['remote \"shared\"']\n    url = s3://x/y\n")
        (root / ".dvc/config.local").write_text("['remote \"shared\"']\n    secret_access_key = planted\n")
        assert not [f for f in of_workspace(root) if f.what == "secrets"]

    def test_whom_dvc_waits_for(self, root):
        (root / ".dvc/tmp").mkdir()
        held = {
            "read": {"a": [{"pid": 2**22 + 1, "cmd": "dvc pull"}]},
            "write": {"b": {"pid": os.getpid(), "cmd": "x"}},
        }
        (root / ".dvc/tmp/rwlock").write_text(json.dumps(held))
        found = [f for f in of_workspace(root) if f.what == "DVC"]
        assert [f.remedy for f in found] == ["Wait for it.", "It is dead; the next run drops its lock."]

    def test_the_command_ends_with_1_if_something_must_be_mended(self, root, capsys):
        assert main(["doctor", "--workspace", str(root)]) == 0
        (root / ".dvc").rmdir()
        assert main(["doctor", "--workspace", str(root)]) == 1
        cells = capsys.readouterr().out.replace("│", " ")  # wherever the folder's name breaks the line
        assert "lacks .dvc" in " ".join(cells.split())


@pytest.mark.parametrize(
    "command", [["doctor"], ["drift"], ["answer", "run.csv"], ["approve", "--iteration", "0", "--by", "me"]]
)
def test_a_folder_that_was_named_must_be_the_campaign(tmp_path, capsys, command):
    (tmp_path / "iterations.json").write_text('{"chain": {}}')
    assert main([*command, "--workspace", str(tmp_path / "typo")]) == 2
    assert f"{tmp_path / 'typo'}: got no such folder; expected a workspace." in capsys.readouterr().err


def test_doctor_examines_the_machine_where_there_is_no_campaign(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["doctor"]) in (0, 1)
    assert "workspace" not in capsys.readouterr().out


def test_drift_wants_a_calibration_and_something_recorded_after_it(tmp_path, capsys):
    (tmp_path / "iterations.json").write_text('{"chain": {}}')
    assert main(["drift", "--workspace", str(tmp_path)]) == 2
    assert "got 0 iterations with a calibration; expected a calibration, and a session" in capsys.readouterr().err


class TestAnswer:
    def test_what_was_recorded_lies_in_the_inbox_under_the_name_that_was_asked_for(self, tmp_path, capsys):
        workspace = waiting(tmp_path / "lab", RealityConfig(kind="inbox", episodes=2))
        recorded = drop(workspace).rename(tmp_path / "monday")
        assert main(["answer", str(recorded), "--workspace", str(workspace.root)]) == 0
        assert capsys.readouterr().out.startswith("in the inbox, for iteration 1;")
        assert read_session(workspace.root / "inbox" / "session-001").card.session == "session-001"

    def test_a_campaign_on_a_stand_in_takes_none(self, tmp_path, capsys):
        workspace = waiting(tmp_path / "lab", RealityConfig(kind="stand_in"))
        assert main(["answer", str(tmp_path), "--workspace", str(workspace.root)]) == 2
        assert "got reality.kind: stand_in; expected inbox" in capsys.readouterr().err


def test_doctor_reads_everything_if_asked(tmp_path, capsys):
    run_bare_loop(tmp_path / "workspace", 1)
    page = tmp_path / "workspace/iterations/001/report.html"
    page.unlink()  # it may share its bytes with DVC's cache
    page.write_text("edited\n")
    (finding,) = of_hashes(tmp_path / "workspace")
    assert finding.state == "bad"
    assert finding.found.startswith(f"{page}: MD5 ")
    assert main(["doctor", "--deep", "--workspace", str(tmp_path / "workspace")]) == 1
    assert "all as recorded" not in capsys.readouterr().out
