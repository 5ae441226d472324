"""`rsr gnn train`, `evaluate` and `push`: a tiny network, but every file and every word they leave behind."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from rsr.cli.app import FAILED, main
from rsr.files import read_json
from rsr.gnn.identification import Identified
from rsr.gnn.laws import Laws
from rsr.gnn.pushes import pushed
from rsr.gnn.scenes import cube_world
from rsr.gnn.storage import load_network, new_network, save_network
from rsr.gnn.teacher import teacher_rollout
from rsr.gnn.teachers import save_teacher
from rsr.gnn.trajectories import FRAME_S, Trajectory, save_trajectories
from rsr.scenarios.two_cubes import ContactParameters

CONTACT = ContactParameters(mu=0.3)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve pushes as an .npz, and the teacher that made them."""
    folder = tmp_path_factory.mktemp("taught")
    poses = torch.tensor([[0.0, 0, 0.04, 1, 0, 0, 0], [0.12, 0.01, 0.04, 1, 0, 0, 0]], dtype=torch.float64)
    velocity = torch.stack([torch.linspace(0.7, 1.4, 12), torch.zeros(12)], dim=1).double()
    first = pushed(poses.expand(12, -1, -1), 0, velocity, FRAME_S).numpy()
    after = teacher_rollout(cube_world(), CONTACT, first, 24)
    trajectories = [Trajectory(cube_world(), each, name=f"push {index}") for index, each in enumerate(after)]
    save_trajectories(trajectories, folder / "pushes.npz")
    save_teacher(folder / "teacher", Identified(CONTACT, 1.0, 0.5, 10, 0), trajectories[:3], "two_cubes", 0)
    return folder


@pytest.fixture(scope="module")
def network(data: Path) -> Path:
    out = data / "network"
    assert main(["gnn", "train", "--data", str(data / "pushes.npz"), "--out", str(out), "--steps", "30"]) == 0
    return out


def test_training_says_what_to_do_next(data, network, capsys, tmp_path):
    few = ["--finetune", str(data / "teacher" / "recorded.npz"), "--finetune-steps", "2"]
    once = ["gnn", "train", "--data", str(data / "pushes.npz"), "--out", str(tmp_path), "--steps", "2", *few]
    assert main(once) == 0
    said = capsys.readouterr()
    assert said.out.strip() == f"{tmp_path}: impulse, taught by 12 trajectories"
    assert f"rsr gnn evaluate --network {tmp_path} --trajectories FILE" in said.err.replace("\n", " ")
    evidence = read_json(tmp_path / "network.json")["evidence"]
    assert (evidence["trajectories"], evidence["recordings"]) == (12, 3)
    assert (evidence["share"] > 0) == (evidence["error_after"] < evidence["error_before"])
    assert "of the way: error of recordings left out" in said.err.replace("\n", " ")
    weights = (tmp_path / "network.npz").read_bytes()
    assert main(once) == 0
    assert (tmp_path / "network.npz").read_bytes() == weights


def test_a_network_that_knows_many_contacts_goes_on_under_those_of_a_teacher(data, tmp_path, capsys):
    drawn, base, out = (str(tmp_path / name) for name in ("drawn", "base", "out"))
    assert main(["gnn", "data", "--out", drawn, "--trajectories", "3", "--frames", "12"]) == 0
    assert main(["gnn", "train", "--data", drawn, "--out", base, "--steps", "2"]) == 0
    told = ["--base", base, "--teacher", str(data / "teacher"), "--steps", "2"]
    assert main(["gnn", "train", "--data", str(data / "pushes.npz"), "--out", out, *told]) == 0
    coordinates = Laws.same(CONTACT).coordinates
    np.testing.assert_allclose(load_network(Path(out)).laws.numpy(), coordinates, rtol=1e-5)
    capsys.readouterr()
    without_base = ["--out", out, "--teacher", str(data / "teacher")]
    assert main(["gnn", "train", "--data", drawn, *without_base]) == FAILED
    assert "--teacher without --base" in capsys.readouterr().err


def test_contacts_are_told_to_no_network_that_cannot_be_told(data, tmp_path, capsys):
    base, out = tmp_path / "base", tmp_path / "out"
    save_network(new_network("fignet"), base)
    told = ["--base", str(base), "--teacher", str(data / "teacher"), "--steps", "1"]
    assert main(["gnn", "train", "--data", str(data / "pushes.npz"), "--out", str(out), *told]) == FAILED
    assert "--teacher with a network fignet" in capsys.readouterr().err
    other = ["--base", str(base), "--network", "impulse"]
    assert main(["gnn", "train", "--data", str(data / "pushes.npz"), "--out", str(out), *other]) == FAILED
    assert "got --network impulse; expected fignet, which --base is" in capsys.readouterr().err
    assert not out.exists()


def test_a_network_is_judged_beside_its_teacher_and_rest(data, network, capsys, tmp_path):
    files = ["--json", str(tmp_path / "errors.json"), "--report", str(tmp_path / "page.html")]
    judged = ["--network", str(network), "--trajectories", str(data / "pushes.npz")]
    assert main(["gnn", "evaluate", *judged, "--teacher", str(data / "teacher"), *files]) == 0
    said = capsys.readouterr().out
    assert "12 trajectories, from their first two frames" in said
    assert "MuJoCo, identified" in said
    assert "nothing moves" in said
    figures = read_json(tmp_path / "errors.json")
    assert figures["trajectories"] == 12
    assert figures["stable"] is True
    assert 0 < figures["position_error_mm"] < 100
    page = (tmp_path / "page.html").read_text()
    assert "Paths from above" in page
    assert "MuJoCo, identified" in page


def test_a_push_is_found_and_carried_out(data, network, capsys, tmp_path):
    wanted = [
        "--network",
        str(network),
        "--target",
        "0.15",
        "0.0",
        "--steps",
        "1",
        "--json",
        str(tmp_path / "push.json"),
    ]
    assert main(["gnn", "push", *wanted, "--teacher", str(data / "teacher")]) == 0
    said = capsys.readouterr().out
    assert "from the target" in said
    assert "carried out by the teacher: " in said
    found = read_json(tmp_path / "push.json")
    assert np.shape(found["velocity_m_s"]) == (10, 2)
    assert np.shape(found["trace_m"]) == (10, 2)
    assert found["carried_out_m"] > 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["evaluate", "--network", "NONE", "--trajectories", "DATA"], "run `rsr gnn train` again"),
        (
            ["evaluate", "--network", "NETWORK", "--trajectories", "NONE.npz"],
            "Correct the path, or make the file again",
        ),
        (["push", "--network", "NONE", "--target", "0.2", "0"], "network.json and network.npz"),
        (["train", "--data", "DATA", "--out", "NEW", "--network", "magic"], "got network 'magic'"),
        (["train", "--data", "DATA", "--out", "NEW", "--steps", "0"], "at least one of each"),
        (["train", "--data", "EMPTY", "--out", "NEW"], "got no trajectory"),
    ],
)
def test_bad_input_is_answered(data, network, tmp_path, capsys, arguments, words):
    save_trajectories([], tmp_path / "empty.npz")
    known = {"DATA": data / "pushes.npz", "NETWORK": network, "NEW": tmp_path / "new", "EMPTY": tmp_path / "empty.npz"}
    assert main(["gnn", *(str(known.get(each, each)) for each in arguments)]) == FAILED
    assert words in " ".join(capsys.readouterr().err.split())
