"""Measurements of many copies as a robot would have them: noise, velocities from differences, and what follows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from rsr.environments.sensor_model import SensorModel
from rsr.scenarios import (
    HELD,
    PAST,
    RATE,
    TIME,
    VELOCITY,
    Channels,
    Observed,
    Scenario,
    Starts,
    Task,
    difference,
    limits_of,
    readings_at_rest,
    rest_command,
)

FILTER = 0.5
"""Share of the newest difference in a velocity; the rest is the velocity before."""


class Measurable(Protocol):
    """Interface of what can be measured: B copies, what they are to reach, and what was sent to them last."""

    @property
    def goal(self) -> dict[str, np.ndarray]: ...

    @property
    def action(self) -> np.ndarray: ...

    @property
    def states(self) -> np.ndarray: ...

    @property
    def sensordata(self) -> np.ndarray: ...

    @property
    def command(self) -> np.ndarray: ...


class Measuring:
    """Reads the sensors of B copies, control step by control step.

    Args:
        rng: of the sensors' noise; None: the true state.
        params: [P] or [B, P], some of which are sensors' delays, gains and biases; nominal by default.
    """

    def __init__(
        self,
        scenario: Scenario,
        task: Task,
        count: int,
        rng: np.random.Generator | None = None,
        params: np.ndarray | None = None,
    ) -> None:
        self._scenario, self._task = scenario, task
        values = scenario.space.nominal if params is None else params
        self._sensors = None if rng is None else SensorModel(scenario, values, count, rng)
        self._filter = 1.0 if rng is None else FILTER
        limits = limits_of(scenario, task)
        kept = {name: scenario.observed_channel(name) for name in dict.fromkeys((*task.velocities, *limits.rates))}
        self._before = {name: np.zeros((count, each.channel.width)) for name, each in kept.items()}
        self._velocity = {name: np.zeros((count, each.tangent_width)) for name, each in kept.items()}
        self._time_s, self._held_s = np.zeros((2, count, 1))
        self._rate = {name: self._velocity[name].copy() for name in limits.rates}
        ages = 1 + (scenario.delay_steps if limits.rates else 0)
        self._past = np.zeros((count, ages, scenario.base_model.nu))

    def begin(self, measured: Channels, copies: np.ndarray, command: np.ndarray) -> None:
        """Let the episodes of some copies begin, at rest, with these measurements [B, width] and commands [B, nu]."""
        for name, before in self._before.items():
            before[copies], self._velocity[name][copies] = measured[name][copies], 0.0
        self._time_s, self._held_s = self._time_s.copy(), self._held_s.copy()  # channels of before refer to them
        self._time_s[copies] = self._held_s[copies] = 0.0
        for rate in self._rate.values():
            rate[copies] = 0.0
        if self._rate:
            self._past[copies] = command[copies][:, None]

    def first(self, world: Measurable, copies: np.ndarray) -> Channels:
        """Measure where the episodes of some copies have just begun and the others stand as they did."""
        true = self._true(world)
        measured = true if self._sensors is None else self._sensors.begin(true, copies)
        self.begin(measured, copies, world.command)
        return self._completed(measured, world.goal, world.command, world.action)

    def __call__(self, world: Measurable) -> Channels:
        """Measure every channel [B, width], and whatever else the task may look at."""
        true = self._true(world)
        measured = true if self._sensors is None else self._sensors(true)
        return self.completed(measured, world.goal, world.command, world.action)

    def completed(self, measured: Channels, goal: Channels, command: np.ndarray, action: np.ndarray) -> Channels:
        """New measurements [B, width], and whatever else the task may look at."""
        for name in self._before:
            self._differentiate(self._scenario.observed_channel(name), measured[name])
        if self._rate:
            self._past = np.concatenate([command[:, None], self._past[:, :-1]], axis=1)
        self._time_s = self._time_s + self._scenario.control_dt_s
        channels = self._completed(measured, goal, command, action)
        if self._task.held_s:
            longer = self._held_s + self._scenario.control_dt_s
            self._held_s = np.where(self._task.reached(channels)[:, None], longer, 0.0)
            channels = {**channels, HELD: self._held_s}
        return channels

    def _completed(self, measured: Channels, goal: Channels, command: np.ndarray, action: np.ndarray) -> Channels:
        velocities = {VELOCITY + name: values for name, values in self._velocity.items()}
        sent = {} if self._scenario.command is None else {self._scenario.command: command}
        sent |= {TIME: self._time_s} | ({HELD: self._held_s} if self._task.held_s else {})
        if self._rate:
            sent[PAST] = self._past.reshape(len(self._past), -1)
            sent |= {RATE + name: rate.copy() for name, rate in self._rate.items()}
        return self._task.completed({**measured, **goal, **velocities, **sent, "action": action})

    def snapshot(self, name: str) -> dict[str, np.ndarray]:
        """Everything that the coming measurements depend on, but for the generator."""
        kept = {"before": self._before, "velocity": self._velocity, "rate": self._rate}
        past = {f"{name}.past": self._past.copy()} if self._rate else {}
        past |= {f"{name}.time": self._time_s, f"{name}.held": self._held_s}
        past |= {} if self._sensors is None else self._sensors.snapshot(f"{name}.sensors")
        return past | {
            f"{name}.{what}.{key}": values.copy() for what, each in kept.items() for key, values in each.items()
        }

    def restore(self, snapshot: dict[str, np.ndarray], name: str) -> None:
        """Undo `snapshot`."""
        if self._rate:
            self._past = snapshot[f"{name}.past"].copy()
        if self._sensors is not None:
            self._sensors.restore(snapshot, f"{name}.sensors")
        self._time_s, self._held_s = (snapshot[f"{name}.{what}"].copy() for what in ("time", "held"))
        for what, each in (("before", self._before), ("velocity", self._velocity), ("rate", self._rate)):
            for key in each:
                each[key] = snapshot[f"{name}.{what}.{key}"].copy()

    def _true(self, world: Measurable) -> dict[str, np.ndarray]:
        return self._scenario.measure(world.states, world.sensordata if self._scenario.has_sensors else None)

    def _differentiate(self, observed: Observed, now: np.ndarray) -> None:
        name, dt_s = observed.channel.name, self._scenario.control_dt_s
        rate = difference(observed.kind, self._before[name], now) / dt_s
        if name in self._rate:
            self._rate[name] = rate
        self._velocity[name] = self._velocity[name] + self._filter * (rate - self._velocity[name])
        self._before[name] = now.copy()


def at_rest(scenario: Scenario, task: Task, starts: Starts) -> Channels:
    """Channels [B, width] of episodes that have just begun, without noise."""
    states = np.pad(starts.qpos, ((0, 0), (0, scenario.base_model.nv)))
    command = rest_command(scenario.base_model, starts.qpos) if starts.command is None else starts.command
    sensed = readings_at_rest(scenario.base_model, starts.qpos, command)
    begun = _Begun(states, sensed, dict(starts.goal), command, np.zeros((len(starts), task.action.size)))
    return Measuring(scenario, task, len(starts)).first(begun, np.arange(len(starts)))


@dataclass(frozen=True)
class _Begun:
    states: np.ndarray
    sensordata: np.ndarray
    goal: dict[str, np.ndarray]
    command: np.ndarray
    action: np.ndarray
