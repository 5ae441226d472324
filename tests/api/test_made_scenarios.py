"""Scenarios made in Python: the YAML that they are written to loads back equal, and mistakes are named."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import mujoco
import pytest

import rsr
from rsr.common.errors import ScenarioError
from rsr.scenarios.models.mjcf import rollout_difference
from tests.api.two_joints import ARM

FREE = """
<mujoco model="free">
  <option timestep="0.005" density="1.2" viscosity="0.00002" wind="1 2 3"/>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 0.1"/>
    <body name="cube" pos="0 0 0.5"><freejoint name="cube"/><geom name="cube" type="box" size="0.05 0.05 0.05"/></body>
    <body name="cart"><joint name="rail" type="slide"/><joint name="pole" axis="0 1 0"/>
      <geom size="0.05" pos="0 0 0.3"/></body>
  </worldbody>
  <contact><pair name="floor_cube" geom1="floor" geom2="cube"/></contact>
  <actuator><motor name="push" joint="rail"/></actuator>
</mujoco>
"""


def made(mjcf, **changed):
    given = {
        "dt": 0.01,
        "measured": {"q": rsr.joints("shoulder", "elbow", noise=0.002)},
        "command": {"u": rsr.actuators("shoulder", "elbow")},
        "tune": {"damping": rsr.scale("joint.damping")},
    }
    return rsr.Scenario.from_mjcf(mjcf, **{**given, **changed})


def arm(**changed):
    return made(mujoco.MjSpec.from_string(ARM), **changed)


def free(**changed):
    given = {"measured": {"at": rsr.free_joint_position("cube", noise=0.001)}, "command": None}
    given["tune"] = {"friction": rsr.absolute("pair.friction", "floor_cube")}
    return made(mujoco.MjSpec.from_string(FREE), **{**given, **changed})


def assert_equal(one, other):
    for field in fields(one):
        if field.name not in ("mjcf", "base_model", "source", "file"):
            assert getattr(one, field.name) == getattr(other, field.name), field.name
    assert rollout_difference(one.base_model, other.base_model) <= 1e-9


def everything():
    """A scenario that uses whatever the helpers can say."""
    return arm(
        name="everything",
        title="All that Python can say",
        measured={
            "camera": rsr.joints("elbow", noise=0.01),
            "q": rsr.joints("shoulder", "elbow", noise=0.002, bias_std=0.01),
            "dq": rsr.joint_velocities("shoulder", "elbow", initial_states=True),
        },
        tune={
            "damping": rsr.scale("joint.damping", lower=0.5, upper=3, prior=0.2),
            "armature": rsr.absolute("joint.armature", "elbow", nominal=0.01),
            "mass": rsr.absolute("body.mass", "lower", lower=0.5, upper=1.2),
            "kp": rsr.scale("actuator.kp", "elbow"),
            "latency": rsr.delay(upper=0.05),
            "late": rsr.sensor_delay("camera", lower=-0.02, upper=0.05),
        },
        gap_channel="q",
        window_s=0.4,
        gap_horizon_s=0.8,
        structure={"integrator": ("implicitfast", "RK4"), "tolerance": [1e-8, 1e-10]},
    )


def test_a_made_scenario_is_saved_and_loads_back_equal(tmp_path):
    original = everything()
    assert_equal(original, rsr.load_scenario(original.save(tmp_path / "folder")))
    assert_equal(original, rsr.load_scenario(tmp_path / "folder"))


def test_free_bodies_are_saved_and_load_back_equal(tmp_path):
    original = free(
        measured={
            "at": rsr.free_joint_position("cube", noise=0.001),
            "turned": rsr.free_joint_quaternion("cube", noise=0.01),
        }
    )
    assert original.channels[1].columns == ("qw", "qx", "qy", "qz")
    assert_equal(original, rsr.load_scenario(original.save(tmp_path)))


@pytest.mark.parametrize("name", [*rsr.built_in_scenarios(), "examples/own_scenario"])
def test_scenarios_of_yaml_files_are_saved_and_load_back_equal(name, tmp_path):
    root = Path(__file__).resolve().parents[2]
    original = rsr.load_scenario(name if "/" not in name else root / name)
    assert_equal(original, rsr.load_scenario(original.save(tmp_path)))


def test_a_folder_saved_anew_is_read_anew(tmp_path):
    arm().save(tmp_path)
    assert rsr.load_scenario(tmp_path).window_s is None
    arm(window_s=0.3).save(tmp_path)
    assert rsr.load_scenario(tmp_path).window_s == 0.3


def test_a_spec_that_is_changed_later_does_not_change_the_scenario():
    spec = mujoco.MjSpec.from_string(ARM)
    scenario = made(spec)
    spec.joint("elbow").damping[0] = 9.0
    assert scenario.spec().compile().joint("elbow").damping[0] == pytest.approx(0.4)


def test_defaults_of_the_helpers():
    scenario = arm(tune={"kp": rsr.absolute("actuator.kp"), "factor": rsr.scale("joint.damping")})
    gain, factor = scenario.space
    assert (gain.nominal, gain.lower, gain.upper, gain.unit) == (20.0, 4.0, 100.0, "N m/rad")
    assert (factor.nominal, factor.lower, factor.upper, factor.prior_std, factor.unit) == (1.0, 0.2, 5.0, 0.5, "1")
    assert [channel.unit for channel in scenario.channels] == ["rad", "rad"]


def test_a_linear_prior_is_in_the_values_unit():
    late = arm(tune={"late": rsr.delay(upper=0.08, prior=0.01)})
    assert late.history_steps == 8
    parameter = late.space["late"]
    assert float(parameter.to_value(parameter.to_coordinate(0.02) + parameter.prior_std)) == pytest.approx(0.03)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (
            {"measured": {"q": rsr.joints("shoulder", "wrist", noise=1)}},
            "joint 'wrist'; expected one of shoulder, elbow",
        ),
        ({"measured": {}}, "gap_channel: got channel ''"),
        ({"measured": {"q": "joints"}}, "q: 'joints'; expected what rsr.joints, .* makes"),
        ({"command": {"u": rsr.actuators("elbow", "shoulder")}}, "in its order: shoulder, elbow"),
        ({"command": {"u": rsr.actuators("shoulder")}}, "expected all of the MJCF"),
        ({"command": {name: rsr.actuators("shoulder", "elbow") for name in "uv"}}, "commands u, v; expected one"),
        ({"command": {"q": rsr.actuators("shoulder", "elbow")}}, "'q' twice"),
        ({"tune": {}}, "nothing to tune"),
        ({"tune": {"damping": 1.0}}, "damping: 1.0; expected what rsr.scale"),
        ({"tune": {"d": rsr.scale("joint.dampin")}}, "'dampin' of 'joint'; expected one of damping, armature"),
        ({"tune": {"d": rsr.scale("joint.damping", "wrist")}}, "joint 'wrist'; expected one of shoulder, elbow"),
        ({"tune": {"d": rsr.scale("joint.armature")}}, "armature of 0 at every joint.*absolute"),
        ({"tune": {"d": rsr.scale("joint.armature", "elbow")}}, "armature of 0 at elbow"),
        ({"tune": {"m": rsr.absolute("body.mass")}}, "different values in the MJCF: upper 1.5, lower 0.8"),
        ({"tune": {"a": rsr.absolute("joint.armature", "elbow")}}, "nominal value of 0 without bounds"),
        ({"tune": {"d": rsr.scale("joint.damping", lower=-1)}}, "lower -1; expected a bound above 0"),
        ({"tune": {"d": rsr.scale("joint.damping", lower=2)}}, r"nominal 1.0 outside \[2.0, 5.0\]"),
        ({"tune": {"s": rsr.sensor_delay("camera", upper=0.1)}}, "channel 'camera'; expected one of q"),
        ({"dt": 0.007}, "control_dt_s 0.007 with a time step of 0.005"),
        ({"dt": 0.0}, "dt 0.0"),
        ({"gap_channel": "x"}, "channel 'x'; expected one of q"),
        ({"measured": {"q": rsr.joints(noise=0.1)}}, "no joints"),
    ],
)
def test_a_mistake_is_named(changed, words):
    with pytest.raises(ScenarioError, match=words):
        arm(**changed)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"measured": {"q": rsr.joints("rail", "pole", noise=1)}}, r"hinges and slides in one channel \(rail, pole\)"),
        ({"tune": {"kp": rsr.scale("actuator.kp")}}, "position_gain of 0 at every actuator"),
        ({"tune": {"kp": rsr.absolute("actuator.kp", "push", nominal=5)}}, "position_gain of 0 at push"),
        ({"tune": {"m": rsr.scale("geom.size")}}, "a geom without a name"),
    ],
)
def test_a_mistake_with_free_bodies_and_motors_is_named(changed, words):
    with pytest.raises(ScenarioError, match=words):
        free(**changed)


def test_an_mjcf_that_is_not_there_or_does_not_compile_is_named(tmp_path):
    with pytest.raises(ScenarioError, match=r"missing\.xml"):
        made(tmp_path / "missing.xml")
    (tmp_path / "bad.xml").write_text("<mujoco><worldbody><geom/></worldbody></mujoco>")
    with pytest.raises(ScenarioError, match="expected an MJCF that MuJoCo compiles"):
        made(tmp_path / "bad.xml")
