"""`rsr ingest` leaves what it refuses where it is, or moves it where it is told, and nothing else."""

from __future__ import annotations

import pickle
import sys

import pytest

from rsr.cli import main
from rsr.cli.ingest import _named_in
from rsr.common.errors import Refused


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """Two recordings, of which the second, whose name begins like the other's, holds a pickle."""
    monkeypatch.chdir(tmp_path)
    for name in ("run-1", "run-10"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.csv").write_text("t,x\n0,0\n1,1\n")
    (tmp_path / "run-10" / "b.csv").write_bytes(pickle.dumps([1], protocol=4))
    return tmp_path


def test_the_source_that_was_refused_is_set_aside_and_not_one_whose_name_is_shorter(runs, capsys):
    assert main(["ingest", "run-1", "run-10", "--scenario", "double_pendulum", "--quarantine", "quarantine"]) == 2
    assert "Nothing was stored, the source is now quarantine/run-10-1." in capsys.readouterr().err
    assert sorted(path.name for path in runs.iterdir()) == ["quarantine", "run-1"]


def test_what_is_refused_stays_unless_it_is_to_be_moved(runs, capsys):
    before = sorted(runs.rglob("*"))
    assert main(["ingest", "run-1", "run-10", "--scenario", "double_pendulum"]) == 2
    assert "Nothing was stored, and nothing was moved." in capsys.readouterr().err
    assert sorted(runs.rglob("*")) == before


def test_a_project_with_a_virtual_environment_stays_where_it_is(tmp_path, monkeypatch, capsys):
    """Its links lead out, so it is refused; it may hold a week's work, and is no recording."""
    project = tmp_path / "project"
    (project / ".venv" / "bin").mkdir(parents=True)
    (project / ".venv" / "bin" / "python").symlink_to(sys.executable)
    (project / "run.csv").write_text("t,x\n0,0\n1,1\n")
    (project / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    for options in ([], ["--quarantine", "aside"]):
        assert main(["ingest", "project", "--scenario", "double_pendulum", *options]) == 2
        assert "othing was moved" in capsys.readouterr().err
        assert sorted(tmp_path.rglob("*")) == before


def test_where_no_source_is_named_all_stay(runs):
    elsewhere = Refused(got="x", expected="y", where="somewhere", next_step="z")
    assert _named_in(elsewhere, (runs / "run-1", runs / "run-10")) is None
    assert _named_in(elsewhere, (runs / "run-1",)) == runs / "run-1"


@pytest.mark.parametrize("number", ["0", "-5"])
def test_a_limit_that_nothing_could_keep_moves_nothing(runs, capsys, number):
    assert main(["ingest", "run-1", "--scenario", "double_pendulum", "--largest-mb", number]) == 2
    assert f"got --largest-mb {number}; expected a number from 1" in capsys.readouterr().err
    assert (runs / "run-1").is_dir()
