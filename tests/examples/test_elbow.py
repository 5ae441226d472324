"""The example of two hinged bars: its tosses are prepared, ingested and simulated as its README says."""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from rsr.scenarios import Scenario, load_scenario
from rsr.scenarios.channels.recorded import target_of
from rsr.sessions import Session, read_session
from rsr.sessions.ingest.mapping import read_lines
from rsr.sessions.ingest.session import ingest
from rsr.simulators import MujocoSimulator, evaluate_recording
from tests.shared_data import shared_data

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "elbow"


@cache
def elbow() -> Scenario:
    return load_scenario(str(FOLDER / "scenario.yaml"))


@pytest.fixture(scope="module")
def tosses(tmp_path_factory) -> tuple[Path, Session]:
    """The first tosses, as recorded and as a session."""
    table = pq.read_table(shared_data("elbow_tosses.parquet"))
    few = np.unique(table["toss_id"].to_numpy())[:6]
    folder = tmp_path_factory.mktemp("elbow")
    source, prepared = folder / "few.parquet", folder / "tosses.parquet"
    pq.write_table(table.filter(pc.less_equal(table["toss_id"], int(few[-1]))), source)
    subprocess.run([sys.executable, str(FOLDER / "prepare.py"), str(source), str(prepared)], check=True)
    given = read_lines(FOLDER / "mapping.yaml")
    return source, read_session(ingest([prepared], target_of(elbow()), folder / "data", given=given).folder)


def test_it_has_a_free_body_a_joint_and_seventeen_parameters():
    assert len(elbow().space) == 17
    assert [observed.kind for observed in elbow().observed] == ["linear", "quaternion", "angle"]


def test_what_the_mjcf_says_is_what_the_scenario_believes():
    scenario = elbow()
    tuned, plain = scenario.model(scenario.space.nominal), scenario.base_model
    for field in ("body_mass", "body_inertia", "dof_damping", "dof_frictionloss", "pair_friction", "pair_solref"):
        assert getattr(tuned, field) == pytest.approx(getattr(plain, field), rel=1e-9), field
    assert tuned.body_ipos == pytest.approx(plain.body_ipos, abs=2e-6)  # a micrometre off the origin, see scene.xml


def test_in_flight_momentum_is_kept_and_it_comes_to_rest_on_the_board():
    scenario = elbow()
    state = np.zeros((1, scenario.state_size))
    state[0, [2, 3]] = 0.3, 1.0
    state[0, scenario.base_model.nq + np.array([0, 4, 6])] = 0.4, 3.0, -5.0
    with MujocoSimulator(scenario) as simulator:
        path = simulator.rollout(state, np.zeros((1, 600, 0)), scenario.space.nominal)[0]
    assert np.isfinite(path).all()
    assert np.abs(path[-1, scenario.base_model.nq :]).max() < 0.02
    assert 0.02 < path[-1, 2] < 0.08  # flat on a side, or leaning on the other bar


def test_ingested_angles_do_not_jump_and_nothing_else_changes(tosses):
    source, session = tosses
    recorded = pq.read_table(source)
    raw = recorded["joint"].to_numpy()[: len(session.episodes[0])]
    angles = [episode["elbow_angle"][:, 0] for episode in session.episodes]
    assert max(np.abs(np.diff(angle)).max() for angle in angles) < 1.0
    assert np.abs(np.diff(recorded["joint"].to_numpy().reshape(len(angles), -1), axis=1)).max() > np.pi
    assert np.exp(1j * angles[0]) == pytest.approx(np.exp(1j * raw), abs=1e-3)
    heights = recorded["z"].to_numpy()[: len(session.episodes[0])]
    assert session.episodes[0]["link1_position"][:, 2] == pytest.approx(heights, abs=1e-4)


def test_simulated_tosses_are_judged_by_all_three_figures(tosses):
    whole = evaluate_recording(elbow(), tosses[1], {})
    windows = evaluate_recording(elbow(), tosses[1], {}, "windows")
    for name in ("position_error_percent", "rotation_error_deg", "joint_error_deg"):
        assert 0 < windows[name] < whole[name] < 180
    # A board without friction is not the one they fell on.
    slippery = evaluate_recording(elbow(), tosses[1], {"friction": 0.03}, "windows")
    assert slippery["position_error_percent"] != pytest.approx(windows["position_error_percent"], rel=0.01)


@pytest.mark.slow
def test_benchmark_writes_one_flat_object_and_goes_on_from_what_it_kept(tmp_path):
    shared_data("elbow_tosses.parquet")
    file, kept = tmp_path / "strangers.json", tmp_path / "kept"
    command = [sys.executable, "benchmarks/strangers.py", "--quick", "--parts", "elbow", "--json", str(file)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    written = []
    for _ in range(2):
        done = subprocess.run(
            [*command, "--keep", str(kept)], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        written.append(json.loads(file.read_text()))
    assert written[0] == written[1]
    assert len(list((kept / "quick").iterdir())) == 4  # two methods, 30 and 3 tosses
    for key in ("elbow_30_position_over_plain", "elbow_3_over_nominal", "elbow_3_over_plain"):
        assert written[0][f"{key}_low"] <= written[0][key] <= written[0][f"{key}_high"]
    assert all(isinstance(value, (int, float)) for value in written[0].values())


def test_benchmark_says_what_is_missing_and_refuses_unknown_parts(tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "RSR_SHARED_DATA": str(tmp_path)}
    command = [sys.executable, "benchmarks/strangers.py", "--quick", "--parts"]
    missing = subprocess.run(
        [*command, "elbow"], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert missing.returncode == 0
    assert "elbow left out" in missing.stderr
    unknown = subprocess.run([*command, "elbo"], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert unknown.returncode != 0
    assert "expected some of elbow, cube, pendulum" in unknown.stderr
