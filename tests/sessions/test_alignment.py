"""Resampling says what was measured, and nothing where nothing was."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from rsr.common.errors import SessionError
from rsr.sessions.clocks.alignment import forward_only, resample

STAMPS_S = np.array([0.0, 0.1, 0.2, 0.6, 0.7])
VALUES = np.array([0.0, 1.0, 2.0, 6.0, 7.0])


def _at(times_s, **options):
    return resample(STAMPS_S, VALUES, np.array(times_s), max_gap_s=0.15, **options)


def test_straight_lines_between_measurements():
    found = _at([0.0, 0.05, 0.15, 0.7])
    np.testing.assert_allclose(found.values[:, 0], [0.0, 0.5, 1.5, 7.0], atol=1e-12)
    assert found.valid.all()


def test_nothing_is_claimed_in_gaps_nor_beyond_the_ends():
    found = _at([-0.01, 0.3, 0.59, 0.71])
    assert not found.valid.any()
    assert np.isnan(found.values).all()


def test_measurements_beside_a_gap_stay():
    np.testing.assert_array_equal(_at([0.2, 0.6]).values[:, 0], [2.0, 6.0])


def test_commands_hold_until_they_are_too_old():
    found = _at([-0.1, 0.0, 0.09, 0.34, 0.36, 0.65], kind="hold")
    np.testing.assert_array_equal(found.valid, [False, True, True, True, False, True])
    np.testing.assert_array_equal(found.values[found.valid, 0], [0.0, 0.0, 2.0, 6.0])


def test_rows_that_are_not_finite_are_gaps():
    values = np.where(np.arange(5) == 1, np.nan, VALUES)
    found = resample(STAMPS_S, values, np.array([0.1, 0.65]), max_gap_s=0.15)
    np.testing.assert_array_equal(found.valid, [False, True])
    assert not resample(STAMPS_S, np.full(5, np.nan), STAMPS_S, max_gap_s=1.0).valid.any()


def test_one_measurement_speaks_for_its_own_time_alone():
    found = resample(np.array([1.0]), np.array([5.0]), np.array([0.9, 1.0, 1.1]), max_gap_s=1.0)
    np.testing.assert_array_equal(found.valid, [False, True, False])


def test_orientations_turn_the_short_way_at_constant_speed():
    angle = np.array([0.0, 1.0])
    quaternions = np.stack([np.cos(angle / 2), np.zeros(2), np.zeros(2), np.sin(angle / 2)], axis=1)
    quaternions[1] *= -1  # the same orientation
    grid_s = np.array([0.0, 0.25, 0.5, 1.0])
    found = resample(np.array([0.0, 1.0]), quaternions, grid_s, max_gap_s=2.0, kind="quaternion").values
    np.testing.assert_allclose(np.abs(found[:, 0]), np.cos(grid_s / 2), atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1.0)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_values_stay_between_their_neighbours_and_gaps_stay_empty(data):
    steps = data.draw(st.lists(st.floats(1e-3, 1.0), min_size=1, max_size=20))
    stamps_s = np.cumsum(steps)
    values = np.array(data.draw(st.lists(st.floats(-10, 10), min_size=len(steps), max_size=len(steps))))
    grid_s = np.array(data.draw(st.lists(st.floats(-1.0, 21.0), min_size=1, max_size=20)))
    found = resample(stamps_s, values, grid_s, max_gap_s=0.3)
    assert np.isnan(found.values[~found.valid]).all()
    for time_s, value in zip(grid_s[found.valid], found.values[found.valid, 0], strict=True):
        after = min(int(np.searchsorted(stamps_s, time_s)), len(stamps_s) - 1)
        near = values[max(0, after - 1) : after + 2]
        assert near.min() - 1e-9 <= value <= near.max() + 1e-9
        assert np.abs(stamps_s - time_s).min() <= 0.15 + 1e-6


@pytest.mark.parametrize(
    ("stamps_s", "values", "kind", "words"),
    [
        ([0.0, 0.0, 1.0], np.zeros(3), "linear", "stamp 0.000000 s in row 1, not later than the one before it"),
        ([0.0, np.nan, 1.0], np.zeros(3), "linear", "not later"),
        ([0.0, 1.0], np.zeros(3), "linear", "stamps of shape (2,) and values of shape (3, 1)"),
        ([0.0, 1.0, 2.0], np.zeros(3), "cubic", "got kind 'cubic'; expected one of linear, hold, quaternion"),
        ([0.0, 1.0, 2.0], np.ones((3, 3)), "quaternion", "got 3 columns, or a zero; expected quaternions wxyz"),
    ],
)
def test_bad_input_is_refused(stamps_s, values, kind, words):
    with pytest.raises(SessionError) as raised:
        resample(np.array(stamps_s), values, np.zeros(1), max_gap_s=1.0, kind=kind)
    assert words in str(raised.value)


def test_only_rows_that_go_forward_are_kept():
    stamps_s = np.array([0.0, 1.0, 1.0, 0.5, np.nan, 2.0, 1.5, 3.0])
    np.testing.assert_array_equal(forward_only(stamps_s), [True, True, False, False, False, True, False, True])
