"""`rsr push` on what a calibration leaves behind; `rsr calibrate --method gnn` itself is in test_cli_tuning."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rsr.calibration import save_calibration, start_calibration
from rsr.cli.app import FAILED, main
from rsr.common.files import read_json
from rsr.learned.gnn.storage import new_network, save_network
from rsr.scenarios import load_scenario


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as `rsr calibrate --method gnn` writes it, but for a network that was never trained."""
    folder = tmp_path_factory.mktemp("learned")
    save_calibration(start_calibration(load_scenario("two_cubes")), folder)
    save_network(new_network().requires_grad_(False), folder / "network")
    return folder


def push(folder: Path, *more: str, scenario: str = "two_cubes") -> int:
    return main(["push", "--scenario", scenario, "--calibration", str(folder), *more])


def test_a_push_is_found_and_carried_out(learned, capsys, tmp_path):
    path = tmp_path / "push.json"
    assert push(learned, "--target", "0.15", "0.0", "--steps", "1", "--json", str(path)) == 0
    said = capsys.readouterr().out
    assert "from the target" in said
    assert "carried out by MuJoCo: " in said
    found = read_json(path)
    assert np.shape(found["velocity_m_s"]) == (10, 2)
    assert np.shape(found["trace_m"]) == (10, 2)
    assert found["carried_out_m"] > 0


@pytest.mark.parametrize(
    ("target", "scenario", "words"),
    [
        (("nan", "0"), "two_cubes", "a place in m"),
        (("0.2", "0"), "push_cube", "expected free bodies that nothing commands"),
    ],
)
def test_bad_input_is_answered(learned, capsys, target, scenario, words):
    assert push(learned, "--target", *target, scenario=scenario) == FAILED
    assert words in " ".join(capsys.readouterr().err.split())


def test_a_folder_without_a_network_is_refused(tmp_path, capsys):
    assert push(tmp_path, "--target", "0.2", "0") == FAILED
    assert (
        "network.json and network.npz as `rsr calibrate --method gnn` writes them"
        in capsys.readouterr().err.replace("\n", " ")
    )
