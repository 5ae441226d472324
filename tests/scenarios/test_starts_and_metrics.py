"""Where simulations of a recording begin, and by which figures they are judged, on flights that are known exactly."""

from dataclasses import replace

import numpy as np
import pytest

from rsr.common.errors import ConfigError, ScenarioError
from rsr.scenarios import load_scenario
from rsr.scenarios.channels.starts import starts_of
from rsr.scenarios.metrics import ErrorMetric
from rsr.sessions import Episode

DT_S = 1 / 148
VELOCITY = np.array([1.0, -0.5, 0.2])
SPIN = np.array([2.0, -3.0, 4.0])


def flight(rows: int = 30, height_m: float = 0.2, tags: dict | None = None) -> Episode:
    """A cube in free flight about an even spin (body frame); recorded velocities are half a frame late."""
    time_s = np.arange(rows) * DT_S
    position = VELOCITY * time_s[:, None] + [0, 0, height_m]
    position[:, 2] -= 0.5 * 9.81 * time_s**2
    angle = np.linalg.norm(SPIN) * time_s[:, None] / 2
    quaternion = np.concatenate([np.cos(angle), np.sin(angle) * SPIN / np.linalg.norm(SPIN)], axis=1)
    late = np.tile(VELOCITY, (rows, 1))
    late[:, 2] -= 9.81 * (time_s - DT_S / 2)
    values = {
        "cube_position": position,
        "cube_orientation": quaternion,
        "linear_velocity": late,
        "angular_velocity": np.tile(SPIN, (rows, 1)),
    }
    return Episode(0, time_s, values, tags or {})


def test_a_flight_gives_its_velocities_exactly():
    scenario = load_scenario("cube_toss")
    episode = flight(60)
    (start,) = starts_of(scenario, episode, "free_flight")
    low = np.flatnonzero(episode["cube_position"][:, 2] < 0.0524 * np.sqrt(3))[0]
    assert start.row == low - 3
    assert start.steps == 59 - start.row
    qpos, qvel = start.state[:7], start.state[7:]
    np.testing.assert_allclose(qpos[:3], episode["cube_position"][start.row])
    np.testing.assert_allclose(qvel[:3], VELOCITY - [0, 0, 9.81 * start.row * DT_S], atol=1e-9)
    np.testing.assert_allclose(qvel[3:], SPIN, atol=1e-9)


@pytest.mark.parametrize(("rows", "height_m"), [(5, 0.2), (40, 0.0905)], ids=["never low", "low at once"])
def test_an_episode_without_flight_has_no_such_start(rows, height_m):
    assert starts_of(load_scenario("cube_toss"), flight(rows, height_m), "free_flight") == ()


def test_first_takes_what_was_recorded():
    scenario, episode = load_scenario("cube_toss"), flight()
    (start,) = starts_of(scenario, episode, "first")
    assert (start.row, start.steps) == (0, 29)
    recorded = [episode[name][0] for name in ("cube_position", "cube_orientation", "linear_velocity")]
    np.testing.assert_allclose(start.state, np.concatenate([*recorded, SPIN]), atol=1e-12)


def test_states_between_take_recorded_velocities_only_where_told():
    """By default velocities come from positions; these here were recorded half a frame late."""
    scenario, episode = load_scenario("cube_toss"), flight()
    falling = VELOCITY[2] - 9.81 * episode.time_s
    np.testing.assert_allclose(scenario.states(episode)[:, 9], falling, atol=1e-3)
    told = replace(scenario, velocities=tuple(replace(velocity, initial=True) for velocity in scenario.velocities))
    np.testing.assert_allclose(told.states(episode)[:, 9], falling + 9.81 * DT_S / 2, atol=1e-9)


def test_windows_cover_an_episode():
    scenario = load_scenario("double_pendulum")
    time_s = np.arange(1001) * 0.002
    wave = np.stack([np.sin(2 * time_s), 0.5 * np.cos(2 * time_s)], axis=1)
    zeros = np.zeros_like(wave)
    values = {channel.name: zeros for channel in scenario.channels} | {"joint_position": wave}
    begun = starts_of(scenario, Episode(0, time_s, values), "windows")
    assert [start.row for start in begun] == [10, 260, 510]
    assert {start.steps for start in begun} == {250}
    np.testing.assert_allclose(begun[1].state[:2], wave[260], atol=2e-4)  # the noise
    np.testing.assert_allclose(begun[1].state[2:], [2 * np.cos(2 * 0.52), -np.sin(2 * 0.52)], atol=0.02)


def test_a_start_that_the_scenario_does_not_know():
    scenario = load_scenario("cube_toss")
    assert scenario.evaluation.start(None) == "free_flight"
    with pytest.raises(ConfigError, match="got start 'windows'; expected one of free_flight, first"):
        scenario.evaluation.start("windows")
    with pytest.raises(ScenarioError, match="got no evaluation: free_flight"):
        starts_of(load_scenario("double_pendulum"), flight(), "free_flight")


def test_mean_distance_averages_frames_then_episodes_and_counts_repeats_once():
    metric = ErrorMetric("error_cm", "x", "mean_distance", display_unit=0.01)
    ten, thirty = np.full((4, 2), [0.06, 0.08]), np.full((20, 2), [0.18, 0.24])
    assert metric.episode([ten]) == pytest.approx(10)
    assert metric.total([[ten], [thirty]], ["a", "b"]) == pytest.approx(20)
    assert metric.total([[ten], [thirty], [thirty]], ["a", "b", "b"]) == pytest.approx(20)


def test_rmse_pools_columns_frames_and_episodes():
    metric = ErrorMetric("rmse", "x", "rmse")
    assert metric.total([[np.zeros((3, 2))], [np.array([[2.0, 0.0]])]], ["a", "b"]) == pytest.approx(np.sqrt(4 / 8))


def test_mean_rmse_averages_simulations():
    metric = ErrorMetric("rmse", "x", "mean_rmse", display_unit=0.5)
    assert metric.total([[np.zeros((3, 2))], [np.full((9, 2), 2.0)]], ["a", "b"]) == pytest.approx(2.0)


def test_episodes_that_share_a_tag_repeat_one_trial():
    scenario = load_scenario("cube_toss")
    assert scenario.group(flight(tags={"physical_toss": "12"})) == "12"
    assert scenario.group(flight()) == "episode 0"
