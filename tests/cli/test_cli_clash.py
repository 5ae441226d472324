"""`rsr clash data`, `train`, `adapt`, one after the other, on a shape given as a mesh file."""

import json
from dataclasses import replace

import numpy as np
import pytest

from rsr.cli.app import main
from rsr.learned.clash import load_adapted, write_strikes
from rsr.realities.strikes import StrikeStandIn
from rsr.scenarios.built_in.strike import load_shape, sample_strikes
from tests.clash.test_strike_shapes import write_obj


@pytest.fixture(scope="module")
def chain(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clash")
    mesh = write_obj(folder / "printed.obj", load_shape("square").outline, 40, scale=1000)
    mesh.write_text(mesh.read_text().replace("40000", "40"))
    data = [
        "clash",
        "data",
        "--shape",
        str(mesh),
        "--mesh-unit",
        "0.001",
        "--out",
        str(folder / "data"),
        "--pairs",
        "1500",
    ]
    train = ["clash", "train", "--data", str(folder / "data"), "--out", str(folder / "surrogate"), "--steps", "400"]
    assert main(data) == 0
    assert main(train) == 0
    return folder, mesh


def test_a_table_of_strikes_becomes_a_model_a_picture_and_figures(chain, capsys):
    folder, mesh = chain
    shape = load_shape(str(mesh), mesh_unit_m=0.001)
    write_strikes(folder / "strikes.csv", StrikeStandIn(shape, 0).record(18))
    out = folder / "adapted"
    options = ["--surrogate", str(folder / "surrogate"), "--strikes", str(folder / "strikes.csv"), "--out", str(out)]
    assert main(["clash", "adapt", *options]) == 0
    assert "judged on the other 8" in capsys.readouterr().out
    figures = json.loads((out / "comparison.json").read_text())
    assert {row["method"] for row in figures["methods"]} == {"before", "law", "adapted"}
    assert (out / "adaptation.png").read_bytes().startswith(b"\x89PNG")
    model = load_adapted(out)
    assert model.shape.name == "printed"
    assert np.isfinite(model(sample_strikes(shape, 5, np.random.default_rng(0)))).all()


def test_a_shape_alone_is_adapted_to_places_of_rest(tmp_path, capsys):
    shape, out = load_shape("square"), tmp_path / "adapted"
    recorded = StrikeStandIn(shape, 0).record(16)
    write_strikes(tmp_path / "rests.csv", replace(recorded, after=np.full((16, 3), np.nan)))
    options = ["--strikes", str(tmp_path / "rests.csv"), "--out", str(out)]
    assert main(["clash", "adapt", *options, "--shape", "square"]) == 0
    said = capsys.readouterr()
    assert "no velocities recorded" in " ".join((said.out + said.err).split())
    assert load_adapted(out).sliding is not None
    push = ["clash", "push", "--adapted", str(out), "--out", str(tmp_path / "policy"), "--simulator", "mujoco"]
    assert main(push) == 2
    assert "adapted without a surrogate" in capsys.readouterr().err
    assert main(["clash", "adapt", *options]) == 2
    assert "none of --shape, --scenario and --surrogate" in capsys.readouterr().err


def test_no_training_at_all_is_refused(chain, capsys):
    folder, _ = chain
    assert main(["clash", "train", "--data", str(folder / "data"), "--out", str(folder / "no"), "--steps", "0"]) == 2
    assert "got 0 steps of training" in capsys.readouterr().err
    assert not (folder / "no").exists()


@pytest.mark.slow
def test_a_glitched_row_is_named(chain, capsys):
    folder, mesh = chain
    recorded = StrikeStandIn(load_shape(str(mesh), mesh_unit_m=0.001), 0).record(18)
    spoilt = recorded.after.copy()
    spoilt[6] *= 2.5
    write_strikes(folder / "glitched.csv", replace(recorded, after=spoilt))
    options = ["--surrogate", str(folder / "surrogate"), "--strikes", str(folder / "glitched.csv")]
    assert main(["clash", "adapt", *options, "--out", str(folder / "glitched")]) == 0
    said = capsys.readouterr()
    assert "adapted to 17 strikes" in said.out
    assert "left out as glitches: rows 7 of" in " ".join((said.out + said.err).split())


def test_what_is_wrong_with_a_table_is_said(chain, capsys):
    folder, mesh = chain
    shape = load_shape(str(mesh), mesh_unit_m=0.001)
    write_strikes(folder / "few.csv", StrikeStandIn(shape, 0).record(3))
    options = [
        "--surrogate",
        str(folder / "surrogate"),
        "--strikes",
        str(folder / "few.csv"),
        "--out",
        str(folder / "none"),
    ]
    assert main(["clash", "adapt", *options]) == 2
    assert "3 strikes" in capsys.readouterr().err
    assert not (folder / "none").exists()
