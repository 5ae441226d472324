"""Sensors of a stand-in: noise other than stated, biases, lateness; and the row of a session that becomes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from rsr.environments import World
from rsr.environments.measuring import at_rest, with_noise
from rsr.errors import ScenarioError
from rsr.realities.envelope import recordable
from rsr.scenarios import Observed, Scenario, Task
from rsr.scenarios.commands import rest_command
from rsr.scenarios.sensors import scaled

_VELOCITY_WINDOW_S = 0.1
"""A recorded velocity is as noisy as the difference of two positions this far apart."""


class Sensors:
    """Sensors of B copies, read once a control step from the beginning of their episodes.

    Args:
        noise_factor: of all noise, over what the scenario states.
        parameters: [P], of the world that is measured: some of them are sensors' delays, gains and biases.
    """

    def __init__(
        self, scenario: Scenario, noise_factor: float, parameters: np.ndarray, count: int, rng: np.random.Generator
    ) -> None:
        self._scenario, self._parameters, self._rng = scenario, parameters, rng
        self._observed = [replace(each, noise=noise_factor * each.noise) for each in scenario.observed]
        self._noise = np.ones(scenario.base_model.nv)
        for each in self._observed:
            self._noise[list(each.dofs)] = each.noise
        self._late_steps = {
            name: max(0.0, parameters[index] / scenario.control_dt_s) for name, index in scenario.sensor_delays
        }
        biased = [each for each in scenario.observed if each.bias_std > 0]
        self._bias = {each.channel.name: rng.normal(0.0, each.bias_std, (count, each.channel.width)) for each in biased}
        self._shown: dict[str, list[np.ndarray]] = {}

    def __call__(self, world: World) -> dict[str, np.ndarray]:
        """Measure all channels [B, width] that show the simulator."""
        states = world.states
        true = self._scenario.measure(states, world.sensordata if self._scenario.has_sensors else None)
        true = scaled(self._scenario, true, self._parameters)
        measured = {each.channel.name: self._read(each, true[each.channel.name]) for each in self._observed}
        for velocity in self._scenario.velocities:
            dofs = np.array(velocity.dofs)
            noise = self._noise[dofs] * np.sqrt(2.0) / _VELOCITY_WINDOW_S
            values = states[:, self._scenario.base_model.nq + dofs]
            measured[velocity.channel.name] = values + self._rng.normal(0.0, noise, values.shape)
        return measured

    def _read(self, observed: Observed, now: np.ndarray) -> np.ndarray:
        name = observed.channel.name
        if name in self._late_steps:
            now = self._late(observed, now)
        return with_noise(observed, now, self._rng) + self._bias.get(name, 0.0)

    def _late(self, observed: Observed, now: np.ndarray) -> np.ndarray:
        """Values as they were so many steps ago, linear between two steps; before the beginning nothing moved."""
        name = observed.channel.name
        steps = self._late_steps[name]
        shown = self._shown.setdefault(name, [])
        shown.insert(0, now)
        del shown[int(np.ceil(steps)) + 1 :]
        newer, older = (shown[min(int(age), len(shown) - 1)] for age in (np.floor(steps), np.ceil(steps)))
        value = newer + (steps - np.floor(steps)) * (older - newer)
        return value / np.linalg.norm(value, axis=1, keepdims=True) if observed.kind == "quaternion" else value


def check_recordable(scenario: Scenario, task: Task) -> None:
    """Try one row of a session before anything moves.

    Raises:
        ScenarioError: nothing says what a channel is, or it has other columns than its values.
    """
    starts = task.reset(np.random.default_rng(0), 1)
    velocities = {each.channel.name: np.zeros((1, each.channel.width)) for each in scenario.velocities}
    command = rest_command(scenario.base_model, starts.qpos)
    channels = {**at_rest(scenario, task, starts), **velocities}
    session_row(scenario, channels, command, np.zeros((1, task.action.size)), np.zeros(1))


def _settings(scenario: Scenario, count: int) -> dict[str, np.ndarray]:
    """Channels [B, width] whose columns are all settings of effects, as they are where nothing is recorded."""
    settings = scenario.effects.settings if scenario.effects else ()
    found = {}
    for channel in scenario.other_channels:
        own = {each.column: each.otherwise for each in settings if each.channel == channel.name}
        if len(own) == channel.width:
            found[channel.name] = np.tile([own[column] for column in range(channel.width)], (count, 1))
    return found


def session_row(
    scenario: Scenario,
    channels: Mapping[str, np.ndarray],
    sent: np.ndarray,
    action: np.ndarray,
    share: np.ndarray,
) -> dict[str, np.ndarray]:
    """Values [B, width] of every channel of the scenario in one control step.

    Args:
        channels: measured, given as goal, or computed by the task.
        sent: commands [B, nu].
        share: of the command that was cut [B].

    Raises:
        ScenarioError: nothing says what a channel is, or it has other columns than its values.
    """
    commanded = {} if scenario.command is None else {scenario.command: sent}
    commanded |= _settings(scenario, len(sent))
    known = {**channels, **commanded, "action": recordable(action), "clipped": share[:, None]}
    row = {}
    for channel in scenario.channels:
        if channel.name not in known:
            raise _undefined(scenario, channel.name, f"one of {', '.join(known)}", "a channel that nothing measures")
        row[channel.name] = np.array(known[channel.name], float)
        if row[channel.name].shape[-1] != channel.width:
            got = f"{channel.width} columns for {row[channel.name].shape[-1]} values"
            raise _undefined(scenario, channel.name, "one column a value", got)
    return row


def _undefined(scenario: Scenario, name: str, expected: str, got: str) -> ScenarioError:
    return ScenarioError(
        got=got,
        expected=expected,
        where=f"scenario {scenario.name}, channel {name}",
        next_step="Let the channel read the model, let the task compute it (`derived`) or list it as its goal.",
    )
