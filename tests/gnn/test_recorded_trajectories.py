"""From sessions to trajectories: of pushed cubes and of a tossed one, whose centre of mass may lie off its middle."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pushes_at_hand import noisy, pushed

from benchmarks.baselines.gnn_scenes import compiled, rollout_in_mujoco, varied_world
from rsr.common.errors import ScenarioError, SessionError
from rsr.common.rotations import from_rotation_vector, turned
from rsr.learned.gnn.recordings import freed_of_noise, from_sessions
from rsr.learned.gnn.scenario_bodies import world_of
from rsr.learned.gnn.start_frames import fit_first_frames
from rsr.learned.gnn.trajectories import Trajectory
from rsr.scenarios import load_scenario
from rsr.scenarios.built_in.two_cubes import ContactParameters
from rsr.sessions import Card, Episode, Session


def session(scenario: str, values: dict[str, np.ndarray], dt_s: float, count: int = 2) -> Session:
    channels = load_scenario(scenario).channels
    rows = len(next(iter(values.values())))
    episodes = tuple(Episode(index, np.arange(rows) * dt_s, values) for index in range(count))
    return Session(Card("seen", scenario, "test", simulated=True, control_dt_s=dt_s), channels, episodes)


def cubes(poses: np.ndarray) -> dict[str, np.ndarray]:
    return {
        f"cube{body + 1}_{what}": poses[:, body, columns]
        for body in range(2)
        for what, columns in (("position", slice(0, 3)), ("orientation", slice(3, 7)))
    }


def tossed(frames: int = 12) -> dict[str, np.ndarray]:
    time_s = np.arange(frames) / 148
    position = np.stack([0.4 * time_s, 0 * time_s, 0.5 + time_s - 4.905 * time_s**2], axis=1)
    orientation = from_rotation_vector(np.outer(time_s, [3.0, -2.0, 1.0]))
    zeros = np.zeros((frames, 3))
    return {
        "cube_position": position,
        "cube_orientation": orientation,
        "linear_velocity": zeros,
        "angular_velocity": zeros,
    }


def test_pushes_come_back_as_they_were_recorded():
    scenario = load_scenario("two_cubes")
    first, second = from_sessions(scenario, [session("two_cubes", cubes(pushed().poses), 1 / 60)])
    np.testing.assert_allclose(first.poses, pushed().poses, atol=1e-15)
    assert (first.name, second.name) == ("seen, episode 0", "seen, episode 1")
    assert first.dt_s == pytest.approx(1 / 60)
    assert [body.name for body in first.world.bodies] == ["cube1", "cube2"]
    np.testing.assert_allclose(first.sizes_m, 0.08)
    np.testing.assert_allclose(
        [body.inertia_kg_m2 for body in first.world.bodies], [np.eye(3) * 0.00016] * 2, atol=1e-12
    )


def test_a_tossed_cube_flies_about_its_centre_of_mass():
    scenario = load_scenario("cube_toss")
    params = scenario.space.vector({"com_z": 0.005, "apparent_gravity": 9.6})
    recorded = session("cube_toss", tossed(), 1 / 148)
    (middle, _), (centre, _) = from_sessions(scenario, [recorded]), from_sessions(scenario, [recorded], params)
    offset = turned(middle.poses[:, 0, 3:], np.array([0, 0, 0.005]))
    np.testing.assert_allclose(centre.poses[:, 0, :3] - middle.poses[:, 0, :3], offset, atol=2e-6)
    assert centre.world.gravity_m_s2 == pytest.approx(9.6)
    assert centre.world.bodies[0].mesh.vertices_m[:, 2].max() == pytest.approx(0.0474)
    flown = rollout_in_mujoco(middle.world, ContactParameters(), middle.start[None], len(middle), middle.dt_s)[0]
    np.testing.assert_allclose(flown[..., :3], middle.poses[..., :3], atol=2e-4)
    np.testing.assert_allclose(np.abs((flown[..., 3:] * middle.poses[..., 3:]).sum(-1)), 1, atol=1e-4)


def test_a_scenario_with_driven_joints_is_refused():
    with pytest.raises(ScenarioError, match="scenario push_cube, rsr.learned.gnn: got joints that are not free"):
        from_sessions(load_scenario("push_cube"), [])


def test_bodies_of_any_convex_shape_are_read_back_from_a_model():
    """Boxes and prisms, through MuJoCo, which turns meshes into their own axes, and back."""
    given = varied_world(np.random.default_rng(5), 5)
    assert {body.mesh.name for body in given.bodies} > {"prism"}
    found = world_of(load_scenario("two_cubes"), compiled(given, ContactParameters()))
    for body, again in zip(given.bodies, found.bodies, strict=True):
        assert again.mass_kg == pytest.approx(body.mass_kg)
        np.testing.assert_allclose(again.inertia_kg_m2, body.inertia_kg_m2, atol=1e-10)
        order, other = (np.lexsort(each.mesh.vertices_m.round(5).T) for each in (body, again))
        np.testing.assert_allclose(again.mesh.vertices_m[other], body.mesh.vertices_m[order], atol=1e-6)


@pytest.mark.parametrize("gravity", [(1.0, 0.0, -9.8), (0.0, 0.0, 9.8)])
def test_gravity_that_does_not_point_down_is_refused(gravity):
    model = compiled(pushed().world, ContactParameters())
    model.opt.gravity[:] = gravity
    with pytest.raises(ScenarioError, match="expected gravity straight down, or none"):
        world_of(load_scenario("two_cubes"), model)


def test_a_body_that_is_no_convex_mesh_is_refused():
    puck = load_scenario(str(Path(__file__).parents[2] / "examples" / "own_scenario"))
    with pytest.raises(ScenarioError, match="got 0 boxes or meshes in body 'puck'; expected one, which is convex"):
        from_sessions(puck, [])


def test_missing_frames_are_named():
    recorded = session("two_cubes", cubes(pushed().poses), 1 / 60, count=1)
    (episode,) = recorded.episodes
    time_s = episode.time_s.copy()
    time_s[7:] += 1 / 60
    broken = replace(recorded, episodes=(replace(episode, time_s=time_s),))
    with pytest.raises(SessionError, match="seen, episode 0: got 33.3 ms between frames 6 and 7; expected 16.7 ms"):
        from_sessions(load_scenario("two_cubes"), [broken])


def test_orientations_of_unseen_tags_are_named():
    values = cubes(pushed().poses.copy())
    values["cube1_orientation"][4] = 0.0
    with pytest.raises(SessionError, match="channel cube1_orientation: got quaternions of length 0 to 1"):
        from_sessions(load_scenario("two_cubes"), [session("two_cubes", values, 1 / 60)])


def test_two_frames_only_are_refused():
    values = {name: rows[:2] for name, rows in cubes(pushed().poses).items()}
    with pytest.raises(SessionError, match="got 2 frames; expected at least 3: the first two are the start alone"):
        from_sessions(load_scenario("two_cubes"), [session("two_cubes", values, 1 / 60)])


def test_a_single_flying_body_gets_a_steady_start():
    scenario = load_scenario("cube_toss")
    (flight, _) = from_sessions(scenario, [session("cube_toss", tossed(16), 1 / 148)])
    rng = np.random.default_rng(0)
    poses = flight.poses.copy()
    poses[..., :3] += rng.normal(0, 1e-4, poses[..., :3].shape)
    found = fit_first_frames(Trajectory(flight.world, poses, flight.dt_s))
    error = (found.poses[1] - found.poses[0] - flight.poses[1] + flight.poses[0])[0, :3] * 148
    assert np.linalg.norm(error) < 0.03


def test_a_session_freed_of_noise_starts_as_it_did():
    """`Scenario.states` finds the start in it that it missed in what was recorded."""
    scenario, rng = load_scenario("two_cubes"), np.random.default_rng(3)
    push = pushed(0.4, frames=24)  # slow enough to be hit late
    (truth,) = session("two_cubes", cubes(push.poses), 1 / 60, count=1).episodes
    errors = []
    for _ in range(16):
        poses = noisy(push, rng).poses
        poses[20, 0, :3] += [0.01, 0.0, 0.006]  # the tag jumps
        recorded = session("two_cubes", cubes(poses), 1 / 60, count=1)
        (freed,) = freed_of_noise(scenario, recorded).episodes
        assert np.abs(freed["cube1_position"] - truth["cube1_position"]).max() < 0.003
        starts = [scenario.states(each)[0, 14:17] for each in (truth, *recorded.episodes, freed)]
        errors.append([np.linalg.norm(start - starts[0]) for start in starts[1:]])
    as_recorded, after = np.median(errors, axis=0)
    assert after < 0.7 * as_recorded


def test_a_toss_without_noise_is_left_as_it_was():
    recorded = session("cube_toss", tossed(24), 1 / 148, count=1)
    (freed,) = freed_of_noise(load_scenario("cube_toss"), recorded).episodes
    for name, values in tossed(24).items():
        np.testing.assert_allclose(freed[name], values, atol=1e-3 if "orientation" in name else 5e-5)
