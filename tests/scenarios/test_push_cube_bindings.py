"""Every parameter acts, alone, and on what its name says."""

import mujoco
import numpy as np
import pytest

from rsr.simulators import MujocoSimulator
from tests.push_samples import push_cube, pushes

TABLE, FINGER = "table_friction", "finger_friction"
CHANGED = {
    TABLE: 0.6,
    FINGER: 0.6,
    "cube_mass": 0.25,
    "joint_damping": 1.3,
    "actuator_gain": 0.8,
    "control_delay": 0.02,
    "contact_softness": 0.03,
}


@pytest.fixture(scope="module")
def trajectories():
    """Parameter -> trajectories [B, T + 1, nq + nv] of the same pushes with it changed by a fifth or so."""
    space = push_cube().space
    starts, commands = pushes()
    with MujocoSimulator(push_cube()) as simulator:
        named = {name: simulator.rollout(starts, commands, space.vector({name: v})) for name, v in CHANGED.items()}
        named["nothing"] = simulator.rollout(starts, commands, space.nominal)
    return named


def test_every_parameter_is_tried():
    assert set(CHANGED) == set(push_cube().space.names)


@pytest.mark.parametrize("name", CHANGED)
def test_every_parameter_changes_the_cubes_way(trajectories, name):
    apart_m = np.linalg.norm(trajectories[name][..., :3] - trajectories["nothing"][..., :3], axis=-1).max(axis=1)
    assert apart_m.max() > 1.5e-3, apart_m  # the sensor's noise is 1 mm


@pytest.mark.parametrize("name", [TABLE, FINGER])
def test_both_frictions_act_whichever_is_larger(name):
    """MuJoCo takes the larger friction of two geoms; with pairs of their own, each acts below the other, too."""
    space = push_cube().space
    other = {TABLE: FINGER, FINGER: TABLE}[name]
    starts, commands = pushes()
    with MujocoSimulator(push_cube()) as simulator:
        low, high = (
            simulator.rollout(starts, commands, space.vector({name: value, other: 0.8})) for value in (0.1, 0.3)
        )
    assert np.abs(low[..., :2] - high[..., :2]).max() > 2e-3


def coasted_m(speed_m_s: float, **parameters: float) -> float:
    """How far the cube slides when let go at this speed with the arm away from it."""
    scenario = push_cube()
    starts, commands = pushes(count=1)
    state = starts.copy()
    state[0, :7] = [0.36, 0.0, 0.025, 1, 0, 0, 0]
    state[0, 7] = 2.0  # the arm turns away
    state[0, 13] = speed_m_s
    held = np.tile(state[:, None, 7:13], (1, commands.shape[1], 1))
    with MujocoSimulator(scenario) as simulator:
        after = simulator.rollout(state, held, scenario.space.vector(parameters))
    assert abs(after[0, -1, 13]) < 1e-3, "it has come to rest"
    return float(after[0, -1, 0] - 0.36)


@pytest.mark.parametrize("friction", [0.15, 0.5])
def test_table_friction_stops_the_cube_as_coulomb_says(friction):
    # Time goes in steps of 10 ms, and each moves the cube with the velocity at its end.
    expected_m = 0.5**2 / (2 * friction * 9.81) - 0.5 * 0.01 / 2
    assert coasted_m(0.5, table_friction=friction) == pytest.approx(expected_m, rel=0.03)


def test_finger_friction_and_mass_leave_a_coasting_cube_alone():
    base_m = coasted_m(0.5)
    assert coasted_m(0.5, finger_friction=0.05) == base_m
    assert coasted_m(0.5, cube_mass=0.8) == pytest.approx(base_m, rel=1e-6)  # mass cancels in Coulomb's law


def test_mass_scales_inertia_and_refreshes_what_depends_on_it():
    scenario = push_cube()
    heavy = scenario.model(scenario.space.vector({"cube_mass": 0.8}))
    cube = mujoco.mj_name2id(heavy, mujoco.mjtObj.mjOBJ_BODY, "cube")
    assert heavy.body_mass[cube] == 0.8
    np.testing.assert_allclose(heavy.body_inertia[cube], 4 * scenario.base_model.body_inertia[cube])
    # mj_setConst: the constraint solver scales contacts with these.
    assert heavy.body_subtreemass[0] == pytest.approx(scenario.base_model.body_subtreemass[0] + 0.6)
    np.testing.assert_allclose(heavy.body_invweight0[cube], scenario.base_model.body_invweight0[cube] / 4)
    np.testing.assert_allclose(heavy.dof_invweight0[:6], scenario.base_model.dof_invweight0[:6] / 4)


def test_scales_multiply_what_the_mjcf_says():
    scenario = push_cube()
    base = scenario.base_model
    model = scenario.model(scenario.space.vector({"joint_damping": 3.0, "actuator_gain": 0.5}))
    np.testing.assert_allclose(model.dof_damping[6:], 3 * base.dof_damping[6:])
    np.testing.assert_array_equal(model.dof_damping[:6], base.dof_damping[:6])
    np.testing.assert_allclose(model.actuator_gainprm[:, 0], 0.5 * base.actuator_gainprm[:, 0])
    np.testing.assert_allclose(model.actuator_biasprm[:, 1], 0.5 * base.actuator_biasprm[:, 1])
    np.testing.assert_array_equal(model.actuator_biasprm[:, 2], base.actuator_biasprm[:, 2])


def test_making_a_model_leaves_the_base_alone():
    scenario = push_cube()
    before = scenario.base_model.body_mass.copy(), scenario.base_model.pair_friction.copy()
    scenario.model(scenario.space.upper)
    np.testing.assert_array_equal(scenario.base_model.body_mass, before[0])
    np.testing.assert_array_equal(scenario.base_model.pair_friction, before[1])


def test_nominal_model_is_the_mjcf():
    """The scenario's nominal values and the MJCF's numbers say the same."""
    scenario = push_cube()
    nominal, base = scenario.model(scenario.space.nominal), scenario.base_model
    for array in ("body_mass", "body_inertia", "dof_damping", "actuator_gainprm", "actuator_biasprm", "pair_solref"):
        np.testing.assert_allclose(getattr(nominal, array), getattr(base, array), err_msg=array)
    np.testing.assert_allclose(nominal.pair_friction, base.pair_friction)
