"""Differences between what was measured and what was simulated, channel by channel."""

from __future__ import annotations

import numpy as np

from rsr.common import cross, wrapped
from rsr.scenarios.channels.observed import Kind
from rsr.scenarios.scenario import Scenario


def difference(kind: Kind, real: np.ndarray, simulated: np.ndarray) -> np.ndarray:
    """Simulated minus real: [..., C], or a rotation vector [..., 3] in rad for quaternions (wxyz)."""
    if kind == "quaternion":
        return _rotation_between(real, simulated)
    error = simulated - real
    return wrapped(error) if kind == "angle" else error


def residuals(
    scenario: Scenario, real: dict[str, np.ndarray], simulated: dict[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Differences of every observed channel, in the channel's unit: name -> [..., C]."""
    return {
        observed.channel.name: difference(observed.kind, real[observed.channel.name], simulated[observed.channel.name])
        for observed in scenario.observed
    }


def rms(error: np.ndarray) -> float:
    """Root of the mean squared length of error vectors [..., C]."""
    return float(np.sqrt(np.mean(np.sum(np.square(error), axis=-1))))


def _rotation_between(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Rotation vector of first^-1 * second, both [..., 4] wxyz."""
    w1, v1 = first[..., :1], -first[..., 1:]
    w2, v2 = second[..., :1], second[..., 1:]
    w = w1 * w2 - np.sum(v1 * v2, axis=-1, keepdims=True)
    v = w1 * v2 + w2 * v1 + cross(v1, v2)
    sign = np.where(w < 0, -1.0, 1.0)
    w, v = sign * w, sign * v
    sine = np.linalg.norm(v, axis=-1, keepdims=True)
    angle = 2 * np.arctan2(sine, w)
    return v * np.where(sine > 1e-12, angle / np.maximum(sine, 1e-12), 2.0)
