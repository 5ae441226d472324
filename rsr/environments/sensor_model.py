"""Sensors of many copies as parameters have them: late, with a gain, a bias and noise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rsr.common import from_rotation_vector, product
from rsr.scenarios import Channels, Observed, Scenario, scales


class SensorModel:
    """Shows what is in B copies, once a control step from the beginning of their episodes.

    Args:
        params: [P] or [B, P]; some of them are sensors' delays, gains and biases.
        noise_factor: of all noise, over what the scenario states.
    """

    def __init__(
        self, scenario: Scenario, params: np.ndarray, count: int, rng: np.random.Generator, noise_factor: float = 1.0
    ) -> None:
        self._rng = rng
        self._observed = [replace(each, noise=noise_factor * each.noise) for each in scenario.observed]
        rows = np.broadcast_to(params, (count, len(scenario.space)))
        self._scales = scales(scenario, rows)
        self._late_steps = {
            name: np.maximum(0.0, rows[:, index] / scenario.control_dt_s) for name, index in scenario.sensor_delays
        }
        widths = {each.channel.name: len(each.places) for each in scenario.observed}
        self._past = {
            name: np.zeros((count, int(np.ceil(late.max())) + 1, widths[name]))  # newest first
            for name, late in self._late_steps.items()
        }
        biased = (each for each in scenario.observed if each.bias_std > 0)
        self._bias = {each.channel.name: np.zeros((count, each.channel.width)) for each in biased}

    def begin(self, true: Channels, copies: np.ndarray) -> dict[str, np.ndarray]:
        """Let episodes of some copies begin where nothing moved before; returns readings of all copies."""
        for name, past in self._past.items():
            past[copies] = true[name][copies][:, None]
        for each in self._observed:
            if each.channel.name in self._bias:
                bias = self._bias[each.channel.name]
                bias[copies] = self._rng.normal(0.0, each.bias_std, (len(copies), bias.shape[1]))
        return self._shown(true)

    def __call__(self, true: Channels) -> dict[str, np.ndarray]:
        """Read all channels [B, width] that show the simulator, a control step after the last time."""
        for name, past in self._past.items():
            self._past[name] = np.concatenate([true[name][:, None], past[:, :-1]], axis=1)
        return self._shown(true)

    def snapshot(self, name: str) -> dict[str, np.ndarray]:
        """Everything that the coming readings depend on, but for the generator."""
        kept = {"past": self._past, "bias": self._bias}
        return {f"{name}.{what}.{key}": values.copy() for what, each in kept.items() for key, values in each.items()}

    def restore(self, snapshot: dict[str, np.ndarray], name: str) -> None:
        """Undo `snapshot`."""
        for what, each in (("past", self._past), ("bias", self._bias)):
            for key in each:
                each[key] = snapshot[f"{name}.{what}.{key}"].copy()

    def _shown(self, true: Channels) -> dict[str, np.ndarray]:
        return {each.channel.name: self._read(each, true[each.channel.name]) for each in self._observed}

    def _read(self, observed: Observed, now: np.ndarray) -> np.ndarray:
        name = observed.channel.name
        if name in self._past:
            now = _late(observed, self._past[name], self._late_steps[name])
        if name in self._scales:
            gain, bias = self._scales[name]
            now = gain * now + bias
        return with_noise(observed, now, self._rng) + self._bias.get(name, 0.0)


def _late(observed: Observed, past: np.ndarray, late_steps: np.ndarray) -> np.ndarray:
    """Values [B, width] as they were so many steps [B] ago, linear between two steps."""
    whole, everyone = np.floor(late_steps), np.arange(len(past))
    newer, older = past[everyone, whole.astype(int)], past[everyone, np.ceil(late_steps).astype(int)]
    value = newer + (late_steps - whole)[:, None] * (older - newer)
    return value / np.linalg.norm(value, axis=1, keepdims=True) if observed.kind == "quaternion" else value


def with_noise(observed: Observed, true: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Measurements [B, width] through the sensor's noise."""
    if observed.kind != "quaternion":
        return true + rng.normal(0.0, observed.noise, true.shape)
    axis = np.eye(3) if observed.noise_axis is None else np.array([observed.noise_axis])
    turn = rng.normal(0.0, observed.noise, (len(true), len(axis))) @ axis
    return product(from_rotation_vector(turn), true)
