"""Sensors of a stand-in: noise other than stated, biases, delays; and the row of a session that becomes of it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rsr.common import ScenarioError
from rsr.environments import SensorModel, World, at_rest
from rsr.realities.envelope import recordable
from rsr.scenarios import Scenario, Task, rest_command

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
        self._scenario, self._rng, self._count = scenario, rng, count
        self._model = SensorModel(scenario, parameters, count, rng, noise_factor)
        self._noise, self._has_begun = np.ones(scenario.base_model.nv), False
        for each in scenario.observed:
            self._noise[list(each.dofs)] = noise_factor * each.noise

    def __call__(self, world: World) -> dict[str, np.ndarray]:
        """Measure all channels [B, width] that show the simulator."""
        states = world.states
        true = self._scenario.measure(states, world.sensordata if self._scenario.has_sensors else None)
        measured = self._model(true) if self._has_begun else self._model.begin(true, np.arange(self._count))
        self._has_begun = True
        for velocity in self._scenario.velocities:
            dofs = np.array(velocity.dofs)
            noise = self._noise[dofs] * np.sqrt(2.0) / _VELOCITY_WINDOW_S
            values = states[:, self._scenario.base_model.nq + dofs]
            measured[velocity.channel.name] = values + self._rng.normal(0.0, noise, values.shape)
        return measured


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


def _settings(scenario: Scenario, settings: np.ndarray) -> dict[str, np.ndarray]:
    """Channels [B, width] whose columns are all settings [B, C] of effects."""
    found = {}
    for channel in scenario.other_channels:
        named = zip(scenario.settings, settings.T, strict=True)
        own = {each.column: values for each, values in named if each.channel == channel.name}
        if len(own) == channel.width:
            found[channel.name] = np.stack([own[column] for column in range(channel.width)], axis=1)
    return found


def session_row(
    scenario: Scenario,
    channels: Mapping[str, np.ndarray],
    sent: np.ndarray,
    action: np.ndarray,
    share: np.ndarray,
    settings: np.ndarray | None = None,
) -> dict[str, np.ndarray]:
    """Values [B, width] of every channel of the scenario in one control step.

    Args:
        channels: measured, given as goal, or computed by the task.
        sent: commands [B, nu].
        share: of the command that was cut [B].
        settings: of effects [B, C]; by default what stands for the unrecorded.

    Raises:
        ScenarioError: nothing says what a channel is, or it has other columns than its values.
    """
    commanded = {} if scenario.command is None else {scenario.command: sent}
    if settings is None:
        settings = np.tile(scenario.unrecorded[len(scenario.per_episode) :], (len(sent), 1))
    commanded |= _settings(scenario, settings)
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
