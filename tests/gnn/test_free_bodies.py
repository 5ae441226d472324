"""Between a scenario's states and poses: centres of mass, frames before the start, velocities."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rsr.common.errors import ScenarioError, SessionError
from rsr.learned.gnn.recordings import judged_trajectories, recorded_trajectories
from rsr.learned.gnn.scaling import varied_trajectories
from rsr.learned.gnn.scenario_bodies import free_bodies
from rsr.scenarios import load_scenario
from rsr.scenarios.channels.starts import starts_of
from rsr.sessions import Episode
from rsr.simulators import MujocoSimulator


@pytest.fixture(scope="module")
def scenario():
    return load_scenario("cube_toss")


@pytest.fixture(scope="module")
def off_centre(scenario):
    return scenario.space.vector({"com_x": 0.006, "com_z": -0.004})


@pytest.fixture(scope="module")
def flight(scenario, off_centre) -> np.ndarray:
    """States [1, 16, 13] of a tumbling cube in the air."""
    start = np.concatenate([[0.1, -0.2, 0.5, 1, 0, 0, 0], [0.4, 0.1, 0.8, 3.0, -5.0, 2.0]])
    with MujocoSimulator(scenario) as simulator:
        return simulator.rollout(start[None], np.zeros((1, 15, 0)), off_centre)


def test_the_world_of_a_scenario(scenario, off_centre):
    world = free_bodies(scenario, off_centre).world
    (cube,) = world.bodies
    assert cube.mass_kg == pytest.approx(0.37)
    assert world.floor
    assert world.gravity_m_s2 == pytest.approx(9.81)
    np.testing.assert_allclose(np.ptp(cube.mesh.vertices_m, axis=0), 0.1048)
    np.testing.assert_allclose(cube.mesh.vertices_m.mean(axis=0), [-0.006, -0.000001, 0.004], atol=1e-6)
    np.testing.assert_allclose(np.diag(cube.inertia_kg_m2), 0.00081)


def test_a_centre_of_mass_in_flight_follows_a_parabola(scenario, off_centre, flight):
    centres = free_bodies(scenario, off_centre).poses(flight)[0, :, 0, :3]
    falling = np.diff(centres, n=2, axis=0) * (1 / scenario.control_dt_s) ** 2
    np.testing.assert_allclose(falling, np.tile([0, 0, -9.81], (14, 1)), atol=1e-6)


def test_the_frame_before_is_the_one_that_was_there(scenario, off_centre, flight):
    bodies = free_bodies(scenario, off_centre)
    start = bodies.start(flight[:, 7])[0, :, 0]
    truth = bodies.poses(flight[0, 6:8])[:, 0]
    # MuJoCo's steps of 0.7 ms are not exact either.
    np.testing.assert_allclose(start, truth, atol=2e-4)
    np.testing.assert_allclose(start[1], truth[1], atol=1e-12)


def test_states_come_back(scenario, off_centre, flight):
    bodies = free_bodies(scenario, off_centre)
    states = bodies.states(bodies.poses(flight))
    np.testing.assert_allclose(states[..., :7], flight[:, 1:, :7], atol=1e-12)
    # Velocities are differences, so half a frame late.
    late = (flight[:, 1:, 7:] + flight[:, :-1, 7:]) / 2
    np.testing.assert_allclose(states[..., 7:], late, atol=0.05)


def test_a_resting_body_does_not_fall_before_it_starts(scenario):
    resting = np.concatenate([[0, 0, 0.0524, 1, 0, 0, 0], np.zeros(6)])
    start = free_bodies(scenario).start(resting[None])[0]
    np.testing.assert_allclose(start[0], start[1], atol=1e-12)


def test_an_arm_is_refused():
    with pytest.raises(ScenarioError, match=r"scenario push_cube"):
        free_bodies(load_scenario("push_cube"))


def episode(scenario, flight: np.ndarray) -> Episode:
    time_s = scenario.control_dt_s * np.arange(flight.shape[1])
    values = scenario.measure(flight[0]) | {
        "linear_velocity": flight[0, :, 7:10],
        "angular_velocity": flight[0, :, 10:],
    }
    return Episode(0, time_s, values)


def test_varied_starts_fly_stay_clear_and_repeat(scenario, off_centre, flight):
    recorded = episode(scenario, flight)
    made = [varied_trajectories(scenario, off_centre, [recorded], 40, 20, seed=3) for _ in range(2)]
    poses = np.array([each.poses for each in made[0]])
    np.testing.assert_array_equal(poses, [each.poses for each in made[1]])
    assert poses.shape == (40, 20, 1, 7)
    assert free_bodies(scenario, off_centre).lowest(poses[:, 0]).min() > 0.0019
    headings = poses[:, 1, 0, :2] - poses[:, 0, 0, :2]
    assert np.ptp(np.arctan2(*headings.T)) > 5
    assert np.abs(poses[:, 0, 0, 3:].mean(axis=0)).max() < 0.5  # no orientation is preferred
    assert (np.diff(poses[..., 0, 2], n=2, axis=1)[:, 0] * 148**2 < -9).all()


def test_nothing_to_vary_is_refused(scenario, off_centre):
    with pytest.raises(SessionError, match=r"data scaling of scenario cube_toss: got no episode"):
        varied_trajectories(scenario, off_centre, [], 4, 20)


def test_a_recording_becomes_a_trajectory(scenario, off_centre, flight):
    (found,) = recorded_trajectories(scenario, off_centre, [replace(episode(scenario, flight), index=7)])
    truth = free_bodies(scenario, off_centre).poses(flight)[0]
    assert found.name == "episode 7"
    assert found.dt_s == scenario.control_dt_s
    np.testing.assert_allclose(found.poses[..., :3], truth[..., :3], atol=5e-4)


def test_a_trajectory_begins_where_the_recording_is_judged(scenario, off_centre):
    start = np.concatenate([[0, 0, 0.14, 1, 0, 0, 0], [0.4, 0.1, -0.5, 1.0, 2.0, 0.0]])
    with MujocoSimulator(scenario) as simulator:
        falling = simulator.rollout(start[None], np.zeros((1, 15, 0)), off_centre)
    (found,) = judged_trajectories(scenario, off_centre, [replace(episode(scenario, falling), index=7)], frames=6)
    (judged,) = starts_of(scenario, episode(scenario, falling), "free_flight")
    truth = free_bodies(scenario, off_centre).poses(falling)[0]
    assert found.name == f"episode 7, frame {judged.row}"
    assert found.dt_s == scenario.control_dt_s
    assert len(found) == 6
    np.testing.assert_allclose(found.poses[1:], truth[judged.row : judged.row + 5], atol=1e-9)
    np.testing.assert_allclose(found.poses[0], truth[judged.row - 1], atol=5e-4)
