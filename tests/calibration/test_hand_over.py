"""What a calibration hands over: a model that plain MuJoCo loads, a randomisation file, and what they prove."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pytest
import yaml
from shared_data import shared_data

from rsr.calibration import save_calibration, start_calibration
from rsr.calibration.hand_over import SCHEMA, hand_over
from rsr.cli import main
from rsr.errors import CalibrationError
from rsr.scenarios import built_in_scenarios, load_scenario

SECONDS = 2.0
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "so100_reach"


@pytest.mark.parametrize("name", built_in_scenarios())
def test_the_model_of_every_built_in_scenario_reloads_to_the_same_rollout(tmp_path, name):
    scenario, calibration = load_scenario(name), start_calibration(load_scenario(name))
    hand_over(scenario, calibration, tmp_path / "tuned.xml", draws=3)
    assert_same_rollout(scenario.model(calibration.vector()), tmp_path / "tuned.xml")


def test_a_robot_of_menagerie_is_exported_as_it_was_tuned(tmp_path):
    """By the command, from the makers' own files, with what a scenario adds to them and a turned site."""
    shutil.copytree(EXAMPLE, tmp_path / "arm")
    shutil.copytree(shared_data("../robots/trs_so_arm100"), tmp_path / "arm" / "robot")
    path = tmp_path / "arm" / "scenario.yaml"
    turn = "  tool_turn: {nominal: 0, lower: -0.5, upper: 0.5, unit: rad, prior_std: 1, scale: linear, unit_step: 0.1, "
    turn += "sets: [{site: tool, field: turn_y}]}\n"
    path.write_text(path.read_text().replace("parameters:\n", f"parameters:\n{turn}", 1))
    scenario = load_scenario(path)
    start = start_calibration(scenario)
    far = {name: replace(each, value=each.value * 1.3 or 0.2) for name, each in start.estimates.items()}
    far = {name: replace(each, value=min(each.value, scenario.space[name].upper)) for name, each in far.items()}
    tuned = replace(start, estimates=far)
    save_calibration(tuned, tmp_path / "calibration")
    out = tmp_path / "handed" / "tuned.xml"
    command = ["export", "--calibration", str(tmp_path / "calibration"), "--model", str(out), "--scenario", str(path)]
    assert main(command) == 0
    model = scenario.model(tuned.vector())
    assert_same_rollout(model, out)
    reloaded = mujoco.MjModel.from_xml_path(str(out))
    np.testing.assert_allclose(reloaded.site("tool").quat, model.site("tool").quat, atol=1e-12)
    np.testing.assert_allclose(reloaded.body("payload").mass, 0.065)
    assert abs(scenario.base_model.site("tool").quat - reloaded.site("tool").quat).max() > 0.05


def assert_same_rollout(model: mujoco.MjModel, path) -> None:
    reloaded = mujoco.MjModel.from_xml_path(str(path))
    steps, rng = round(SECONDS / model.opt.timestep), np.random.default_rng(0)
    commands = np.where(model.actuator_ctrllimited, model.actuator_ctrlrange.T, [[-0.1], [0.1]])
    controls = rng.uniform(*commands, (steps, model.nu))
    ends = []
    for each in (model, reloaded):
        data = mujoco.MjData(each)
        for control in controls:
            data.ctrl[:] = control
            mujoco.mj_step(each, data)
        ends.append(np.concatenate([data.qpos, data.qvel]))
    np.testing.assert_allclose(ends[1], ends[0], atol=1e-9)


def test_the_randomisation_file_is_read_by_plain_python(tmp_path):
    scenario = load_scenario("double_pendulum")
    hand_over(scenario, start_calibration(scenario), tmp_path / "tuned.xml", draws=40)
    found = json.loads((tmp_path / "tuned_randomisation.json").read_text())
    assert found["schema"] == SCHEMA
    assert found["order"] == list(scenario.space.names)
    draws = np.array(found["draws"])
    assert draws.shape == (40, len(scenario.space))
    assert np.all((draws >= scenario.space.lower) & (draws <= scenario.space.upper))
    (written,) = found["parameters"]["upper_mass"]["writes"][:1]
    assert written["element"] == "body"
    # Another trainer needs nothing but these names to write a draw.
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "tuned.xml"))
    assert all(model.body(name).id > 0 for name in written["names"])
    again = tmp_path / "again"
    again.mkdir()
    hand_over(scenario, start_calibration(scenario), again / "tuned.xml", draws=40)
    assert (again / "tuned_randomisation.json").read_bytes() == (tmp_path / "tuned_randomisation.json").read_bytes()


def test_a_model_with_effects_says_what_the_file_lacks(tmp_path):
    from pathlib import Path

    scenario = load_scenario(Path(__file__).resolve().parents[2] / "examples" / "servo")
    saved = hand_over(scenario, start_calibration(scenario), tmp_path / "tuned.xml", draws=3)
    assert "torque_constant" in saved.left_out
    assert "armature" not in saved.left_out
    beside = yaml.safe_load((tmp_path / "tuned.yaml").read_text())
    assert beside["not_in_the_model"]["resistance"]["acts"] == "resistance of effect servo"
    assert beside["effects"]["gearbox"]["joints"] == "shaft"
    words = (tmp_path / "tuned.md").read_text()
    assert "## What it does not prove" in words
    assert "Effects that it lacks: servo, gearbox" in words
    # Plain MuJoCo opens the file; the actuator is the position servo of the MJCF.
    assert mujoco.MjModel.from_xml_path(str(tmp_path / "tuned.xml")).actuator("servo").biasprm[1] < 0


def test_a_calibration_of_another_scenario_is_refused(tmp_path):
    with pytest.raises(CalibrationError, match="expected one of double_pendulum"):
        hand_over(load_scenario("double_pendulum"), start_calibration(load_scenario("strike")), tmp_path / "tuned.xml")
    assert not list(tmp_path.iterdir())
