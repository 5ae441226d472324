"""Between a robot's dictionaries and the scenario's channels: names, order, units, signs, zeros, ages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rsr.common import PolicyError, RealityError
from rsr.policies import RobotInterface, command_channel
from rsr.realities.envelope import SafetyEnvelope
from rsr.realities.robot_file import DURING_CALL, RobotFile, Signals
from rsr.scenarios import Scenario, limits_of, task_of
from rsr.sessions import Channel, convertible, factor


@dataclass(frozen=True)
class Reading:
    """One measurement of the robot.

    Args:
        values: channel -> [1, width], in the scenario's units.
        age_s: channel -> how long before the end of the call it was measured.
    """

    values: Mapping[str, np.ndarray]
    age_s: Mapping[str, float]


class Wiring:
    """A robot's file, applied to a scenario."""

    def __init__(self, file: RobotFile, scenario: Scenario) -> None:
        self._file = file
        channels = {channel.name: channel for channel in scenario.channels}
        command = command_channel(scenario)
        self._command = _Lines(file.command, command.unit)
        self._lines = {
            name: _Lines(signals, channels[name].unit) for name, signals in file.channels.items() if name in channels
        }
        self.body = RobotInterface(
            name=f"robot {file.robot}",
            rate_hz=file.rate_hz,
            joints=tuple(file.command.keys),
            command_unit=_unit(file.command, command.unit),
            channels=tuple(self._described(scenario)),
        )

    @property
    def simulated(self) -> bool:
        return self._file.simulated

    @property
    def gains(self) -> dict[str, float]:
        return dict(self._file.gains)

    def envelope(self, scenario: Scenario) -> SafetyEnvelope:
        """The scenario's envelope, narrowed by the robot's file."""
        return self._file.envelope.envelope(limits_of(scenario, task_of(scenario)), self.body.name)

    def _described(self, scenario: Scenario) -> Iterator[Channel]:
        """The channels as the file describes them, and those that need no sensor."""
        measured = _measured(scenario)
        for channel in scenario.channels:
            if channel.name in self._file.channels:
                signals = self._file.channels[channel.name]
                yield Channel(channel.name, tuple(signals.keys), _unit(signals, channel.unit), signals.frame)
            elif channel.name not in measured:
                yield channel

    def check_recorded(self, scenario: Scenario) -> None:
        """Refuse where the recording would lack a channel, or the file names one that there is not."""
        wanted = _measured(scenario)
        named = set(self._file.channels)
        if named != wanted:
            raise PolicyError(
                got=f"channels {', '.join(sorted(named)) or 'none'}",
                expected=f"{', '.join(sorted(wanted))}, as scenario {scenario.name} observes them",
                where=self.body.name,
                next_step="Map these channels in the robot's file. The policy was not run.",
            )

    def check_robot(self, offered: Mapping[str, Any], accepted: Mapping[str, Any]) -> None:
        """Refuse where the robot's features lack a key that the file names.

        Args:
            offered, accepted: the robot's `observation_features` and `action_features`.
        """
        wanted = [key for signals in self._file.channels.values() for key in _keys(signals)]
        for keys, features, aspect in (
            (wanted, offered, "observation_features"),
            (list(self._file.command.keys.values()), accepted, "action_features"),
        ):
            missing = [key for key in keys if key not in features]
            if missing:
                raise PolicyError(
                    got=f"no {', '.join(missing)} in {aspect} ({', '.join(features)})",
                    expected="every key that the robot's file names",
                    where=self.body.name,
                    next_step="Correct the keys in the robot's file. The policy was not run.",
                )

    def read(self, observation: Mapping[str, Any]) -> Reading:
        """Translate what `get_observation` returned."""
        try:
            values = {name: lines.ours(observation)[None] for name, lines in self._lines.items()}
            ages = {
                name: 0.0 if signals.age == DURING_CALL else float(observation[signals.age])
                for name, signals in self._file.channels.items()
            }
        except (KeyError, TypeError, ValueError) as error:
            raise RealityError(
                got=f"{type(error).__name__}: {error}",
                expected="a number for every key that the robot's file names",
                where=f"{self.body.name}, get_observation",
                next_step="Compare what the robot returns with its observation_features.",
            ) from error
        return Reading(values, ages)

    def command(self, command: np.ndarray) -> dict[str, float]:
        """Argument of `send_action` for commands [nu]."""
        return self._command.theirs(command)

    def sent(self, returned: Mapping[str, Any]) -> np.ndarray:
        """Commands [nu] of what `send_action` returned."""
        return self._command.ours(returned)


def _measured(scenario: Scenario) -> set[str]:
    """Channels that a robot measures; the others are computed, given as the goal, or sent."""
    return {each.channel.name for each in (*scenario.observed, *scenario.velocities)}


class _Lines:
    """The numbers of one channel, both ways."""

    def __init__(self, signals: Signals, unit: str) -> None:
        self._keys = tuple(signals.keys.values())
        width = len(self._keys)
        # A unit that cannot be converted never gets here with a policy: the contract is checked first.
        scale = factor(signals.unit, unit, "robot") if convertible(signals.unit, unit) else 1.0
        self._scale = scale * np.array(signals.signs or (1,) * width, float)
        self._zero = np.array(signals.zeros or (0.0,) * width)

    def ours(self, numbers: Mapping[str, Any]) -> np.ndarray:
        return self._scale * (np.array([float(numbers[key]) for key in self._keys]) - self._zero)

    def theirs(self, values: np.ndarray) -> dict[str, float]:
        return dict(zip(self._keys, (values / self._scale + self._zero).tolist(), strict=True))


def _unit(signals: Signals, unit: str) -> str:
    """Ours where theirs can be converted to it; else theirs, which the contract then refuses."""
    return unit if convertible(signals.unit, unit) else signals.unit


def _keys(signals: Any) -> list[str]:
    ages = [] if signals.age == DURING_CALL else [signals.age]
    return [*signals.keys.values(), *ages]
