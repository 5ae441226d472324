"""`rsr step` and `rsr report`, the errors of all commands, and their help."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from rsr.cli import app, main
from rsr.cli.app import COMMANDS
from rsr.common.files import read_json
from rsr.pipelines import TABLE
from rsr.reports.page import render_report
from rsr.workspace import Workspace


@pytest.fixture
def copy(finished: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    root = Path(shutil.copytree(finished.root, tmp_path / "campaign"))
    monkeypatch.chdir(root)
    return Workspace(root)


def test_step_runs_and_leaves_a_receipt(copy):
    assert main(["step", "report", "--iteration", "2"]) == 0
    assert copy.report_path(2).read_text() == render_report(copy, 2)
    assert read_json(copy.receipts_dir(2) / "report.json")["verdict"] == "finished"


@pytest.mark.slow
def test_own_receipt_does_not_change_the_page(copy):
    main(["step", "report", "--iteration", "1"])
    text = copy.report_path(1).read_text()
    main(["step", "report", "--iteration", "1"])
    assert copy.report_path(1).read_text() == text


def test_unknown_step(copy, capsys):
    assert main(["step", "tun", "--iteration", "1"]) == 2
    assert capsys.readouterr().err.endswith(
        "ConfigError the table of steps: got step 'tun'; "
        "expected one of start, tune, infogap, retrain, evaluate, report, collect. Choose one of these names.\n"
    )


def test_unplanned_iteration(copy, capsys):
    assert main(["step", "tune", "--iteration", "9"]) == 2
    assert "got iteration 9 for step 'tune'; expected one of 1, 2." in capsys.readouterr().err


def test_report_of_the_last_iteration(copy, capsys):
    assert main(["report"]) == 0
    assert capsys.readouterr().out == f"{copy.report_path(2)}\n"
    assert copy.report_path(2).exists()
    assert not copy.report_path(1).exists()


@pytest.mark.slow
def test_report_elsewhere(copy, capsys):
    assert main(["report", "--iteration", "1", "--out", "page.html"]) == 0
    assert capsys.readouterr().out == "page.html\n"
    assert Path("page.html").read_text() == render_report(copy, 1)
    assert not copy.report_path(1).exists()


def test_picture_alone(copy, capsys):
    assert main(["report", "--figure", "loop.png"]) == 0
    assert capsys.readouterr().out == "loop.png\n"
    assert Path("loop.png").read_bytes().startswith(b"\x89PNG")
    assert not copy.report_path(2).exists()


def test_report_of_nothing(copy, capsys):
    for iteration in (1, 2):
        copy.metrics_path(iteration).unlink()
    assert main(["report"]) == 2
    assert capsys.readouterr().err == (
        f"ConfigError {copy.root}: got no iteration that was evaluated; expected at least one, or --iteration K. "
        "Run the loop: `rsr-loop --iterations 3`.\n"
    )


@pytest.mark.parametrize("name", [command.__name__ for command in COMMANDS])
def test_help_describes_every_option(name, capsys):
    with pytest.raises(SystemExit) as left:
        main([name, "--help"])
    assert left.value.code == 0
    command = next(each for each in COMMANDS if each.__name__ == name)
    text = capsys.readouterr().out
    assert command.__doc__.splitlines()[0].split(",")[0] in " ".join(text.split())
    assert "(default: None)" not in text


def test_help_of_step_names_every_step(capsys):
    with pytest.raises(SystemExit):
        main(["step", "--help"])
    text = capsys.readouterr().out
    assert all(step.name in text for step in (*TABLE.stages, TABLE.collect))


def test_wrong_usage_leaves_with_code_2(capsys):
    with pytest.raises(SystemExit) as left:
        main(["calibrate", "--sessions", "data/push_cube/session-001"])
    assert left.value.code == 2
    assert "--scenario" in capsys.readouterr().err


def test_error_inside_a_command_is_not_taken_for_wrong_usage(monkeypatch):
    def fails(number: int) -> int:
        """Fail.

        Args:
            number: any.
        """
        raise ValueError(f"no {number}")

    monkeypatch.setattr(app, "COMMANDS", (fails, *COMMANDS))
    with pytest.raises(ValueError, match="no 3"):
        main(["fails", "--number", "3"])
