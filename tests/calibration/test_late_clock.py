"""A clock that is late: found with its interval where the scenario allows it, warned of where it does not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rsr.calibration import Effort, calibrator, start_prior
from rsr.calibration.loss import Loss
from rsr.calibration.sensitivity import choose_slopes
from rsr.calibration.windows import choose, cut
from rsr.config import TuneConfig
from rsr.progress import ignore
from rsr.scenarios.clocks import on_time, read_late, resampled
from rsr.simulators import MujocoSimulator, put_right
from tests.calibration.late_camera import knowing, late_recording
from tests.calibration.recordings import TRUTH, recording
from tests.push_samples import push_cube

EFFORT = Effort(budget=360, max_windows=32)
LATE = {**TRUTH, "camera_lag": 0.05}


def test_resampling_is_exact_on_straight_lines():
    rows = np.arange(5.0)[:, None] * [1.0, -2.0]
    for moved in (-1.5, -0.25, 0.0, 0.4, 2.0):
        np.testing.assert_allclose(resampled(rows, moved), rows + moved * np.array([1.0, -2.0]), atol=1e-12)
    np.testing.assert_array_equal(resampled(rows[:1], 3.0), rows[:1])


def test_a_late_recording_is_put_on_time():
    """Shifted by whole rows it is the recording that was never late, but for the rows that were lost."""
    scenario, values = knowing(), knowing().space.vector(LATE)
    whole, late = recording().episodes[0], late_recording().episodes[0]
    righted = on_time(scenario, late, values)
    assert len(righted) == len(late) - 1
    for name in ("block_position", "joint_position", "joint_setpoint"):
        np.testing.assert_allclose(righted[name][1:], whole[name][1 : len(righted)], atol=1e-12)
    assert on_time(scenario, late, knowing().space.nominal) is late


def test_early_clocks_lose_their_first_rows():
    early = {**TRUTH, "camera_lag": -0.1}
    righted = on_time(knowing(), recording().episodes[0], knowing().space.vector(early))
    assert len(righted) == len(recording().episodes[0]) - 2
    np.testing.assert_allclose(righted["block_position"], recording().episodes[0]["block_position"][:-2], atol=1e-12)
    np.testing.assert_array_equal(righted["joint_position"], recording().episodes[0]["joint_position"][2:])


def test_reading_late_shows_the_past():
    states = np.cumsum(np.random.default_rng(0).normal(size=(2, 9, knowing().state_size)), axis=1)
    measured = knowing().measure(states)
    shown = read_late(knowing(), measured, knowing().space.vector(LATE))
    np.testing.assert_allclose(shown["block_position"][:, 1:], measured["block_position"][:, :-1])
    np.testing.assert_array_equal(shown["joint_position"], measured["joint_position"])


@pytest.fixture(scope="module")
def simulator():
    with MujocoSimulator(knowing()) as simulator:
        yield simulator


@pytest.fixture(scope="module")
def loss(simulator):
    windows = choose(knowing(), cut(knowing(), late_recording().episodes, 12, 6), 16, np.random.default_rng(0))
    return Loss(knowing(), simulator, windows, start_prior(knowing()))


def test_the_true_lag_explains_the_recording(loss):
    lags_s = np.array([-0.05, 0.0, 0.03, 0.05, 0.07, 0.1])
    points = loss.points(np.array([knowing().space.vector({**TRUTH, "camera_lag": lag_s}) for lag_s in lags_s]))
    assert lags_s[loss(points).argmin()] == 0.05


def test_judging_puts_clocks_right(simulator):
    episodes = late_recording().episodes[:2]
    righted = put_right(knowing(), simulator, episodes, knowing().space.vector(LATE))
    assert [len(episode) for episode in righted] == [len(episode) - 1 for episode in episodes]


@pytest.mark.slow  # compiles
def test_mjx_knows_the_slope_of_a_shift(loss):
    point = loss.points(knowing().space.vector({**TRUTH, "camera_lag": 0.03}))
    _, exact = choose_slopes(knowing(), "mjx")
    _, differences = choose_slopes(knowing(), "differences")
    np.testing.assert_allclose(exact(loss, point)[:, -1], differences(loss, point)[:, -1], atol=1e-9)


@pytest.mark.slow
def test_lag_and_damping_come_back():
    fitting = calibrator(TuneConfig(method="cmaes", fit_episodes=12), EFFORT)
    found = fitting.fit(knowing(), (late_recording(episodes=24),), start_prior(knowing()), 0, ignore)
    for name in ("camera_lag", "joint_damping", "control_delay"):
        assert found.estimates[name].lower <= LATE[name] <= found.estimates[name].upper, name
    assert found.estimates["camera_lag"].verdict in ("identified", "weak")
    assert found.estimates["camera_lag"].lower > 0.0, "that the camera is late is certain"
    assert not [warning for warning in found.warnings if "recorded about" in warning]


def test_a_fit_that_knows_no_lag_warns_of_it():
    fitting = calibrator(TuneConfig(method="cmaes", fit_episodes=6), Effort(budget=120, max_windows=24))
    found = fitting.fit(push_cube(), (late_recording(),), start_prior(push_cube()), 0, ignore)
    warned = [warning for warning in found.warnings if warning.startswith("block_position seems to be recorded")]
    assert warned, found.warnings
    assert "late" in warned[0]
    assert "shifts: block_position" in warned[0]


@pytest.mark.slow
def test_a_clock_that_is_right_is_not_suspected():
    fitting = calibrator(TuneConfig(method="cmaes", fit_episodes=6), Effort(budget=120, max_windows=24))
    right = fitting.fit(push_cube(), (recording(),), start_prior(push_cube()), 0, ignore)
    assert not [warning for warning in right.warnings if "recorded about" in warning]


def test_windows_know_their_surroundings():
    windows = cut(knowing(), late_recording().episodes, 12, 6)
    assert windows.around.shape == (len(windows), 5, knowing().state_size)
    np.testing.assert_array_equal(windows.around[:, 2], windows.starts)
    assert windows.take(np.arange(3)).around.shape[0] == 3
    assert replace(windows).shortened(4).around is windows.around
