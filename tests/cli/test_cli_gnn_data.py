"""`rsr gnn identify` and `rsr gnn data`, one after the other, on stored sessions of the stand-in."""

import numpy as np
import pytest

from rsr.cli.app import FAILED, main
from rsr.files import read_json
from rsr.gnn.scaling import load_scaled
from rsr.gnn.trajectories import load_trajectories
from rsr.realities.cubes import CubesStandIn
from rsr.sessions import write_session


@pytest.fixture(scope="module")
def sessions(tmp_path_factory):
    root = tmp_path_factory.mktemp("recorded")
    stand_in = CubesStandIn(1)
    return [str(write_session(root, each)) for each in (stand_in.training(), stand_in.record("others", 4))]


def identified(sessions, out, *more: str) -> int:
    wanted = ["--scenario", "two_cubes", "--sessions", sessions[0], "--out", str(out)]
    return main(["gnn", "identify", *wanted, "--evaluations", "64", *more])


def test_recordings_become_a_teacher_and_the_teacher_makes_data(sessions, tmp_path, capsys):
    teacher, made = tmp_path / "teacher", tmp_path / "made"
    assert identified(sessions, teacher, "--test", sessions[1], "--seed", "2") == 0
    said = capsys.readouterr().out
    assert "contact parameters after 64 evaluations" in said
    assert "error on 3 fitted trajectories: " in said
    assert "error on 4 others: " in said
    card = read_json(teacher / "teacher.json")
    assert card["error"] < 0.64 * card["default_error"]
    assert len(load_trajectories(teacher / "recorded.npz")) == 3
    options = ["--teacher", str(teacher), "--out", str(made), "--trajectories", "5", "--frames", "6"]
    assert main(["gnn", "data", *options, "--varied", "--cubes", "3", "--seed", "4"]) == 0
    assert capsys.readouterr().out.strip() == f"{made}: 5 trajectories"
    assert [len(each) for each in load_scaled(made)] == [6] * 5
    assert main(["gnn", "data", *options, "--seed", "5"]) == FAILED
    assert "another seed, scaling" in capsys.readouterr().err.replace("\n", " ")


def test_its_sessions_are_ordinary_ones(sessions, tmp_path, capsys):
    assert main(["check", sessions[1], "--brief"]) == 0
    assert "reject" not in capsys.readouterr().out
    figures = tmp_path / "figures.json"
    assert main(["evaluate", "--scenario", "two_cubes", "--sessions", sessions[1], "--json", str(figures)]) == 0
    assert read_json(figures)["struck_position_mm"] > 1


def test_bad_input_is_answered(sessions, tmp_path, capsys):
    assert main(["gnn", "data", "--teacher", str(tmp_path), "--out", str(tmp_path / "x")]) == FAILED
    assert "expected a teacher that `rsr gnn identify` wrote" in capsys.readouterr().err
    both = ["--varied", "--bowling", "--teacher", str(tmp_path), "--out", str(tmp_path / "x")]
    assert main(["gnn", "data", *both]) == FAILED
    assert "--varied together with --bowling" in capsys.readouterr().err
    wanted = ["--scenario", "push_cube", "--sessions", sessions[0], "--out", str(tmp_path / "x")]
    assert main(["gnn", "identify", *wanted]) == FAILED
    assert "SessionError" in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


def test_the_teacher_does_not_depend_on_anything_but_the_seed(sessions, tmp_path):
    for name in ("one", "other"):
        assert identified(sessions, tmp_path / name, "--seed", "7") == 0
    one, other = (read_json(tmp_path / name / "teacher.json") for name in ("one", "other"))
    assert one == other
    assert np.isfinite(one["error"])
