"""The gap check: silent while nothing changes, loud when friction does."""

from __future__ import annotations

import pytest

from rsr.calibration.checks.drift import MARGIN, find_drift
from rsr.common.errors import CalibrationError
from tests.calibration.recordings import calibrated, recording
from tests.push_samples import push_cube

REFERENCE = recording(seed=1).episodes


def check(**options):
    return find_drift(push_cube(), calibrated(), REFERENCE, recording(**options).episodes, seed=0)


@pytest.mark.parametrize("seed", range(2, 8))
def test_new_episodes_of_an_unchanged_robot_raise_no_alarm(seed):
    found = check(seed=seed)
    assert not found.changed
    assert "within the noise band" in str(found)


@pytest.mark.parametrize("change", [("table_friction", 0.3), ("actuator_gain", 0.9), ("control_delay", 0.0)])
def test_a_changed_robot_is_noticed(change):
    found = check(seed=2, truth=(change,))
    assert found.changed
    assert found.gap_now > MARGIN * found.gap_then
    assert "has changed" in str(found)


def test_the_same_episodes_give_the_same_answer():
    assert check(seed=3) == check(seed=3)


def test_one_episode_is_not_enough():
    with pytest.raises(CalibrationError, match="got 12 episodes .* and 1 new ones; expected at least 2 of each"):
        find_drift(push_cube(), calibrated(), REFERENCE, REFERENCE[:1], seed=0)
