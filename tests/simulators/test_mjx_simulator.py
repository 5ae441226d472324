"""MJX against C: the same trajectories, the same derivatives, no NaN; on every built-in scenario."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from rsr.common.errors import ScenarioError
from rsr.scenarios import built_in_scenarios, load_scenario
from rsr.scenarios.built_in.pushing import kinematics
from rsr.simulators import MujocoSimulator
from rsr.simulators.mjx import MjxSimulator, check_gradients, check_parity, converged

WINDOWS = 8


@dataclasses.dataclass(frozen=True)
class Case:
    """A simulator and windows in which something happens."""

    simulator: MjxSimulator
    states: np.ndarray
    actions: np.ndarray
    params: np.ndarray

    @property
    def windows(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.states, self.actions, self.params


def pushes(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, dict[str, float]]:
    """The finger starts just behind the cube and pushes it for 0.4 s."""
    block = np.array([0.36, 0.0]) + rng.uniform(-0.03, 0.03, (WINDOWS, 2))
    yaw, zeros = rng.uniform(-0.2, 0.2, WINDOWS), np.zeros(WINDOWS)
    tip = np.stack([block[:, 0] - 0.041, block[:, 1] + rng.uniform(-0.01, 0.01, WINDOWS), zeros + 0.025], axis=1)
    joints = kinematics.joints_for(tip)
    cube = np.stack([*block.T, zeros + 0.0247, np.cos(yaw / 2), zeros, zeros, np.sin(yaw / 2)], axis=1)
    path = tip[:, None] + np.linspace(0, 0.06, 8)[None, :, None] * np.array([1.0, 0.2, 0.0])
    actions = np.stack([joints] * 3 + [kinematics.joints_for(path[:, step]) for step in range(8)], axis=1)
    states = np.concatenate([cube, joints, np.zeros((WINDOWS, 12))], axis=1)
    return states, actions, {"cube_mass": 0.15, "control_delay": 0.013, "contact_softness": 0.03}


def pushes_of_a_t(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, dict[str, float]]:
    """The finger starts beside the stem, at the bar's end or in the corner between them, and pushes for 0.4 s."""
    block = np.array([0.36, 0.0]) + rng.uniform(-0.03, 0.03, (WINDOWS, 2))
    zeros = np.zeros(WINDOWS)
    away = np.resize([[-0.028, -0.035], [-0.063, 0.020], [-0.028, -0.0075], [-0.029, -0.055]], (WINDOWS, 2))
    tip = np.concatenate([block + away, zeros[:, None] + 0.025], axis=1)
    joints = kinematics.joints_for(tip)
    pose = np.stack([*block.T, zeros + 0.0247, zeros + 1.0, zeros, zeros, zeros], axis=1)
    path = tip[:, None] + np.linspace(0, 0.06, 8)[None, :, None] * np.array([1.0, 0.2, 0.0])
    actions = np.stack([joints] * 3 + [kinematics.joints_for(path[:, step]) for step in range(8)], axis=1)
    states = np.concatenate([pose, joints, np.zeros((WINDOWS, 12))], axis=1)
    return states, actions, {"block_mass": 0.25, "control_delay": 0.013, "contact_softness": 0.03}


def tosses(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, dict[str, float]]:
    """The cube lands turning. C nails a centre of mass to the origin that is within 1 um of it, hence the offsets."""
    turned = rng.normal(size=(WINDOWS, 4))
    position = np.tile([0.0, 0.0, 0.092], (WINDOWS, 1))
    velocity = rng.normal(size=(WINDOWS, 6)) * [0.5, 0.5, 0.2, 3, 3, 3] - [0, 0, 0.6, 0, 0, 0]
    states = np.concatenate([position, turned / np.linalg.norm(turned, axis=1, keepdims=True), velocity], axis=1)
    return states, np.zeros((WINDOWS, 15, 0)), {"com_x": 0.001, "com_y": -0.001, "com_z": 0.002}


def swings(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, dict[str, float]]:
    states = rng.normal(size=(WINDOWS, 4)) * [2, 2, 4, 4]
    history = load_scenario("double_pendulum").history_steps
    return states, rng.normal(size=(WINDOWS, history + 20, 2)), {"torque_delay": 0.003}


MAKERS = {"push_cube": pushes, "push_t": pushes_of_a_t, "cube_toss": tosses, "double_pendulum": swings}


# Each compiles for seconds; the quick tests have one, with commands and contact.
EACH = [name if name == "push_cube" else pytest.param(name, marks=pytest.mark.slow) for name in MAKERS]


@pytest.fixture(scope="module")
def cases() -> dict[str, Case]:
    """One simulator a scenario for all tests: compiling is what costs."""
    made = {}
    for name, maker in MAKERS.items():
        scenario = load_scenario(name)
        states, actions, changed = maker(np.random.default_rng(0))
        values = dict(zip(scenario.space.names, scenario.space.nominal, strict=True)) | changed
        params = np.array([values[name] for name in scenario.space.names])
        made[name] = Case(MjxSimulator(scenario), states, actions, params)
    return made


BOXES_COLLIDE = {"two_cubes"}
"""Scenarios in which box hits box: there MJX takes other contact points than C does, and says so."""


WITHOUT_CONTACT = {"reach", "swing_up", "quadrotor"}
"""Scenarios that compute nothing which `double_pendulum` and push_cube do not: joints, servos, drag."""
REFUSED = {"strike", "strike_square", "strike_triangle"}
"""Scenarios whose outcome is defined by a sensor of contact that MJX lacks."""


def test_every_built_in_scenario_has_a_case():
    assert set(built_in_scenarios()) == set(MAKERS) | BOXES_COLLIDE | WITHOUT_CONTACT | REFUSED


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_mjx_lacks_is_named(name: str):
    with pytest.raises(ScenarioError, match="Contact sensor .* not implemented .* Calibrate it with method `cmaes`"):
        MjxSimulator(load_scenario(name))


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(BOXES_COLLIDE))
def test_where_boxes_collide_parity_names_that_pair_and_no_other(name: str):
    parity = check_parity(MjxSimulator(load_scenario(name)), np.random.default_rng(1))
    assert not parity.equal
    different = {pair for pair, error in parity.velocity_error.items() if error > parity.tolerance}
    assert different == {parity.worst} == {"cube1 / cube2"}


@pytest.mark.slow
def test_where_boxes_collide_sensitivities_are_right_as_long_as_they_do_not():
    """Two cubes that land turning and slide, too far apart to meet."""
    rng = np.random.default_rng(0)
    position = np.tile([[-0.3, 0.0, 0.075], [0.3, 0.0, 0.075]], (WINDOWS, 1, 1))
    turned = rng.normal(size=(WINDOWS, 2, 4))
    poses = np.concatenate([position, turned / np.linalg.norm(turned, axis=2, keepdims=True)], axis=2)
    velocities = rng.normal(size=(WINDOWS, 2, 6)) * [0.2, 0.2, 0.1, 3, 3, 3] - [0, 0, 0.5, 0, 0, 0]
    states = np.concatenate([poses.reshape(WINDOWS, -1), velocities.reshape(WINDOWS, -1)], axis=1)
    simulator = MjxSimulator(load_scenario("two_cubes"))
    params = simulator.scenario.space.nominal * [0.3, 1.01, 1.01, 1.0, 0.8, 1.0, 0.7, 0.7]
    health = check_gradients(simulator, states, np.zeros((WINDOWS, 6, 0)), params)
    assert health.not_finite == 0
    assert max(health.relative_error.values()) < 1e-3, str(health)  # what is asked of the elliptic cone


@pytest.mark.parametrize("name", EACH)
def test_trajectories_are_those_of_converged_c(cases: dict[str, Case], name: str):
    case = cases[name]
    got, _ = case.simulator.sensitivities(*case.windows)
    with MujocoSimulator(converged(case.simulator.scenario)) as reference:
        expected = reference.rollout(*case.windows)
    assert np.abs(expected[:, -1] - expected[:, 0]).max() > 0.01, "nothing moved"
    np.testing.assert_allclose(got, expected, atol=1e-6)


@pytest.mark.parametrize("name", EACH)
def test_one_step_parity_for_every_pair_of_geometries(cases: dict[str, Case], name: str):
    parity = check_parity(cases[name].simulator, np.random.default_rng(1))
    assert parity.equal, str(parity)
    assert not parity.unchecked
    assert parity.worst in str(parity)


@pytest.mark.parametrize("name", EACH)
def test_sensitivities_agree_with_central_differences_in_c(cases: dict[str, Case], name: str):
    case = cases[name]
    health = check_gradients(case.simulator, *case.windows)
    assert health.not_finite == 0
    # The issue asks for 1e-4, and 1e-3 with the elliptic cone of cube_toss.
    assert max(health.relative_error.values()) < 1e-4, str(health)
    assert min(health.cosine.values()) > 0.999999
    assert health.healthy


def test_sensitivities_are_right_at_the_bounds_where_estimates_start(cases: dict[str, Case]):
    """No delay and the stiffest contact are kinks of the simulator: the derivative into the range is meant."""
    case = cases["push_cube"]
    scenario = case.simulator.scenario
    space, names = scenario.space, scenario.space.names
    params = space.nominal
    _, derivatives = case.simulator.sensitivities(case.states, case.actions, params)
    with MujocoSimulator(converged(scenario)) as reference:
        here = reference.rollout(case.states, case.actions, params)
        for name in ("control_delay", "contact_softness"):
            index, step = names.index(name), 1e-5
            ahead = space.to_values(space.to_coordinates(params) + step * np.eye(len(names))[index])
            difference = (reference.rollout(case.states, case.actions, ahead) - here) / step
            deviation = np.linalg.norm(derivatives[..., index] - difference)
            assert deviation < 2e-3 * np.linalg.norm(difference), name


@pytest.mark.slow
def test_windows_do_not_disturb_each_other(cases: dict[str, Case]):
    """Chunks, padding and rows of params: any window alone gives what it gives among others."""
    case = cases["double_pendulum"]
    repeated = [np.concatenate([array] * 3)[:20] for array in (case.states, case.actions)]
    params = np.tile(case.params, (20, 1))
    params[7, 0] *= 1.1
    states, derivatives = case.simulator.sensitivities(*repeated, params)
    for row in (0, 7, 19):
        alone = case.simulator.sensitivities(repeated[0][row : row + 1], repeated[1][row : row + 1], params[row])
        np.testing.assert_array_equal(states[row], alone[0][0])
        np.testing.assert_array_equal(derivatives[row], alone[1][0])
    assert np.abs(states[7] - states[15]).max() > 1e-3, "window 15 repeats window 7 with other parameters"


@pytest.mark.slow
def test_rollout_gives_the_states_of_sensitivities(cases: dict[str, Case]):
    case = cases["double_pendulum"]
    np.testing.assert_allclose(
        case.simulator.rollout(*case.windows), case.simulator.sensitivities(*case.windows)[0], atol=1e-9
    )


@pytest.mark.slow
def test_elliptic_cone_on_a_pushed_box():
    scenario = load_scenario("push_cube")
    model = converged(scenario).base_model
    model.opt.cone = 1
    model.pair_dim[:] = 3
    scenario = dataclasses.replace(scenario, base_model=model)
    states, actions, _ = pushes(np.random.default_rng(0))
    simulator = MjxSimulator(scenario)
    assert check_parity(simulator, np.random.default_rng(1)).equal
    params = scenario.space.nominal * [1, 1, 0.8, 1, 1, 1, 1.5]
    health = check_gradients(simulator, states, actions, params, tolerance=1e-3)
    assert health.healthy, str(health)
    assert max(health.relative_error.values()) < 1e-3
