"""Models and parameters so many that jaxlib 0.10 would hang in batched LAPACK calls; see `_LAPACK_NUMBERS`."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import rsr
from rsr.scenarios import Scenario
from rsr.simulators import MujocoSimulator
from rsr.simulators.mjx import MjxSimulator

STEPS, DIFFERENCE = 4, 1e-4


def chain(joints: int) -> Scenario:
    """Hinges in a row, each with a damping and a spring of its own as a parameter."""
    spec = mujoco.MjSpec()
    spec.option.timestep = 0.005
    body = spec.worldbody
    for index in range(joints):
        body = body.add_body(pos=[0.1 * bool(index), 0, 0])
        body.add_joint(name=f"j{index}", axis=[0, 1, 0], damping=[0.05, 0, 0], stiffness=[1.0, 0, 0])
        body.add_geom(type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[0.02, 0, 0], pos=[0.1, 0, 0], mass=0.1, contype=0)
    names = [f"j{index}" for index in range(joints)]
    fields = {"damping": "joint.damping", "stiffness": "joint.stiffness"}
    return rsr.Scenario.from_mjcf(
        spec,
        dt=0.01,
        measured={"q": rsr.joints(*names, noise=0.001)},
        tune={f"{kind}_{name}": rsr.scale(place, name) for kind, place in fields.items() for name in names},
    )


@pytest.mark.slow
def test_sensitivities_of_twenty_parameters_of_ten_joints():
    """Five calls of four directions: 16 windows x 10 x 10 x 20 numbers at once would hang on two cores."""
    scenario = chain(10)
    simulator = MjxSimulator(scenario)
    assert simulator.batch * 10 * 10 * simulator._directions <= 16_384 < simulator.batch * 10 * 10 * 20
    rng, params = np.random.default_rng(0), scenario.space.nominal
    starts = 0.3 * rng.normal(size=(20, scenario.state_size))
    actions = np.zeros((20, scenario.history_steps + STEPS, scenario.command_width))
    states, derivatives = simulator.sensitivities(starts, actions, params)
    with MujocoSimulator(scenario) as in_c:
        np.testing.assert_allclose(states, in_c.rollout(starts, actions, params), atol=1e-9)
        there = scenario.space.to_coordinates(params)
        for index in (0, 7, 19):
            step = DIFFERENCE * np.eye(20)[index]
            ends = [in_c.rollout(starts, actions, scenario.space.to_values(there + side)) for side in (step, -step)]
            quotient = (ends[0] - ends[1]) / (2 * DIFFERENCE)
            np.testing.assert_allclose(derivatives[..., index], quotient, atol=1e-6)


def test_batches_shrink_with_the_degrees_of_freedom():
    assert [MjxSimulator(chain(joints)).batch for joints in (4, 32, 40, 130)] == [16, 16, 10, 1]
