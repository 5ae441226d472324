"""Whatever stamps and readings are, clocks and checks answer or refuse; they never crash, warn or fill the memory."""

from dataclasses import replace

import numpy as np
import pytest
from sample_sessions import CHANNELS, make_session

from rsr.common.errors import SessionError
from rsr.sessions.checks.frames import find_frames
from rsr.sessions.checks.inspection import inspect_session
from rsr.sessions.clocks.alignment import forward_only, resample
from rsr.sessions.clocks.estimate import Signal, estimate_clock

ABSURD = (1e300, -1e308, 1e160, 1e12, -1e12, 1e-320, np.nan, np.inf, -np.inf, 0.0, 0.3)


def _spoil(array, rng):
    """Damage some rows, all rows from one on, or the scale."""
    array, value, row = array.copy(), rng.choice(ABSURD), rng.integers(len(array))
    with np.errstate(all="ignore"):
        match rng.integers(4):
            case 0:
                array[row] = value
            case 1:
                array[row:] = value
            case 2:
                array[row:] += value
            case _:
                array *= value
    return array


@pytest.mark.parametrize("seed", range(4))
def test_clocks_of_damaged_signals(seed):
    rng, time_s = np.random.default_rng(seed), np.arange(0, 3.0, 0.01)
    for _ in range(25):
        motion = np.cumsum(rng.normal(size=(300, 2)), axis=0)
        parts = [time_s, motion, time_s + 0.01, motion + rng.normal(0, 0.1, (300, 2))]
        for place in rng.choice(4, size=2):
            parts[place] = _spoil(parts[place], rng)
        try:
            clock = estimate_clock([Signal(*parts[:2])], [Signal(*parts[2:])])
            assert np.isfinite(clock.offset_s)
        except SessionError:  # refused, which is as good an answer
            continue


@pytest.mark.parametrize("seed", range(4))
def test_damaged_stamps(seed):
    rng = np.random.default_rng(seed)
    for _ in range(50):
        stamps_s = rng.permutation(_spoil(np.arange(100) * 0.01, rng)) if rng.random() < 0.2 else None
        stamps_s = _spoil(np.arange(100) * 0.01, rng) if stamps_s is None else stamps_s
        kept = forward_only(stamps_s)
        found = resample(stamps_s[kept], np.arange(float(kept.sum())), np.linspace(-1, 2, 40), max_gap_s=0.1)
        assert np.isfinite(found.values[found.valid]).all()
        try:
            frames = find_frames(stamps_s, rng.normal(size=(100, 2)))
            assert frames.period_s > 0
            assert frames.lost >= 0
        except SessionError:
            continue


@pytest.mark.parametrize("seed", range(3))
def test_checks_of_damaged_sessions(seed):
    rng = np.random.default_rng(seed)
    for _ in range(8):
        episodes = []
        for episode in make_session(seed=seed).episodes:
            name = rng.choice([channel.name for channel in CHANNELS])
            values = {**episode.values, name: _spoil(episode[name], rng)}
            time_s = _spoil(episode.time_s, rng) if rng.random() < 0.2 else episode.time_s
            episodes.append(replace(episode, values=values, time_s=time_s))
        inspection = inspect_session(replace(make_session(), episodes=tuple(episodes)), CHANNELS)
        assert inspection.verdict in ("use", "use with care", "reject")
        assert [row.channel for row in inspection.channels] == list(CHANNELS)
