"""The walk of examples/ur_payload: an RTDE log in, a payload weighed, with a small arm that has a UR's names."""

from __future__ import annotations

import shutil
from pathlib import Path

import mujoco
import numpy as np
import pytest

from rsr.calibration import load_calibration, save_calibration, start_calibration
from rsr.cli import main
from rsr.scenarios import load_scenario
from rsr.sessions import read_session
from rsr.simulators import MujocoSimulator

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "ur_payload"
NAMES = ("shoulder_pan", "shoulder_lift", "elbow", "wrist_1", "wrist_2", "wrist_3")
SESSION = "data/ur_payload/session-001"
NAMED = ["--scenario", "ur/scenario.yaml"]
HIDDEN = {"payload": 1.8, "payload_y": 0.04, "servo_gain": 0.8, "delay": 0.012}
RUNS, ROWS = 3, 500
LOGS = [f"robot_data_{seed}.csv" for seed in range(RUNS)]


def arm_xml() -> str:
    """Six hinges, as a UR has them: axes z, y, y, y, z, y."""
    axes, lengths = ("0 0 1", *["0 1 0"] * 3, "0 0 1", "0 1 0"), (0.16, 0.42, 0.39, 0.13, 0.1, 0.1)
    links, close, last = "", "", 0.1
    for name, axis, length in zip(NAMES, axes, lengths, strict=True):
        links += f'<body name="{name}_link" pos="0 0 {last}"><joint name="{name}_joint" axis="{axis}"'
        links += f' armature="0.1" damping="1"/><geom type="capsule" fromto="0 0 0 0 0 {length}" size="0.04" mass="2"/>'
        close, last = close + "</body>", length
    drives = "".join(f'<position name="{name}" joint="{name}_joint" kp="2000" kv="200"/>' for name in NAMES)
    option = '<option timestep="0.002" integrator="implicitfast"/>'
    return f"<mujoco>{option}<worldbody>{links}{close}</worldbody><actuator>{drives}</actuator></mujoco>"


@pytest.fixture
def arm(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(EXAMPLE, "ur")
    Path("ur/robot").mkdir()
    Path("ur/robot/ur5e.xml").write_text(arm_xml())
    scenario = load_scenario("ur")
    for seed in range(RUNS):
        Path(f"robot_data_{seed}.csv").write_text(log(scenario, seed))
    return scenario


def log(scenario, seed: int) -> str:
    """A motion of all joints, as UR's recorder writes it."""
    rng, time_s = np.random.default_rng(seed), 0.008 * np.arange(ROWS)
    rates, phases = rng.uniform(0.5, 3.0, (2, 6))
    sent = np.array([0, -1.2, 1.4, -0.5, -1.5, 0]) + 0.6 * np.sin(rates * time_s[:, None] + phases)
    before = np.repeat(sent[:1], scenario.history_steps, axis=0)
    state = np.concatenate([sent[0], np.zeros(scenario.state_size - 6)])
    with MujocoSimulator(scenario, threads=1) as simulator:
        commands = np.concatenate([before, sent])[None]
        rows = simulator.rollout(state[None], commands, scenario.space.vector(HIDDEN))[0, :-1, :6]
    measured = rows + rng.normal(0.0, 0.0001, rows.shape)
    head = ["timestamp", *(f"{kind}_{joint}" for kind in ("target_q", "actual_q") for joint in range(6))]
    lines = [" ".join(f"{number:.8f}" for number in row) for row in np.column_stack([time_s, sent, measured])]
    return "\n".join([" ".join(head), *lines, ""])


def test_an_rtde_log_is_ingested_and_the_model_handed_over(arm):
    assert main(["ingest", *LOGS, *NAMED, "--map", "ur/mapping.yaml", "--simulated"]) == 0
    episode, *others = read_session(Path(SESSION)).episodes
    assert len(others) == RUNS - 1
    assert len(episode) == ROWS
    sag = episode["joint_position"] - episode["joint_setpoint"]
    assert 0.001 < np.abs(sag[:, 1]).max() < 0.2
    save_calibration(start_calibration(arm), Path("calibration"))
    assert main(["export", "--model", "tuned.xml", "--calibration", "calibration", *NAMED]) == 0
    assert mujoco.MjModel.from_xml_path("tuned.xml").body("payload").mass[0] == 1.0
    assert mujoco.MjModel.from_xml_path("tuned.urdf").njnt == 6


@pytest.mark.slow
def test_the_payload_is_weighed(arm):
    assert main(["ingest", *LOGS, *NAMED, "--map", "ur/mapping.yaml", "--simulated"]) == 0
    method = ["--method", "sysid", "--budget", "40"]
    assert main(["calibrate", *NAMED, "--sessions", SESSION, *method, "--out", "calibration"]) == 0
    found = load_calibration(Path("calibration")).estimates
    assert found["payload"].lower <= HIDDEN["payload"] <= found["payload"].upper
    assert found["payload"].value == pytest.approx(HIDDEN["payload"], rel=0.1)
