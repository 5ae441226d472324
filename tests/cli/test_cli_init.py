"""`rsr init`: a campaign from a few answers, and what it refuses."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys

import pytest

from rsr.cli import main
from rsr.config import RealityConfig, load_config
from rsr.workspace import Workspace, scenario_name
from rsr_tasks import bookkeeping, versions

NEXT = "rsr-loop --workspace"


def test_makes_a_workspace_in_order_and_says_what_comes_next(tmp_path, capsys):
    root = tmp_path / "campaign"
    assert main(["init", str(root), "--scenario", "push_cube", "--reality", "inbox", "--approval", "--seed", "3"]) == 0
    captured = capsys.readouterr()
    assert captured.out == f"{root}\n"
    assert f"Now: {NEXT} {root} --iterations 1" in captured.err
    assert "rsr approve" in captured.err
    settings = Workspace.at(root).settings()
    assert (scenario_name(settings.scenario), settings.seed) == ("push_cube", 3)
    assert (settings.reality.kind, settings.reality.approval) == ("inbox", True)
    assert versions.git(root, "status", "--porcelain") == ""
    assert bookkeeping.stale(root) == {"start"}


@pytest.mark.parametrize(("pipeline", "scenario"), [("clash", "strike"), ("gnn", "two_cubes"), ("loop", "push_t")])
def test_every_pipeline_on_its_stand_in(tmp_path, capsys, pipeline, scenario):
    root = tmp_path / "campaign"
    options = ["--pipeline", pipeline, "--scenario", scenario, "--reality", "stand_in"]
    assert main(["init", str(root), *options]) == 0
    assert f"Now: {NEXT} {root}" in capsys.readouterr().err
    settings = load_config(root / "params.yaml")
    assert settings.reality.kind == RealityConfig().kind
    assert (settings.clash is not None, settings.gnn is not None) == (pipeline == "clash", pipeline == "gnn")


def test_without_a_terminal_what_is_missing_is_named(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    assert main(["init", str(tmp_path / "w"), "--scenario", "push_cube"]) == 2
    error = " ".join(capsys.readouterr().err.split())
    assert "got no --reality, and no terminal to ask in; expected --scenario NAME_OR_PATH and --reality" in error
    assert list(tmp_path.iterdir()) == []


def test_in_a_terminal_it_asks_and_takes_enter_for_what_it_suggests_and_y_for_yes(tmp_path):
    """A real terminal: a wrong answer is told and asked again."""
    own, its = pty.openpty()
    command = [sys.executable, "-m", "rsr", "init", "campaign"]
    child = subprocess.Popen(command, cwd=tmp_path, stdin=its, stderr=its, stdout=subprocess.PIPE)
    os.write(own, b"push_qube\n\ninbox\nperhaps\nY\n")
    out, _ = child.communicate(timeout=120)
    os.close(its)
    said = os.read(own, 100_000).decode()
    os.close(own)
    assert child.returncode == 0, said
    assert out.decode().strip() == str(tmp_path / "campaign")
    assert "got scenario 'push_qube'" in said
    assert "Answer one of yes, no." in said
    settings = load_config(tmp_path / "campaign/params.yaml")
    assert (settings.scenario, settings.reality.kind, settings.reality.approval) == ("push_cube", "inbox", True)


def test_settings_that_lie_there_are_taken_as_they_are(tmp_path):
    text = "# ours\nscenario: push_t\nreality: {kind: inbox}\n"
    (tmp_path / "params.yaml").write_text(text)
    (tmp_path / "robot.yaml").write_text("robot: ours\n")
    assert main(["init", str(tmp_path)]) == 0
    assert (tmp_path / "params.yaml").read_text() == text
    assert (tmp_path / "robot.yaml").read_text() == "robot: ours\n"
    assert versions.git(tmp_path, "status", "--porcelain") == "?? robot.yaml"


def test_options_go_over_them(tmp_path):
    (tmp_path / "params.yaml").write_text("scenario: push_t\nreality: {episodes: 7}\n")
    assert main(["init", str(tmp_path), "--reality", "inbox"]) == 0
    settings = load_config(tmp_path / "params.yaml")
    assert (settings.scenario, settings.reality.kind, settings.reality.episodes) == ("push_t", "inbox", 7)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--scenario", "push_qube", "--reality", "inbox"], "got scenario 'push_qube'"),
        (["--scenario", "double_pendulum", "--reality", "stand_in"], "got reality.kind: stand_in, which only a policy"),
        (["--scenario", "double_pendulum", "--reality", "inbox", "--approval"], "as there is no policy to approve of"),
        (["--pipeline", "clash", "--scenario", "push_cube", "--reality", "inbox"], "got no section `collision`"),
        (["--pipeline", "clash", "--scenario", "strike", "--reality", "robot"], "got reality 'robot'"),
        (["--pipeline", "gnn", "--scenario", "cube_toss", "--reality", "stand_in"], "of scenario cube_toss"),
        (["--scenario", "none.yaml", "--reality", "inbox"], "got scenario "),
        (["--scenario", "push_cube", "--reality", "inbox", "--seed", "-1"], "got -1"),
    ],
)
def test_what_the_loop_would_stumble_over_is_said_before_anything_is_made(tmp_path, capsys, options, words):
    assert main(["init", str(tmp_path / "w"), *options]) == 2
    assert words in " ".join(capsys.readouterr().err.split())
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_begun_over_something_else(tmp_path, capsys):
    options = ["--scenario", "push_cube", "--reality", "inbox"]
    (tmp_path / "thesis.tex").write_text("mine")
    assert main(["init", str(tmp_path), *options]) == 2
    assert "got a folder with thesis.tex; expected room" in " ".join(capsys.readouterr().err.split())
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
    assert main(["init", str(tmp_path / "thesis.tex"), *options]) == 2
    assert "got a file; expected room" in " ".join(capsys.readouterr().err.split())
    assert main(["init", str(tmp_path / "w"), *options]) == 0
    before = versions.git(tmp_path / "w", "rev-parse", "HEAD")
    capsys.readouterr()
    assert main(["init", str(tmp_path / "w"), *options]) == 2
    assert f"Go on with it: `{NEXT}" in " ".join(capsys.readouterr().err.split())
    assert versions.git(tmp_path / "w", "rev-parse", "HEAD") == before


def test_a_detached_head_is_told(tmp_path, capsys):
    assert main(["init", str(tmp_path / "w"), "--scenario", "push_cube", "--reality", "inbox"]) == 0
    assert versions.detached(tmp_path / "w") == ""
    versions.git(tmp_path / "w", "checkout", "--quiet", "--detach")
    assert "HEAD is detached at" in versions.detached(tmp_path / "w")
    capsys.readouterr()
    main(["doctor", "--workspace", str(tmp_path / "w")])
    assert "HEAD is detached" in " ".join(capsys.readouterr().out.split())
