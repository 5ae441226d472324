"""Tuned models as MJCF: whatever a parameter can write survives being saved, and plain MuJoCo agrees to 1e-9."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pytest
import yaml

import rsr
from rsr.calibration import start_calibration
from rsr.common.errors import ScenarioError
from rsr.scenarios import Scenario
from rsr.scenarios.models.mjcf import rollout_difference, write_mjcf
from rsr.scenarios.parameters.fields import MODEL_FIELDS
from tests.api.two_joints import ARM

SCENE = """
<mujoco model="everything">
  <compiler angle="degree" inertiafromgeom="true"/>
  <option timestep="0.005" gravity="0 0 -9.81" cone="elliptic" density="1.2" viscosity="0.00002" wind="1 2 3"/>
  <default><joint damping="0.1" frictionloss="0.02" armature="0.003"/><default class="heavy"><geom density="2000"/>
  </default></default>
  <worldbody>
    <geom name="floor" type="plane" size="2 2 0.1"/>
    <camera name="eye" pos="1 2 3" euler="10 0 20"/>
    <frame pos="0 0 0.4" euler="10 20 30">
      <body name="box"><freejoint name="box"/>
        <geom name="box" class="heavy" type="box" size="0.05 0.06 0.07" pos="0.01 0.005 0.002" contype="0"/>
        <geom name="corner" type="sphere" size="0.01" pos="0.05 0.055 -0.062"/></body>
    </frame>
    <body name="arm" pos="1 0.5 1" euler="0 30 0"><joint name="hinge" axis="0 1 0" stiffness="0.4" springref="10"
      range="-80 70"/><site name="tip" pos="0.1 0.2 0.3"/>
      <geom name="rod" type="capsule" fromto="0 0 0 0.3 0.01 0.02" size="0.02"/></body>
  </worldbody>
  <tendon><fixed name="cord" stiffness="0.2" damping="0.03" frictionloss="0.01" range="-1 2" springlength="0.2">
    <joint joint="hinge" coef="1"/></fixed></tendon>
  <equality><joint name="lock" joint1="hinge" polycoef="0.1 0.5 0 0 0" active="false"/></equality>
  <contact><pair name="floor_corner" geom1="floor" geom2="corner" condim="6" friction="0.5 0.5 0.01 0.001 0.001"/>
  </contact>
  <actuator><position name="servo" joint="hinge" kp="3" dampratio="0.5" ctrlrange="-90 90" timeconst="0.1"
    forcerange="-5 5"/></actuator>
</mujoco>
"""
"""Inertia from geoms, degrees, frames and defaults: all that saving could lose."""
NAMES = {
    "pair": "floor_corner",
    "geom": "box",
    "body": "arm",
    "joint": "hinge",
    "option": "gravity",
    "actuator": "servo",
    "site": "tip",
    "camera": "eye",
    "tendon": "cord",
    "equality": "lock",
}


def scenario_of(mjcf: str | Path | mujoco.MjSpec, **tune) -> Scenario:
    spec = mujoco.MjSpec.from_string(mjcf) if isinstance(mjcf, str) else mjcf
    return rsr.Scenario.from_mjcf(spec, dt=0.01, measured={"q": rsr.joints("hinge", noise=0.01)}, tune=tune)


def fit_at(scenario: Scenario, values: np.ndarray, **structure) -> rsr.Fit:
    """A fit that found these parameters [P]."""
    start = start_calibration(scenario)
    pairs = zip(start.estimates.items(), values, strict=True)
    estimates = {name: replace(estimate, value=float(value)) for (name, estimate), value in pairs}
    return rsr.Fit(scenario, replace(start, estimates=estimates, structure=structure))


def drawn(scenario: Scenario, seed: int = 0) -> np.ndarray:
    """Parameters [P] somewhere between the bounds."""
    space = scenario.space
    low, high = (space.to_coordinates(bound) for bound in (space.lower, space.upper))
    return space.to_values(low + (high - low) * np.random.default_rng(seed).uniform(0.2, 0.8, len(space)))


def assert_saved(scenario: Scenario, values: np.ndarray, path: Path) -> mujoco.MjModel:
    """What is saved is the tuned model, to 1e-9, and not the nominal one; by plain MuJoCo."""
    fit_at(scenario, values).save_model(path)
    loaded = mujoco.MjModel.from_xml_path(str(path))
    assert rollout_difference(scenario.model(values), loaded) <= 1e-9
    return loaded


@pytest.mark.parametrize(("element", "field"), list(MODEL_FIELDS))
def test_every_field_that_a_parameter_writes_is_saved(element, field, tmp_path):
    name = "corner" if field == "corner_radius" else NAMES[element]
    adds, place = MODEL_FIELDS[element, field].adds, f"{element}.{field}"
    scenario = scenario_of(
        SCENE, it=rsr.absolute(place, name, lower=-1, upper=1, linear=True) if adds else rsr.scale(place, name)
    )
    value = np.array([0.07 if adds else 0.93])
    loaded = assert_saved(scenario, value, tmp_path / "tuned.xml")
    (binding,), tuned = scenario.bindings, scenario.model(value)
    if not adds:
        assert binding.read(loaded) == pytest.approx(0.93 * binding.read(scenario.base_model), rel=1e-12)
    for leaf in binding.changes(scenario.base_model, np.float64(value[0])):
        if not leaf.startswith("opt."):
            np.testing.assert_allclose(getattr(loaded, leaf), getattr(tuned, leaf), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(
    "name", ["push_cube", "cube_toss", "double_pendulum", "push_t", "two_cubes", "strike_triangle"]
)
def test_built_in_scenarios_are_saved(name, tmp_path):
    scenario = rsr.load_scenario(name)
    loaded = assert_saved(scenario, drawn(scenario), tmp_path / "tuned.xml")
    assert rollout_difference(scenario.base_model, loaded) > 1e-6
    assert loaded.opt.timestep == scenario.base_model.opt.timestep


def test_the_choices_of_a_structure_are_saved(tmp_path):
    scenario = scenario_of(SCENE, damping=rsr.scale("joint.damping"))
    chosen = {"cone": "pyramidal", "integrator": "implicitfast", "tolerance": 1e-10, "condim": 3}
    fit_at(scenario, np.array([1.5]), **chosen).save_model(tmp_path / "tuned.xml")
    loaded = mujoco.MjModel.from_xml_path(str(tmp_path / "tuned.xml"))
    assert loaded.opt.cone == mujoco.mjtCone.mjCONE_PYRAMIDAL
    assert loaded.opt.integrator == mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    assert loaded.opt.tolerance == 1e-10
    assert set(loaded.pair_dim) == {3}


def test_what_an_mjcf_cannot_say_goes_beside_it(tmp_path):
    scenario = scenario_of(
        SCENE,
        damping=rsr.scale("joint.damping"),
        latency=rsr.delay(upper=0.05),
        late=rsr.sensor_delay("q", upper=0.04),
    )
    saved = fit_at(scenario, np.array([1.2, 0.02, 0.01])).save_model(tmp_path / "tuned.xml")
    assert saved.left_out == {"latency": 0.02, "late": 0.01}
    assert saved.beside == tmp_path / "tuned.yaml"
    said = yaml.safe_load(saved.beside.read_text())
    assert said["model"] == "tuned.xml"
    assert said["not_in_the_model"]["latency"]["value"] == 0.02
    assert "q" in said["not_in_the_model"]["late"]["acts"]
    assert str(saved) == f"{saved.path} (without latency, late, which an MJCF cannot say: {saved.beside})"


TETRAHEDRON = "v 0 0 0\nv {size} 0 0\nv 0 {size} 0\nv 0 0 {size}\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
WITH_MESHES = """
<mujoco model="meshes">
  <compiler meshdir="meshes"/>
  <asset><mesh name="one" file="a/part.obj"/><mesh name="other" file="b/part.obj"/></asset>
  <include file="rest.xml"/>
</mujoco>
"""
REST = """
<mujocoinclude>
  <worldbody><body name="arm"><joint name="hinge" axis="0 1 0" damping="0.1"/>
    <geom type="mesh" mesh="one"/><geom type="mesh" mesh="other" pos="0.3 0 0"/></body></worldbody>
</mujocoinclude>
"""


def with_meshes(folder: Path) -> Path:
    for part, size in (("a", 0.1), ("b", 0.2)):
        (folder / "meshes" / part).mkdir(parents=True)
        (folder / "meshes" / part / "part.obj").write_text(TETRAHEDRON.format(size=size))
    (folder / "rest.xml").write_text(REST)
    (folder / "scene.xml").write_text(WITH_MESHES)
    return folder / "scene.xml"


def test_meshes_are_copied_beside_the_model_even_where_two_have_one_name(tmp_path):
    scene = with_meshes(tmp_path / "from")
    scenario = scenario_of(mujoco.MjSpec.from_file(str(scene)), mass=rsr.scale("body.mass"))
    path = tmp_path / "to" / "tuned.xml"
    assert_saved(scenario, np.array([1.5]), path)
    assert sorted(file.name for file in (tmp_path / "to" / "tuned_files").iterdir()) == ["_part.obj", "part.obj"]
    assert [file.name for file in (tmp_path / "to").iterdir() if file.name.startswith(".")] == []


def test_meshes_of_attached_models_are_found(tmp_path):
    with_meshes(tmp_path / "child")
    (tmp_path / "parent.xml").write_text(
        '<mujoco><asset><model name="child" file="child/scene.xml"/></asset><worldbody><frame pos="0 0 1">'
        '<attach model="child" prefix="c_"/></frame></worldbody></mujoco>'
    )
    scenario = rsr.Scenario.from_mjcf(
        tmp_path / "parent.xml",
        dt=0.01,
        measured={"q": rsr.joints("c_hinge", noise=0.01)},
        tune={"damping": rsr.scale("joint.damping")},
    )
    assert_saved(scenario, np.array([1.5]), tmp_path / "to" / "tuned.xml")


def test_meshes_in_memory_are_written_beside_the_model(tmp_path):
    text = WITH_MESHES.replace('<include file="rest.xml"/>', REST.replace("mujocoinclude", "_").strip()[3:-4])
    assets = {f"meshes/{part}/part.obj": TETRAHEDRON.format(size=0.1).encode() for part in "ab"}
    scenario = scenario_of(mujoco.MjSpec.from_string(text, assets=assets), damping=rsr.scale("joint.damping"))
    assert_saved(scenario, np.array([1.5]), tmp_path / "tuned.xml")
    assert [file.name for file in (tmp_path / "tuned_files").iterdir()] == ["part.obj"]


def test_a_model_that_the_file_does_not_simulate_is_not_written(tmp_path):
    other = mujoco.MjModel.from_xml_string(SCENE)
    other.geom_type[other.geom("box").id] = mujoco.mjtGeom.mjGEOM_ELLIPSOID  # which nothing copies back
    with pytest.raises(ScenarioError, match=r"tuned\.xml: got an MJCF whose rollout differs by .*geom_type"):
        write_mjcf(mujoco.MjSpec.from_string(SCENE), other, tmp_path / "tuned.xml")
    assert list(tmp_path.iterdir()) == []


def test_a_change_that_an_mjcf_cannot_say_is_named(tmp_path):
    other = mujoco.MjModel.from_xml_string(SCENE)
    other.body_quat[0] = (0, 1, 0, 0)
    with pytest.raises(ScenarioError, match="the pose of the world body was changed.*Nothing was written"):
        write_mjcf(mujoco.MjSpec.from_string(SCENE), other, tmp_path / "tuned.xml")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_missing_is_named(tmp_path):
    scene = with_meshes(tmp_path / "from")
    scenario = scenario_of(mujoco.MjSpec.from_file(str(scene)), mass=rsr.scale("body.mass"))
    (tmp_path / "from" / "meshes" / "a" / "part.obj").unlink()
    with pytest.raises((ScenarioError, ValueError), match=r"part\.obj"):
        fit_at(scenario, np.array([1.5])).save_model(tmp_path / "tuned.xml")


def test_saving_again_replaces_the_model(tmp_path):
    scenario = scenario_of(SCENE, damping=rsr.scale("joint.damping"))
    for factor in (1.5, 2.0):
        loaded = assert_saved(scenario, np.array([factor]), tmp_path / "tuned.xml")
    assert loaded.joint("hinge").damping[0] == pytest.approx(0.2)


def test_the_mjcf_stays_readable(tmp_path):
    spec = mujoco.MjSpec.from_string(ARM)
    scenario = rsr.Scenario.from_mjcf(
        spec,
        dt=0.01,
        measured={"q": rsr.joints("shoulder", "elbow", noise=0.01)},
        command={"u": rsr.actuators("shoulder", "elbow")},
        tune={"damping": rsr.scale("joint.damping", "elbow")},
    )
    fit_at(scenario, np.array([1.5])).save_model(tmp_path / "tuned.xml")
    text = (tmp_path / "tuned.xml").read_text()
    assert '<joint name="elbow" damping="0.6000000000000001"/>' in text
    assert '<joint name="shoulder"/>' in text
    assert 'mass="0.8"' in text
