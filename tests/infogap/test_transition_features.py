import numpy as np
import pytest

from rsr.common.errors import CalibrationError, ConfigError
from rsr.infogap import Scaler, transition_noise, transitions


def test_transitions_hold_state_action_and_step():
    features = transitions(np.array([[1.0, 2.0]]), np.array([[5.0]]), np.array([[1.5, 1.0]]))
    np.testing.assert_allclose(features, [[1.0, 2.0, 5.0, 0.5, -1.0]])


def test_angles_step_the_short_way_round():
    start, end = np.array([[0.0, np.pi - 0.1]]), np.array([[7.0, -np.pi + 0.1]])
    features = transitions(start, np.zeros((1, 1)), end, angle_columns=[1])
    np.testing.assert_allclose(features[0, -2:], [7.0, 0.2])


def test_transitions_leave_their_arguments_alone():
    start, action, end = np.zeros((3, 2)), np.ones((3, 1)), np.full((3, 2), 4.0)
    transitions(start, action, end, angle_columns=[0])
    assert (start == 0).all()
    assert (end == 4).all()


def test_unequal_lengths_are_explained():
    with pytest.raises(CalibrationError, match=r"3 states, 3 actions, 2 next states.*states\[:-1\]"):
        transitions(np.zeros((3, 2)), np.zeros((3, 1)), np.zeros((2, 2)))


def test_noise_of_a_step_is_that_of_both_ends():
    np.testing.assert_allclose(transition_noise(np.array([0.1, 0.2]), 3), [0, 0, 0, 0, 0, 0.1 * 2**0.5, 0.2 * 2**0.5])


def test_scaler_standardises_the_pooled_data(rng):
    left, right = rng.normal(3, 10, (50, 4)), rng.normal(-2, 0.01, (30, 4))
    scaler = Scaler.fit(left, right)
    pooled = scaler(np.concatenate([left, right]))
    np.testing.assert_allclose(pooled.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(pooled.std(axis=0), 1)


def test_no_column_is_read_more_finely_than_its_sensor(rng):
    data = rng.normal(0, [1e-5, 1.0], (100, 2))
    scaler = Scaler.fit(data, noise=np.array([1e-3, 1e-3]))
    assert scaler.std[0] == 1e-3
    assert scaler.std[1] == pytest.approx(data[:, 1].std())


def test_constant_columns_are_dropped_whatever_their_size(rng):
    data = rng.normal(size=(40, 3))
    data[:, 1] = 1e6 + rng.normal(0, 1e-4, 40)
    scaler = Scaler.fit(data, noise=0.01)
    assert scaler.kept.tolist() == [True, False, True]
    assert scaler(data).shape == (40, 2)
    assert (scaler.columns, scaler.kept_columns) == (3, 2)


def test_scaler_survives_its_arrays(rng):
    data = rng.normal(size=(40, 3))
    scaler = Scaler.fit(data)
    np.testing.assert_array_equal(Scaler.from_arrays(scaler.to_arrays())(data), scaler(data))


@pytest.mark.parametrize(
    ("data", "noise", "error", "text"),
    [
        (np.ones((20, 2)), 0.0, CalibrationError, "all equal"),
        (np.zeros(5), 0.0, CalibrationError, r"shape \[5\]"),
        (np.array(1.0), 0.0, CalibrationError, r"shape \[\]"),
        (np.array([[1.0, np.nan], [2.0, 3.0]]), 0.0, CalibrationError, "first at row 0"),
        (np.eye(3), np.ones(2), ConfigError, r"noise of shape \[2\]"),
        (np.eye(3), -1.0, ConfigError, "not negative"),
    ],
)
def test_bad_data_are_explained(data, noise, error, text):
    with pytest.raises(error, match=text):
        Scaler.fit(data, noise=noise)


def test_features_of_another_width_are_explained(rng):
    with pytest.raises(CalibrationError, match=r"shape \[4, 2\]; expected \[samples, 3\]"):
        Scaler.fit(rng.normal(size=(40, 3)))(np.zeros((4, 2)))
