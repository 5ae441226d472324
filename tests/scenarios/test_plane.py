"""Turns in a plane."""

from __future__ import annotations

import numpy as np

from rsr.common.rotations import rotated, wrapped


def test_vectors_turn_counter_clockwise():
    np.testing.assert_allclose(rotated(np.array([2.0, 0.0]), np.pi / 2), [0.0, 2.0], atol=1e-15)
    turned = rotated(np.array([[1.0, 0.0], [0.0, 1.0]]), np.pi)
    np.testing.assert_allclose(turned, [[-1.0, 0.0], [0.0, -1.0]], atol=1e-15)


def test_each_vector_may_have_an_angle_of_its_own():
    angles = np.array([0.3, -2.0, 5.0])
    turned = rotated(np.tile([1.0, 0.0], (3, 1)), angles)
    np.testing.assert_allclose(turned, np.stack([np.cos(angles), np.sin(angles)], axis=1))


def test_an_angle_stays_the_same_but_for_whole_turns():
    angles = np.linspace(-20.0, 20.0, 401)
    inside = wrapped(angles)
    assert np.abs(inside).max() <= np.pi
    np.testing.assert_allclose(np.exp(1j * inside), np.exp(1j * angles))
