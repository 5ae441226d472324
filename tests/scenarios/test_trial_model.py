"""Models of trial points have no pictures, and move exactly as those that have them."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pytest

from rsr.scenarios import load_scenario
from rsr.scenarios.models.trial_model import without_pictures
from rsr.scenarios.scenario import Scenario
from rsr.simulators import MujocoSimulator

SCENE = """
<mujoco>
  <asset>
    <mesh name="hull" file="ball.stl"/> <mesh name="looks" file="ball.stl" scale="1.1 1.1 1.1"/>
    <texture name="sky" type="2d" builtin="gradient" rgb1="1 1 1" rgb2="0 0 0" width="256" height="256"/>
    <material name="grey" texture="sky"/>
  </asset>
  <worldbody>
    <geom name="floor" type="plane" size="2 2 .1" material="grey"/>
    <body name="ball" pos="0 0 1">
      <freejoint name="ball"/>
      <geom name="shown" type="mesh" mesh="looks" contype="0" conaffinity="0" material="grey" {mass}/>
      <geom name="felt" type="mesh" mesh="hull"/>
      <body name="arm" pos=".2 0 0">
        <joint name="arm" axis="0 1 0" damping=".1"/>
        <geom type="mesh" mesh="looks" contype="0" conaffinity="0" material="grey"/>
        <geom type="capsule" size=".02" fromto="0 0 0 .2 0 0"/>
      </body>
    </body>
  </worldbody>
</mujoco>
"""


def ball(path: Path, around: int = 48) -> None:
    """A round mesh of a few thousand triangles, as STL."""
    angle = np.linspace(0, 2 * np.pi, around + 1)
    lift = np.linspace(-np.pi / 2, np.pi / 2, around + 1)
    grid = 0.1 * np.stack(
        [
            np.outer(np.cos(lift), np.cos(angle)),
            np.outer(np.cos(lift), np.sin(angle)),
            np.sin(lift)[:, None] + 0 * angle,
        ],
        axis=-1,
    )
    corners = [
        (grid[i, j], grid[i, j + 1], grid[i + 1, j]) if first else (grid[i, j + 1], grid[i + 1, j + 1], grid[i + 1, j])
        for i in range(around)
        for j in range(around)
        for first in (True, False)
        if not (i == 0 and first) and not (i == around - 1 and not first)
    ]
    faces = b"".join(struct.pack("<12fH", 0, 0, 0, *np.concatenate(each), 0) for each in corners)
    path.write_bytes(bytes(80) + struct.pack("<I", len(corners)) + faces)


@pytest.fixture(scope="module", params=["", 'mass="0.3"'], ids=["by density", "by mass"])
def scenario(request, tmp_path_factory) -> Scenario:
    folder = tmp_path_factory.mktemp("ball")
    ball(folder / "ball.stl")
    (folder / "scene.xml").write_text(SCENE.replace("{mass}", request.param))
    (folder / "scenario.yaml").write_text(
        "name: ball\ntitle: A ball with an arm\nmjcf: scene.xml\ncontrol_dt_s: 0.02\nepisode_steps: 50\n"
        "gap_channel: place\nchannels:\n  place: {columns: [x, y, z], unit: m, frame: world, noise: 0.001, "
        "reads: {free_joint_position: ball}}\n  angle: {columns: [arm], unit: rad, frame: joint, noise: 0.001, "
        "reads: {joints: [arm]}}\nparameters:\n  damping: {nominal: 0.1, lower: 0.01, upper: 1.0, unit: N m s/rad, "
        "prior_std: 0.5, sets: [{joint: arm, field: damping}]}\n  mass: {nominal: 0.5, lower: 0.1, upper: 9.0, "
        "unit: kg, prior_std: 0.5, sets: [{body: ball, field: mass}]}\n"
    )
    return load_scenario(str(folder / "scenario.yaml"))


def size(model: mujoco.MjModel) -> int:
    return model.nmeshvert + model.ntexdata + model.nmat


def test_pictures_are_left_out_and_what_touches_stays(scenario):
    values = scenario.space.nominal
    whole, trial = scenario.model(values, pictures=True), scenario.model(values)
    assert size(trial) < 0.6 * size(whole)
    assert (trial.nmesh, trial.ntexdata) == (1, 0)
    assert [trial.geom(i).name for i in range(trial.ngeom)] == [whole.geom(i).name for i in range(whole.ngeom)]
    assert trial.geom("felt").type == mujoco.mjtGeom.mjGEOM_MESH


def test_both_move_exactly_alike(scenario):
    values = scenario.space.nominal * 1.3
    start = np.zeros(scenario.state_size)
    start[[2, 3]], start[8 + 3] = (0.3, 1.0), 5.0
    found = []
    for model in (scenario.model(values, pictures=True), scenario.model(values)):
        data = mujoco.MjData(model)
        data.qpos[:], data.qvel[:] = start[:8], start[8:]
        mujoco.mj_step(model, data, 800)
        found.append(np.concatenate([data.qpos, data.qvel]))
    np.testing.assert_array_equal(*found)
    assert 0.05 < found[0][2] < 0.2, "it has met the floor"


def test_batches_run_on_data_made_for_the_whole_model(scenario):
    start = np.zeros((8, scenario.state_size))
    start[:, 2], start[:, 3] = 0.3, 1.0
    params = np.linspace(0.5, 1.5, 8)[:, None] * scenario.space.nominal
    with MujocoSimulator(scenario) as simulator:
        one = simulator.rollout(start, np.zeros((8, 20, 0)), params)
    assert np.isfinite(one).all()


def test_options_that_were_chosen_since_are_kept(scenario):
    model = mujoco.MjModel.from_xml_path(str(scenario.mjcf))
    model.opt.cone, model.opt.timestep = mujoco.mjtCone.mjCONE_ELLIPTIC, 0.004
    other = replace(scenario, base_model=model).model(scenario.space.nominal)
    assert (other.opt.cone, other.opt.timestep) == (mujoco.mjtCone.mjCONE_ELLIPTIC, 0.004)
    assert other.ntexdata == 0


def test_a_scene_without_pictures_is_its_own_trial_model():
    plain = load_scenario("cube_toss")
    assert without_pictures(plain.base_model, plain.spec) is plain.base_model
