"""`rsr clash push`: from an adapted folder to a policy, a picture and figures."""

import json

import pytest

from rsr.cli.app import main
from rsr.learned.clash import adapt, distil, generate_pairs, load_pairs, save_adapted
from rsr.learned.clash.pushing import StrikePolicy
from rsr.realities.strikes import StrikeStandIn
from rsr.scenarios.built_in.strike import load_shape


@pytest.fixture(scope="module")
def adapted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("push")
    shape = load_shape("semi_cylinder")
    pairs = load_pairs(generate_pairs(shape, folder / "strikes", 1500))
    surrogate = distil(shape, pairs, steps=300).surrogate
    save_adapted(folder / "adapted", adapt(surrogate, StrikeStandIn(shape, 0).record(10)))
    return folder / "adapted"


def test_a_policy_a_picture_and_figures(adapted, tmp_path, capsys):
    out, copy = tmp_path / "policy", tmp_path / "figures.json"
    options = ["--adapted", str(adapted), "--out", str(out), "--steps", "2560", "--trials", "5", "--strikes", "4"]
    assert main(["clash", "push", *options, "--json", str(copy)]) == 0
    assert "double_bend" in capsys.readouterr().out
    figures = json.loads(copy.read_text())
    assert figures == json.loads((out / "push.json").read_text())
    assert set(figures["routes"]) == {"straight", "bend", "double_bend"}
    assert figures["simulator"] == "hybrid"
    assert figures["checkpoints"][-1]["steps"] >= 2560
    assert (out / "push.png").read_bytes().startswith(b"\x89PNG")
    assert StrikePolicy.load(out).task.most_strikes == 4


def test_an_unknown_reward_is_refused(adapted, tmp_path, capsys):
    options = ["--adapted", str(adapted), "--out", str(tmp_path), "--reward", "fast"]
    assert main(["clash", "push", *options]) == 2
    assert "progress, literal" in capsys.readouterr().err


@pytest.mark.parametrize("nothing", ["--trials", "--steps"])
def test_nothing_to_do_is_refused_before_anything_is_learnt(nothing, tmp_path, capsys):
    assert main(["clash", "push", "--adapted", str(tmp_path), "--out", str(tmp_path / "out"), nothing, "0"]) == 2
    assert f"got {nothing} 0" in capsys.readouterr().err
