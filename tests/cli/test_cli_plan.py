"""`rsr plan` and `rsr divergence` on a small recording."""

from pathlib import Path

import pytest

from rsr.calibration import save_calibration, start_calibration
from rsr.cli import main
from rsr.common.files import read_json
from rsr.sessions import write_session
from tests.calibration.recordings import recording
from tests.push_samples import push_cube


@pytest.fixture(scope="module")
def lab(tmp_path_factory) -> Path:
    """A folder with a stored session and a calibration."""
    root = tmp_path_factory.mktemp("lab")
    write_session(root, recording(4, 60))
    save_calibration(start_calibration(push_cube()), root / "calibration")
    return root


def options(lab: Path) -> list[str]:
    return ["--scenario", "push_cube", "--sessions", str(lab / "push_cube" / "session-001")]


def test_plan_writes_a_table_a_file_and_a_picture(lab, tmp_path, capsys):
    command = ["plan", *options(lab), "--calibration", str(lab / "calibration"), "--out", str(tmp_path / "plan")]
    assert main([*command, "--candidates", "6"]) == 0
    shown = capsys.readouterr().out
    assert "the best of 6 candidates" in shown
    assert "not known well: table_friction" in shown
    assert shown.rstrip().endswith(str(tmp_path / "plan"))
    document = read_json(tmp_path / "plan" / "plan.json")
    assert document["scenario"] == "push_cube"
    assert [each["rank"] for each in document["candidates"]] == [1, 2, 3, 4, 5, 6]
    best = document["candidates"][0]
    assert len(best["start"]) == push_cube().state_size
    assert {len(row) for row in best["commands"]} == {6}
    assert {each["name"] for each in document["session"]} <= {each["name"] for each in document["candidates"]}
    assert (tmp_path / "plan" / "plan.png").read_bytes()[:4] == b"\x89PNG"


def test_divergence_says_which_estimator_to_take(lab, tmp_path, capsys):
    assert main(["divergence", *options(lab), "--transitions", "150", "--json", str(tmp_path / "figures.json")]) == 0
    shown = capsys.readouterr().out
    assert "150 transitions" in shown
    figures = read_json(tmp_path / "figures.json")
    assert f"take {figures['advised']}: " in shown
    assert {"kde_nats", "gaussian_nats", "knn_nats", "conditional_nats", "kde_floor_nats"} <= set(figures)
    with_calibration = ["--calibration", str(lab / "calibration"), "--transitions", "150"]
    assert main(["divergence", *options(lab), *with_calibration]) == 0


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        (["--candidates", "1"], "got 1 candidates; expected at least 2"),
        (["--policy", "nowhere"], "expected policy.npz and policy.json of one policy"),
        (["--seed", "-1"], "seed: got -1"),
    ],
)
def test_wrong_options_of_plan_are_explained(lab, tmp_path, capsys, extra, words):
    command = ["plan", *options(lab), "--calibration", str(lab / "calibration"), "--out", str(tmp_path / "plan")]
    assert main([*command, *extra]) == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "plan").exists()


def test_wrong_options_of_divergence_are_explained(lab, capsys):
    assert main(["divergence", *options(lab), "--transitions", "7"]) == 2
    assert "infogap.transitions: got 7" in capsys.readouterr().err
    assert main(["divergence", *options(lab), "--calibration", str(lab)]) == 2
    assert "calibration.json" in capsys.readouterr().err
