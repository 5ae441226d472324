"""What a calibration hands over: a model that plain MuJoCo loads, a randomisation file, and what they prove."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pytest
import yaml
from shared_data import shared_data

from rsr.calibration import save_calibration, start_calibration
from rsr.calibration.model_export import SCHEMA, hand_over
from rsr.cli import main
from rsr.common.errors import CalibrationError
from rsr.scenarios import built_in_scenarios, load_scenario
from rsr.scenarios.models.urdf_writing import write_urdf

SECONDS = 2.0
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "so100_reach"


@pytest.mark.parametrize("name", built_in_scenarios())
def test_the_model_of_every_built_in_scenario_reloads_to_the_same_rollout(tmp_path, name):
    scenario, calibration = load_scenario(name), start_calibration(load_scenario(name))
    hand_over(scenario, calibration, tmp_path / "tuned.xml", draws=3)
    model = scenario.model(calibration.vector())
    assert_same_rollout(model, tmp_path / "tuned.xml")
    assert_same_masses_and_gravity(model, tmp_path / "tuned.urdf")


WITHOUT_US = """
import sys
sys.modules["rsr"] = None  # whoever imports it fails
import mujoco
for path in sys.argv[1:]:
    model = mujoco.MjModel.from_xml_path(path)
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data, 100)
    print(model.njnt, model.nmesh > 0, bool(abs(data.qpos).max() < 100))
"""


def assert_same_masses_and_gravity(model: mujoco.MjModel, path) -> None:
    """Mass matrix, and gravity, centrifugal and Coriolis forces, at random poses and speeds, joint by joint by name."""
    read, rng = mujoco.MjModel.from_xml_path(str(path)), np.random.default_rng(0)
    read.opt.gravity[:] = model.opt.gravity
    for _ in range(3):
        found = []
        numbers = rng.normal(size=(2, model.njnt, 7))
        for each in (model, read):
            data, dofs = mujoco.MjData(each), []
            for joint in range(model.njnt):
                own = each.joint(model.joint(joint).name or f"joint_{joint}")
                free = own.type[0] == mujoco.mjtJoint.mjJNT_FREE
                pose, speed = numbers[0, joint].copy(), numbers[1, joint]
                pose[3:] /= np.linalg.norm(pose[3:])
                place, first = own.qposadr[0], own.dofadr[0]
                data.qpos[place : place + (7 if free else 1)] = pose if free else pose[0] + each.qpos0[place]
                dofs += range(first, first + (6 if free else 1))
                data.qvel[dofs[-6 if free else -1] : dofs[-1] + 1] = speed[: 6 if free else 1]
            mujoco.mj_forward(each, data)
            masses = np.zeros((each.nv, each.nv))
            mujoco.mj_fullM(each, data, masses)
            found.append((masses[np.ix_(dofs, dofs)] - np.diag(each.dof_armature[dofs]), data.qfrc_bias[dofs]))
        for one, other in zip(*found, strict=True):
            np.testing.assert_allclose(other, one, rtol=1e-9, atol=1e-9)


def test_ball_joints_have_no_urdf(tmp_path):
    model = mujoco.MjModel.from_xml_string(
        '<mujoco><worldbody><body><joint type="ball"/><geom size="0.1"/></body></worldbody></mujoco>'
    )
    assert "ball joints" in write_urdf(model, tmp_path / "a.urdf", "a")[-1]
    assert not list(tmp_path.iterdir())


def test_several_joints_of_a_body_and_turned_frames_come_back_from_a_urdf(tmp_path):
    model = mujoco.MjModel.from_xml_string("""<mujoco><worldbody><body pos="0.1 0.2 0.3" euler="40 90 -20">
      <joint name="a" axis="1 2 3" pos="0.1 0 0" range="-20 50" ref="10"/><joint name="b" type="slide" axis="0 1 0"/>
      <joint name="c" axis="0 0 1" pos="0 0.2 0.1"/>
      <geom type="capsule" size="0.02 0.1" pos="0.1 0 0.3" euler="10 20 30"/>
      <body pos="0 0 0.4" euler="0 -90 5"><geom type="box" size="0.1 0.2 0.05"/><site name="tip" pos="0.2 0 0"/></body>
      </body></worldbody></mujoco>""")
    lost = write_urdf(model, tmp_path / "a.urdf", "a")
    assert lost == ("reference angles (a joint is 0 there in the URDF) (1)",)
    assert_same_masses_and_gravity(model, tmp_path / "a.urdf")
    read = mujoco.MjModel.from_xml_path(str(tmp_path / "a.urdf"))
    np.testing.assert_allclose(read.joint("a").range, np.deg2rad([-30, 40]))


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
    assert_same_masses_and_gravity(model, out.with_suffix(".urdf"))
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_US, str(out), str(out.with_suffix(".urdf"))],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.stdout.splitlines() == ["6 True True"] * 2, done.stderr
    assert "It cannot say: actuators (6)" in out.with_suffix(".md").read_text()
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
