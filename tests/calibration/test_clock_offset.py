"""Sensor delays: identified where the scenario declares them, warned of where it does not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rsr.calibration import Effort, calibrator, start_prior
from rsr.calibration.checks.clock_offset import _Offset, _predicts
from rsr.calibration.problem.loss import Loss
from rsr.calibration.problem.sensitivity import choose_jacobian
from rsr.calibration.problem.windows import choose, cut
from rsr.common.progress import ignore
from rsr.config import TuneConfig
from rsr.scenarios.channels.sensors import on_time, readings, resampled
from rsr.simulators import MujocoSimulator, correct_sensors
from tests.calibration.delayed_camera import declared, delayed_recording
from tests.calibration.recordings import TRUTH, recording
from tests.push_samples import push_cube

EFFORT = Effort(budget=360, max_windows=32)
DELAYED = {**TRUTH, "camera_lag": 0.05}


def test_resampling_is_exact_on_straight_lines():
    rows = np.arange(5.0)[:, None] * [1.0, -2.0]
    for moved in (-1.5, -0.25, 0.0, 0.4, 2.0):
        np.testing.assert_allclose(resampled(rows, moved), rows + moved * np.array([1.0, -2.0]), atol=1e-12)
    np.testing.assert_array_equal(resampled(rows[:1], 3.0), rows[:1])


def test_delay_correction_restores_the_recording():
    """Shifted by whole rows it is the recording without delay, but for the lost rows."""
    scenario, values = declared(), declared().space.vector(DELAYED)
    whole, late = recording().episodes[0], delayed_recording().episodes[0]
    corrected = on_time(scenario, late, values)
    assert len(corrected) == len(late) - 1
    for name in ("block_position", "joint_position", "joint_setpoint"):
        np.testing.assert_allclose(corrected[name][1:], whole[name][1 : len(corrected)], atol=1e-12)
    assert on_time(scenario, late, declared().space.nominal) is late


def test_negative_delay_loses_the_first_rows():
    early = {**TRUTH, "camera_lag": -0.1}
    corrected = on_time(declared(), recording().episodes[0], declared().space.vector(early))
    assert len(corrected) == len(recording().episodes[0]) - 2
    np.testing.assert_allclose(corrected["block_position"], recording().episodes[0]["block_position"][:-2], atol=1e-12)
    np.testing.assert_array_equal(corrected["joint_position"], recording().episodes[0]["joint_position"][2:])


def test_delayed_reading_shows_the_past():
    states = np.cumsum(np.random.default_rng(0).normal(size=(2, 9, declared().state_size)), axis=1)
    measured = declared().measure(states)
    shown = readings(declared(), measured, declared().space.vector(DELAYED))
    np.testing.assert_allclose(shown["block_position"][:, 1:], measured["block_position"][:, :-1])
    np.testing.assert_array_equal(shown["joint_position"], measured["joint_position"])


@pytest.fixture(scope="module")
def simulator():
    with MujocoSimulator(declared()) as simulator:
        yield simulator


@pytest.fixture(scope="module")
def loss(simulator):
    windows = choose(declared(), cut(declared(), delayed_recording().episodes, 12, 6), 16, np.random.default_rng(0))
    return Loss(declared(), simulator, windows, start_prior(declared()))


def test_the_true_lag_explains_the_recording(loss):
    lags_s = np.array([-0.05, 0.0, 0.03, 0.05, 0.07, 0.1])
    points = loss.points(np.array([declared().space.vector({**TRUTH, "camera_lag": lag_s}) for lag_s in lags_s]))
    assert lags_s[loss(points).argmin()] == 0.05


def test_sensor_correction_removes_the_delay(simulator):
    episodes = delayed_recording().episodes[:2]
    corrected = correct_sensors(declared(), simulator, episodes, declared().space.vector(DELAYED))
    assert [len(episode) for episode in corrected] == [len(episode) - 1 for episode in episodes]


@pytest.mark.slow  # compiles
def test_jacobian_has_the_column_of_a_sensor_delay(loss):
    point = loss.points(declared().space.vector({**TRUTH, "camera_lag": 0.03}))
    _, exact = choose_jacobian(declared(), "mjx")
    _, differences = choose_jacobian(declared(), "differences")
    np.testing.assert_allclose(exact(loss, point)[:, -1], differences(loss, point)[:, -1], atol=1e-9)


@pytest.mark.slow
def test_lag_and_damping_come_back():
    fitting = calibrator(TuneConfig(method="cmaes", fit_episodes=12), EFFORT)
    found = fitting.fit(declared(), (delayed_recording(episodes=24),), start_prior(declared()), 0, ignore)
    for name in ("camera_lag", "joint_damping", "control_delay"):
        assert found.estimates[name].lower <= DELAYED[name] <= found.estimates[name].upper, name
    assert found.estimates["camera_lag"].verdict in ("identified", "weak")
    assert found.estimates["camera_lag"].lower > 0.0, "that the camera is late is certain"
    assert not [warning for warning in found.warnings if "recorded about" in warning]


@pytest.mark.slow
def test_undeclared_delay_is_warned_of():
    fitting = calibrator(TuneConfig(method="cmaes", fit_episodes=6), Effort(budget=240, max_windows=64))
    found = fitting.fit(push_cube(), (delayed_recording(),), start_prior(push_cube()), 0, ignore)
    warned = [warning for warning in found.warnings if warning.startswith("block_position seems to be recorded")]
    assert warned, found.warnings
    assert "late" in warned[0]
    assert "sensor_delay: block_position" in warned[0]


@pytest.mark.slow
def test_no_warning_without_an_offset():
    fitting = calibrator(TuneConfig(method="cmaes", fit_episodes=6), Effort(budget=120, max_windows=24))
    right = fitting.fit(push_cube(), (recording(),), start_prior(push_cube()), 0, ignore)
    assert not [warning for warning in right.warnings if "recorded about" in warning]


def test_windows_carry_the_states_around_them():
    windows = cut(declared(), delayed_recording().episodes, 12, 6)
    assert windows.around.shape == (len(windows), 5, declared().state_size)
    np.testing.assert_array_equal(windows.around[:, 2], windows.starts)
    assert windows.take(np.arange(3)).around.shape[0] == 3
    assert replace(windows).shortened(4).around is windows.around


def predicts_better(session, rows: float) -> bool:
    """Whether block_position, moved by rows at the true parameters, predicts the second half of the episodes better."""
    scenario = push_cube()
    point = start_prior_point(scenario)
    fitted, unseen = session.episodes[::2], session.episodes[1::2]
    windows = choose(scenario, cut(scenario, fitted, 12, 6), 24, np.random.default_rng(0))
    with MujocoSimulator(scenario) as simulator:
        loss = Loss(scenario, simulator, windows, start_prior(scenario))
        step = np.append(np.zeros(len(point)), rows)
        return _predicts(loss, unseen, point, _Offset("block_position", step, 5.0))


def start_prior_point(scenario):
    prior = start_prior(scenario)
    return (scenario.space.to_coordinates(scenario.space.vector(TRUTH)) - prior.mean) / prior.std


def test_an_offset_is_only_believed_if_it_predicts_what_was_not_fitted():
    """Five of six alarms were false: a missing effect fits better with an offset, and predicts no better."""
    assert predicts_better(delayed_recording(), 1.0)
    assert not predicts_better(delayed_recording(), -1.0)
    for rows in (-0.5, 0.3, 1.0):
        assert not predicts_better(recording(), rows)
