"""Fields that are more than a number in its place: MJX steps as C does, with derivatives as differences have them."""

from __future__ import annotations

import numpy as np
import pytest

import rsr
from rsr.common.errors import ScenarioError
from rsr.simulators import MujocoSimulator
from rsr.simulators.mjx import MjxSimulator, check_gradients

ARM = """<mujoco model="shapes"><option timestep="0.002" integrator="implicitfast"/><worldbody>
<body name="upper" pos="0 0 1"><joint name="a" axis="0 1 0" damping="0.1"/>
  <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.02" mass="0.6" contype="0" conaffinity="0"/>
  <body name="fore" pos="0.3 0 0" euler="90 0 0"><joint name="b" axis="0 1 0" damping="0.1"/>
    <geom type="capsule" fromto="0 0 0 0.25 0 0" size="0.02" mass="0.4" contype="0" conaffinity="0"/></body></body>
</worldbody>{more}<actuator><motor name="a" joint="a"/><motor name="b" joint="b"/></actuator></mujoco>"""
CORD = """<tendon><fixed name="cord" stiffness="2" damping="0.05"><joint joint="a" coef="1"/>
<joint joint="b" coef="-0.5"/>
</fixed></tendon><equality><joint name="lock" joint1="a" joint2="b" polycoef="0 0.5 0 0 0"/></equality>"""


def scenario_of(folder, more: str, **tune):
    path = folder / "shapes.xml"
    path.write_text(ARM.format(more=more))
    measured = {"q": rsr.joints("a", "b", noise=0.001)}
    return rsr.Scenario.from_mjcf(path, dt=0.01, measured=measured, command={"u": rsr.actuators("a", "b")}, tune=tune)


def check(scenario, values) -> None:
    rng = np.random.default_rng(0)
    states, commands = rng.normal(0.0, 0.3, (2, scenario.state_size)), rng.uniform(-1, 1, (2, 15, 2))
    vector, simulator = scenario.space.vector(values), MjxSimulator(scenario, threads=1)
    with MujocoSimulator(scenario, threads=1) as reference:
        apart = simulator.rollout(states, commands, vector) - reference.rollout(states, commands, vector)
    assert np.abs(apart).max() < 1e-8
    health = check_gradients(simulator, states, commands, vector, tolerance=1e-4, threads=1)
    assert health.healthy, health
    assert not health.insensitive, health


@pytest.mark.slow
def test_inertias_in_log_cholesky_coordinates(tmp_path):
    """The links are round: two of their principal inertias are equal, where axes have no derivative."""
    tune = {
        f"{body}_{field}": rsr.absolute(f"body.{field}", body, lower=-2, upper=2, prior=0.5, linear=True)
        for body, field in (("fore", "stretch_x"), ("fore", "shear_xz"), ("fore", "shear_yz"), ("upper", "stretch_z"))
    }
    scenario = scenario_of(tmp_path, "", mass=rsr.scale("body.mass", "fore"), **tune)
    check(scenario, {"mass": 1.1})
    check(scenario, {"fore_stretch_x": 0.3, "fore_shear_xz": 0.4, "fore_shear_yz": -0.5, "upper_stretch_z": 0.2})


@pytest.mark.slow
def test_numbers_of_tendons_equalities_and_by_mujocos_name(tmp_path):
    scenario = scenario_of(
        tmp_path,
        CORD,
        stiffness=rsr.absolute("tendon.stiffness", "cord"),
        resistance=rsr.absolute("tendon.damping", "cord"),
        ratio=rsr.absolute("equality.ratio", "lock"),
        softness=rsr.absolute("equality.time_constant", "lock"),
        quadratic=rsr.absolute("equality.eq_data[2]", "lock", lower=-1, upper=1, linear=True),
    )
    check(scenario, {"stiffness": 3.0, "ratio": 0.6, "quadratic": 0.1})


def test_a_number_that_mjx_lacks_is_refused(tmp_path):
    tune = {"ipd": rsr.absolute("camera.cam_ipd", "eye", lower=0.01, upper=0.1)}
    more = '<worldbody><camera name="eye" pos="0 0 2"/></worldbody>'
    with pytest.raises(ScenarioError, match="got the field cam_ipd of a camera; expected features that MuJoCo MJX"):
        MjxSimulator(scenario_of(tmp_path, more, **tune))
