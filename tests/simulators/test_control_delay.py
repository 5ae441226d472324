import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from rsr.simulators import delay_weights, delayed

DT_S, SUBSTEPS, HISTORY = 0.05, 5, 3
DELAYS_S = st.floats(0.0, HISTORY * DT_S)


def weights(delay_s: float) -> np.ndarray:
    return delay_weights(delay_s, DT_S, SUBSTEPS, HISTORY)


def commands(steps: int = 6, width: int = 2) -> np.ndarray:
    """[1, H + T, nu]."""
    return np.random.default_rng(0).normal(size=(1, HISTORY + steps, width))


@settings(max_examples=100, deadline=None)
@given(DELAYS_S)
def test_rows_share_out_one_command(delay_s):
    rows = weights(delay_s)
    np.testing.assert_allclose(rows.sum(axis=1), 1.0, atol=1e-12)
    assert (rows >= -1e-12).all()


@settings(max_examples=100, deadline=None)
@given(DELAYS_S, st.floats(0.0, 1e-3))
def test_continuous_in_the_delay(delay_s, change_s):
    later = min(delay_s + change_s, HISTORY * DT_S)
    # A physics step of DT / SUBSTEPS passes from one command to the next: its share moves by that much at most.
    assert np.abs(weights(later) - weights(delay_s)).max() <= SUBSTEPS / DT_S * (later - delay_s) + 1e-12


def test_no_delay_is_the_newest_command():
    sent = commands()
    np.testing.assert_allclose(weights(0.0), np.eye(HISTORY + 1)[[0] * SUBSTEPS], atol=1e-12)
    controls = delayed(sent, weights(0.0)[None])
    np.testing.assert_allclose(controls, np.repeat(sent[:, HISTORY:], SUBSTEPS, axis=1), atol=1e-12)


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_whole_control_steps_are_a_shift(steps):
    sent = commands()
    controls = delayed(sent, weights(steps * DT_S)[None])
    np.testing.assert_allclose(controls, np.repeat(sent[:, HISTORY - steps : -steps], SUBSTEPS, axis=1), atol=1e-12)


def test_whole_physics_steps_are_a_shift_of_the_controls():
    sent = commands()
    at_once = np.repeat(sent, SUBSTEPS, axis=1)
    for late in range(HISTORY * SUBSTEPS + 1):
        controls = delayed(sent, weights(late * DT_S / SUBSTEPS)[None])
        first = HISTORY * SUBSTEPS - late
        np.testing.assert_allclose(controls, at_once[:, first : first + controls.shape[1]], atol=1e-9)


@settings(max_examples=30, deadline=None)
@given(DELAYS_S)
def test_any_delay_is_the_time_average_of_the_held_commands(delay_s):
    sent = commands(steps=3)
    controls = delayed(sent, weights(delay_s)[None])
    fine = 400  # instants a physics step
    time_s = (np.arange(controls.shape[1] * fine) + 0.5) * DT_S / SUBSTEPS / fine
    held = sent[0, np.floor((time_s - delay_s) / DT_S).astype(int) + HISTORY]
    averaged = held.reshape(controls.shape[1], fine, -1).mean(axis=1)
    np.testing.assert_allclose(controls[0], averaged, atol=6 / fine)


def test_beyond_the_history_the_oldest_command_stands_in():
    np.testing.assert_allclose(weights(HISTORY * DT_S + 0.02), np.eye(HISTORY + 1)[[HISTORY] * SUBSTEPS], atol=1e-12)


def test_every_window_may_have_its_own_delay():
    sent = np.concatenate([commands(), commands()])
    controls = delayed(sent, np.stack([weights(0.0), weights(DT_S)]))
    np.testing.assert_allclose(controls[1, SUBSTEPS:], controls[0, :-SUBSTEPS], atol=1e-12)
