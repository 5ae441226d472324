"""The hybrid simulator behind the contract: what it hands to the surrogate and what it leaves to MuJoCo."""

import mujoco
import numpy as np
import pytest

from rsr.clash import adapt
from rsr.clash.simulator import HybridSimulator
from rsr.realities.strikes import StrikeStandIn
from rsr.scenarios.strike import Definition, scene_xml, strikes_at
from rsr.scenarios.strike.outline import rotated
from rsr.simulators import Simulator

STEPS = 60
BRAKE_N = -4.0 * 13.0


@pytest.fixture(scope="module")
def model(surrogate, square):
    return adapt(surrogate, StrikeStandIn(square, 2).record(10))


@pytest.fixture
def simulator(model):
    made = HybridSimulator(model)
    yield made
    made.close()


def start_of(strikes, far_m=0.02):
    """States [N, 15] with the nose `far_m` before the impact."""
    states = np.zeros((len(strikes), 15))
    states[:, :2] = rotated(strikes.normal * Definition.nose_radius_m - strikes.point_m, strikes.yaw_rad)
    states[:, 2] = 0.02
    states[:, 3], states[:, 6] = np.cos(strikes.yaw_rad / 2), np.sin(strikes.yaw_rad / 2)
    states[:, 7], states[:, 14] = -far_m, strikes.speed_m_s
    return states


@pytest.fixture
def strikes(square):
    return strikes_at(square, np.array([0.4, 0.6, 0.3]), np.array([0.2, -0.5, 0.6]), np.array([0.1, 0.0, -0.2]))


def test_a_strike_is_seen_handled_and_answered_by_the_surrogate(simulator, model, strikes):
    contract: Simulator = simulator
    states = start_of(strikes)
    path = contract.rollout(states, np.zeros((3, STEPS, 1)), model.identified.values)
    assert path.shape == (3, STEPS + 1, 15)
    assert np.array_equal(path[:, 0], states)
    assert np.isfinite(path).all()
    first = {c.window: c for c in reversed(simulator.collisions)}
    assert set(first) == {0, 1, 2}
    for window, collision in first.items():
        assert collision.time_s == pytest.approx(0.02 / strikes.speed_m_s[window], abs=0.003)
        assert collision.strike.speed_m_s[0] == pytest.approx(strikes.speed_m_s[window], rel=0.02)
        assert collision.strike.angle_rad[0] == pytest.approx(strikes.angle_rad[window], abs=0.02)
        assert collision.strike.point_m[0] == pytest.approx(strikes.point_m[window], abs=0.001)
    soon = int(np.ceil(first[0].time_s / 0.01))
    moved = np.linalg.norm(path[0, soon, 8:10]) / np.linalg.norm(model(strikes)[0, :2])
    assert 0.8 < moved <= 1.05


def test_a_window_does_not_depend_on_its_neighbours(simulator, model, strikes):
    states, actions = start_of(strikes), np.full((3, STEPS, 1), BRAKE_N / 20)
    together = simulator.rollout(states, actions, model.identified.values)
    alone = simulator.rollout(states[1:2], actions[1:2], model.identified.values)
    assert np.array_equal(together[1], alone[0])


def test_without_a_collision_it_is_mujoco(simulator, model, square, strikes):
    states = start_of(strikes)
    states[:, 14] = 0
    states[:, 8:10] = 0.2  # the block slides past
    states[:, :2] += 1.0
    path = simulator.rollout(states, np.zeros((3, 20, 1)), model.identified.values)
    assert simulator.collisions == ()
    scene = mujoco.MjModel.from_xml_string(scene_xml(square, Definition(timestep_s=0.001)))
    ground = scene.pair("ground").id
    scene.pair_friction[ground, :2] = model.identified.values[1]
    scene.pair_solref[ground, 1] = max(1.0, model.identified.values[3])
    data = mujoco.MjData(scene)
    data.qpos[:], data.qvel[:] = states[0, :8], states[0, 8:]
    mujoco.mj_step(scene, data, nstep=200)
    assert path[0, -1, :8] == pytest.approx(data.qpos, abs=1e-4)


def test_the_arm_pays_for_the_momentum(simulator, model, square, strikes):
    states = start_of(strikes)
    path = simulator.rollout(states, np.zeros((3, STEPS, 1)), model.identified.values)
    assert (path[:, -1, 14] < strikes.speed_m_s).all()
    assert (path[:, -1, 14] > 0.8 * strikes.speed_m_s).all()
