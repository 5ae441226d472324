"""The walk of examples/so100_servos: a LeRobot set in shares of ranges in, six servos calibrated, a tuned model out."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import mujoco
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from shared_data import shared_data

from rsr.calibration import load_calibration, save_calibration, start_calibration
from rsr.cli import main
from rsr.scenarios import load_scenario
from rsr.sessions import read_session
from rsr.simulators import MujocoSimulator

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "so100_servos"
FPS, FRAMES, EPISODES = 30, 180, 4
HIDDEN = {"gain_pitch": 0.6, "gain_elbow": 0.7, "friction_rotation": 2.0, "delay": 0.04}
SESSION = "data/so100_servos/session-001"
NAMED = ["--scenario", "so100/scenario.yaml"]


@pytest.fixture
def arm(tmp_path, monkeypatch):
    """The folder of the walk, with a set that MuJoCo made."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(EXAMPLE, "so100")
    shutil.copytree(shared_data("../robots/trs_so_arm100"), "so100/robot")
    motors = [name.removesuffix(".pos") for name in mapping()["columns"]]
    ranges = {name: {"id": index, "drive_mode": 0, "homing_offset": 0, "range_min": 700 + 50 * index, "range_max": 3400}
              for index, name in enumerate(motors)}  # fmt: skip
    Path("so100/calibration.json").write_text(json.dumps(ranges))
    scenario = load_scenario("so100")
    write_set(scenario, ranges)
    return scenario


def mapping() -> dict:
    return yaml.safe_load((EXAMPLE / "mapping.yaml").read_text())["channels"]["joint_position"]


def write_set(scenario, ranges: dict) -> None:
    """Sines of other rates in each joint, with pauses; shares of ranges as LeRobot writes them."""
    rng, time_s = np.random.default_rng(0), np.arange(FRAMES) / FPS
    lower, upper = scenario.base_model.actuator_ctrlrange.T
    rates, phases = rng.uniform(1.0, 5.0, (2, EPISODES, 6, 1))
    waves = np.sin(rates * np.minimum(time_s, 4.5) + phases).transpose(0, 2, 1)
    sent = 0.5 * (lower + upper) + 0.2 * (upper - lower) * waves
    before = np.repeat(sent[:, :1], scenario.history_steps, axis=1)
    states = np.zeros((EPISODES, scenario.state_size))
    states[:, :6] = sent[:, 0]
    with MujocoSimulator(scenario, threads=1) as simulator:
        commands = np.concatenate([before, sent], axis=1)
        rows = simulator.rollout(states, commands, scenario.space.vector(HIDDEN))[:, :-1, :6]
    rows = rows + rng.normal(0.0, 0.0015, rows.shape)
    folder = Path("my_set")
    (folder / "meta").mkdir(parents=True)
    (folder / "data" / "chunk-000").mkdir(parents=True)
    feature = {"dtype": "float32", "shape": [6], "names": mapping()["columns"]}
    card = {"codebase_version": "v3.0", "fps": FPS, "total_episodes": EPISODES}
    features = {"observation.state": feature, "action": feature}
    (folder / "meta" / "info.json").write_text(json.dumps(card | {"features": features}))
    table = {
        "observation.state": list(np.concatenate(shares(rows, ranges))),
        "action": list(np.concatenate(shares(sent, ranges))),
        "timestamp": np.tile(time_s, EPISODES).astype(np.float32),
        "frame_index": np.tile(np.arange(FRAMES), EPISODES),
        "episode_index": np.repeat(np.arange(EPISODES), FRAMES),
    }
    pq.write_table(pa.table(table), folder / "data" / "chunk-000" / "file-000.parquet")


def shares(angles: np.ndarray, ranges: dict) -> np.ndarray:
    found = angles - np.array(mapping()["offset"])
    for index, (name, entry) in enumerate(ranges.items()):
        half = np.pi * (entry["range_max"] - entry["range_min"]) / 4096
        share = found[..., index] / half
        found[..., index] = 50 * (share + 1) if name == "gripper" else 100 * share
    return found.astype(np.float32)


def test_a_set_is_ingested_in_the_models_angles_and_a_calibration_handed_over(arm):
    assert main(["ingest", "my_set", *NAMED, "--map", "so100/mapping.yaml", "--simulated"]) == 0
    session = read_session(Path(SESSION))
    assert len(session.episodes) == EPISODES
    lower, upper = arm.base_model.actuator_ctrlrange.T
    for episode in session.episodes:
        assert np.abs(episode["joint_position"][0] - episode["setpoint"][0]).max() < 0.01  # begins at rest
        assert np.all((episode["setpoint"] > lower) & (episode["setpoint"] < upper))
    save_calibration(start_calibration(arm), Path("calibration"))
    assert main(["export", "--model", "tuned.xml", "--calibration", "calibration", *NAMED]) == 0
    assert mujoco.MjModel.from_xml_path("tuned.xml").nu == mujoco.MjModel.from_xml_path("tuned.urdf").njnt == 6


@pytest.mark.slow
def test_the_servos_come_back(arm):
    assert main(["ingest", "my_set", *NAMED, "--map", "so100/mapping.yaml", "--simulated"]) == 0
    method = ["--method", "sysid", "--budget", "60"]
    assert main(["calibrate", *NAMED, "--sessions", SESSION, *method, "--out", "calibration"]) == 0
    found = load_calibration(Path("calibration"))
    truth = dict(zip(arm.space.names, arm.space.nominal, strict=True)) | HIDDEN
    held = [each.lower <= truth[name] <= each.upper for name, each in found.estimates.items()]
    assert sum(held) >= len(held) - 1, found.estimates
    assert found.estimates["gain_pitch"].value == pytest.approx(0.6, rel=0.1)
    assert found.evidence.gap_after < 0.5 * found.evidence.gap_before
    assert main(["export", "--model", "tuned.xml", "--calibration", "calibration", *NAMED]) == 0
