"""Offset and drift between two channels: recovered, with intervals that cover; and what stamps alone tell."""

import numpy as np
import pytest
from scipy.special import stdtrit
from shared_data import pendulum_runs, tosses

from rsr.common.errors import SessionError
from rsr.sessions.checks.frames import find_frames
from rsr.sessions.clocks.estimate import Signal, estimate_clock

SECONDS = 30.0
DRIFT_PPM = 200.0
JITTER_S = 1e-3


def _motion(rng, columns=2):
    """A sum of sines between 0.1 and 2 Hz: [T] -> [T, columns]."""
    hertz, phase = rng.uniform(0.1, 2.0, (columns, 8)), rng.uniform(0, 2 * np.pi, (columns, 8))
    size = rng.normal(size=(columns, 8)) * 0.3 / np.sqrt(hertz)
    return lambda time_s: np.sum(size * np.sin(2 * np.pi * hertz * time_s[:, None, None] + phase), axis=-1)


def _two_channels(seed):
    """An encoder at 100 Hz and a camera at 60 Hz that see one motion, with losses, jitter, offset and drift."""
    rng = np.random.default_rng(seed)
    motion, offset_s = _motion(rng), rng.uniform(-0.05, 0.05)
    encoder_s, camera_s = (np.arange(0, SECONDS, 1 / rate) for rate in (100.0, 60.0))
    encoder_s, camera_s = (each[rng.random(len(each)) > 0.05] for each in (encoder_s, camera_s))
    stamps_s = camera_s + offset_s + 1e-6 * DRIFT_PPM * camera_s + rng.normal(0, JITTER_S, len(camera_s))
    encoder = Signal(encoder_s, motion(encoder_s) + rng.normal(0, 2e-3, (len(encoder_s), 2)))
    camera = Signal(stamps_s, 0.9 * motion(camera_s) + 0.1 + rng.normal(0, 2e-3, (len(camera_s), 2)))
    return encoder, camera, offset_s


def _judged(seed):
    """Error of the offset, and whether the intervals of offset and drift hold the truth."""
    encoder, camera, offset_s = _two_channels(seed)
    clock = estimate_clock([encoder], [camera])
    assert clock.status == "found"
    truth_s = offset_s + 1e-6 * DRIFT_PPM * clock.at_s
    lower_s, upper_s = clock.offset_interval_s
    off_ppm = stdtrit(clock.freedom, 0.975) * clock.drift_error_ppm
    return clock.offset_s - truth_s, lower_s <= truth_s <= upper_s, abs(clock.drift_ppm - DRIFT_PPM) <= off_ppm, clock


@pytest.mark.slow
def test_offset_within_a_millisecond_and_intervals_that_cover():
    found = [_judged(seed) for seed in range(30_000, 30_100)]
    assert max(abs(error) for error, *_ in found) < 1e-3
    assert sum(covers for _, covers, _, _ in found) >= 90
    assert sum(covers for _, _, covers, _ in found) >= 90
    jitters_s = np.array([clock.jitter_s for *_, clock in found])
    assert np.median(jitters_s) == pytest.approx(JITTER_S, rel=0.1)


def test_gains_are_the_ratio_of_the_signals():
    *_, clock = _judged(20_000)
    np.testing.assert_allclose(clock.gains, 0.9, rtol=0.01)
    assert clock.jitter_s == pytest.approx(JITTER_S, abs=4 * clock.jitter_error_s)


def test_stamps_come_back_in_the_first_clock():
    encoder, camera, offset_s = _two_channels(20_001)
    clock = estimate_clock([encoder], [camera])
    told = clock.to_reference(camera.stamps_s)
    true_s = (camera.stamps_s - offset_s) / (1 + 1e-6 * DRIFT_PPM)
    assert np.abs(told - true_s).max() < 0.5e-3


def test_a_velocity_stamped_one_step_late_is_found():
    rng, step_s = np.random.default_rng(5), 0.01
    motion, time_s = _motion(rng), np.arange(0, 20, step_s)
    velocity = np.gradient(motion(time_s), step_s, axis=0)
    late = Signal(time_s + step_s, velocity + rng.normal(0, 0.02, velocity.shape))
    clock = estimate_clock([Signal(time_s, motion(time_s))], [late], relation="derivative", drift=False)
    assert clock.drift_ppm == clock.drift_error_ppm == 0.0
    assert clock.offset_s == pytest.approx(step_s, abs=3e-4)
    np.testing.assert_allclose(clock.gains, 1.0, rtol=0.02)


def test_episodes_share_one_offset():
    rng, time_s = np.random.default_rng(6), np.arange(0, 2.0, 0.01)
    motions = [_motion(rng) for _ in range(8)]
    clock = estimate_clock(
        [Signal(time_s, motion(time_s)) for motion in motions],
        [Signal(time_s + 0.023, motion(time_s) + rng.normal(0, 1e-3, (200, 2))) for motion in motions],
        drift=False,
    )
    lower_s, upper_s = clock.offset_interval_s
    assert lower_s - 1e-5 < 0.023 < upper_s + 1e-5


def test_periodic_motion_is_ambiguous():
    time_s = np.arange(0, 20.0, 0.01)
    wave = np.sin(2 * np.pi * 4 * time_s)
    noise = np.random.default_rng(7).normal(0, 0.01, len(time_s))
    assert estimate_clock([Signal(time_s, wave)], [Signal(time_s + 0.02, wave + noise)]).status == "ambiguous"


def test_an_offset_at_the_end_of_the_search_is_not_called_found():
    time_s = np.arange(0, 20.0, 0.01)
    slow = np.cumsum(np.cumsum(np.random.default_rng(11).normal(size=len(time_s))))
    slow += 1e-3 * np.std(slow) * np.random.default_rng(12).normal(size=len(time_s))
    first, late = Signal(time_s, slow), Signal(time_s + 0.4, slow)
    assert estimate_clock([first], [late], max_offset_s=0.1).status == "ambiguous"


def test_unrelated_signals_are_told():
    rng, time_s = np.random.default_rng(8), np.arange(0, 20.0, 0.01)
    first, second = (Signal(time_s, _motion(rng, 1)(time_s)) for _ in range(2))
    assert estimate_clock([first], [second], max_offset_s=0.1).status == "no common motion"


def test_stamps_out_of_order_and_nan_are_left_out():
    encoder, camera, offset_s = _two_channels(20_002)
    stamps_s, values = camera.stamps_s.copy(), camera.values.copy()
    stamps_s[100], stamps_s[200], values[300] = stamps_s[90], np.nan, np.nan
    clock = estimate_clock([encoder], [Signal(stamps_s, values)])
    assert clock.offset_s == pytest.approx(offset_s + 1e-6 * DRIFT_PPM * clock.at_s, abs=1e-3)


@pytest.mark.parametrize(
    ("reference", "other", "words"),
    [
        ([], [], "got 0 and 0 episodes"),
        ([Signal(np.arange(50.0), np.zeros((50, 2)))], [Signal(np.arange(50.0), np.zeros(50))], "2 and 1 columns"),
        ([Signal(np.arange(5.0), np.zeros(5))], [Signal(np.arange(5.0), np.zeros(5))], "too little common time"),
    ],
)
def test_what_cannot_be_compared_is_refused(reference, other, words):
    with pytest.raises(SessionError) as raised:
        estimate_clock(reference, other)
    assert words in str(raised.value)


def test_signals_at_rest_have_no_common_motion():
    time_s = np.arange(0, 10.0, 0.01)
    still = Signal(time_s, np.zeros(len(time_s)))
    assert estimate_clock([still], [still]).status == "no common motion"


def test_velocities_of_real_tosses_are_half_a_frame_late():
    session = tosses()
    clock = estimate_clock(
        [Signal(episode.time_s, episode["cube_position"]) for episode in session.episodes[:60]],
        [Signal(episode.time_s, episode["linear_velocity"]) for episode in session.episodes[:60]],
        relation="derivative",
        drift=False,
        max_offset_s=0.1,
    )
    rows = clock.offset_s / session.card.control_dt_s
    assert clock.status == "found"
    assert rows == pytest.approx(0.5, abs=0.02)


def test_velocities_of_a_real_pendulum_are_half_a_row_late():
    episodes = pendulum_runs().episodes[:2]
    clock = estimate_clock(
        [Signal(episode.time_s, episode["joint_position"]) for episode in episodes],
        [Signal(episode.time_s, episode["joint_velocity"]) for episode in episodes],
        relation="derivative",
        drift=False,
        max_offset_s=0.1,
    )
    assert clock.offset_s / 0.002 == pytest.approx(0.5, abs=0.01)


def test_rate_jitter_and_losses_of_a_clock():
    rng = np.random.default_rng(9)
    time_s = 3.0 + 0.01 * (1 + 2e-4) * np.arange(3000)
    kept = rng.random(3000) > 0.05
    kept[[0, -1]] = True
    frames = find_frames((time_s + rng.normal(0, 5e-4, 3000))[kept])
    assert frames.lost == 3000 - kept.sum()
    assert frames.rate_hz == pytest.approx(100 / (1 + 2e-4), rel=1e-5)
    assert frames.jitter_s == pytest.approx(5e-4, abs=4 * frames.jitter_error_s)
    assert (frames.repeated.size, frames.disordered.size) == (0, 0)
    assert {int(row) for row in frames.gaps} == set(np.flatnonzero(np.diff(np.flatnonzero(kept)) > 1))


def test_a_wandering_clock_loses_no_frames():
    rng = np.random.default_rng(10)
    frames = find_frames(np.cumsum(0.02 + np.abs(rng.normal(0, 1e-3, 2000))))
    assert frames.lost == 0


def test_repeated_and_disordered_frames():
    time_s = np.arange(100) * 0.01
    values = np.sin(2 * np.pi * time_s)[:, None]
    values[20] = values[19]
    time_s[50], time_s[60] = time_s[49], time_s[55]
    frames = find_frames(time_s, values)
    np.testing.assert_array_equal(frames.repeated, [20, 50])
    np.testing.assert_array_equal(frames.disordered, [60])


def test_readings_at_rest_are_no_repeats():
    values = np.concatenate([np.zeros(50), np.round(np.arange(50) / 3)])
    assert find_frames(np.arange(100) * 0.01, values).repeated.size == 0


def test_too_few_stamps():
    with pytest.raises(SessionError, match="got 2 stamps in order of 5"):
        find_frames(np.array([0.0, 1.0, np.nan, 0.5, 1.0]))
