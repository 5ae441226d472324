"""The scenario two_cubes: its file is what the builder writes, contacts act, and any number of blocks makes a scene."""

import mujoco
import numpy as np
import pytest

from rsr.scenarios import load_scenario
from rsr.scenarios.built_in.two_cubes import SIDE_M, BlockGeometry, ContactParameters, cube, scene_xml


def cubes(count: int = 2) -> list[BlockGeometry]:
    return [cube(f"cube{index + 1}") for index in range(count)]


def test_the_stored_scene_is_what_the_builder_writes():
    assert load_scenario("two_cubes").mjcf.read_text() == scene_xml(cubes())


def test_the_builder_says_what_mujoco_does_by_itself():
    silent = mujoco.MjModel.from_xml_string(
        '<mujoco><worldbody><geom name="a" type="plane" size="1 1 1"/>'
        '<body><freejoint/><geom name="b" size="1"/></body></worldbody>'
        '<contact><pair geom1="a" geom2="b"/></contact></mujoco>'
    )
    default = ContactParameters()
    assert silent.pair_friction[0, 0] == default.mu
    np.testing.assert_array_equal(silent.pair_solimp[0], default.solimp)
    np.testing.assert_array_equal(silent.pair_solref[0], default.solref)


def test_parameters_are_those_of_table_two_and_reach_every_contact():
    """Ranges as published; the values of one vector are found in all three pairs."""
    space = load_scenario("two_cubes").space
    assert space.names == ("mu", "d_0", "d_width", "width", "midpoint", "power", "time_constant", "damping_ratio")
    np.testing.assert_allclose(space.lower, [0, 0.9, 0.95, 1e-4, 1e-3, 1, 1e-3, 0.1])
    np.testing.assert_allclose(space.upper, [1, 0.95, 0.99, 1e-2, 1e-1, 5, 1e-1, 10])
    values = space.lower + 0.3 * (space.upper - space.lower)
    model = load_scenario("two_cubes").model(values)
    written = np.column_stack([model.pair_friction[:, 0], model.pair_solimp, model.pair_solref])
    np.testing.assert_allclose(written, np.tile(values, (3, 1)))
    np.testing.assert_array_equal(model.pair_friction[:, 0], model.pair_friction[:, 1])


@pytest.mark.parametrize("mu", [0.15, 0.3])
def test_a_sliding_cube_stops_where_coulomb_says(mu):
    model = mujoco.MjModel.from_xml_string(scene_xml(cubes(1), ContactParameters(mu, solref=(0.005, 1.0))))
    data = mujoco.MjData(model)
    data.qvel[0] = 0.8
    mujoco.mj_step(model, data, nstep=round(0.8 / model.opt.timestep))
    assert np.linalg.norm(data.qvel) < 1e-3
    assert data.qpos[0] == pytest.approx(0.8**2 / (2 * mu * 9.81), rel=0.02)


def test_a_push_carries_momentum_from_cube_to_cube():
    model = load_scenario("two_cubes").model(load_scenario("two_cubes").space.vector({"mu": 0.0}))
    data = mujoco.MjData(model)
    data.qpos[0] = data.qpos[7] - SIDE_M - 0.005
    data.qvel[0] = 0.5
    mujoco.mj_step(model, data, nstep=120)
    assert data.qvel[6] > 0.2
    assert data.qvel[0] + data.qvel[6] == pytest.approx(0.5, rel=1e-3)


def test_meshes_and_boxes_of_any_number_make_a_scene():
    corners = np.array([[x, y, z] for x in (-0.04, 0.04) for y in (-0.04, 0.04) for z in (-0.04, 0.04)])
    stand_in = BlockGeometry("meshed", 0.15, cube("x").inertia_kg_m2, vertices_m=corners)
    model = mujoco.MjModel.from_xml_string(scene_xml([*cubes(9), stand_in]))
    assert (model.nbody, model.npair) == (11, 55)
    boxed, meshed = model.body("cube9").id, model.body("meshed").id
    np.testing.assert_allclose(model.body_inertia[meshed], model.body_inertia[boxed])
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data, nstep=300)
    heights = data.qpos.reshape(10, 7)[:, 2]
    np.testing.assert_allclose(heights, SIDE_M / 2, atol=2e-4)
    assert np.abs(data.qvel).max() < 1e-3


def test_without_a_floor_blocks_fall():
    model = mujoco.MjModel.from_xml_string(scene_xml(cubes(2), floor=False, gravity_m_s2=5.0))
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data, nstep=60)
    assert data.qvel[2] == pytest.approx(-0.5)
