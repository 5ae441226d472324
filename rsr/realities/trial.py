"""One episode on a robot: observe, decide, pass the envelope, send, record; once a control period.

The robot is held, that is, it gets its safe command, in the very period in which a sensor is stale, a number is none,
or deciding took too long. For positions that is the one in force; for speeds, forces and torques it is stated, and also
sent when the trial ends, however it ends. If a fault lasts, the trial is stopped and says why.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Protocol

import numpy as np

from rsr.common import RealityError
from rsr.environments import Measuring
from rsr.realities.envelope import HOLDS, Guard, SafetyEnvelope, recordable, wanted_command
from rsr.realities.reality import Clock, Controller
from rsr.realities.sensing import session_row
from rsr.realities.wiring import Wiring
from rsr.scenarios import Channels, Scenario, Starts, command_kinds, reach_of, rest_command, task_of
from rsr.sessions import GRID_TOLERANCE, Episode

PATIENCE_S = 0.5
"""A fault that lasts longer ends the trial; a shorter one is held through."""
BRAKING_S = 0.5
"""So long is what is commanded by force braked at the end of a trial, before it gets its safe command."""
_LATEST = 1.1
"""Control periods after which a policy that has not decided is not waited for: little more than what counts as late."""
_FAULTS = ("not_a_number", "no_measurement", "stale_sensor", "late")


class Robot(Protocol):
    """LeRobot's `Robot`, as far as it is used here. Dictionaries are flat."""

    @property
    def observation_features(self) -> Mapping[str, Any]: ...

    @property
    def action_features(self) -> Mapping[str, Any]: ...

    def connect(self) -> None: ...

    def get_observation(self) -> Mapping[str, Any]: ...

    def send_action(self, action: dict[str, Any]) -> Mapping[str, Any]:
        """Returns what was really sent."""
        ...

    def disconnect(self) -> None: ...


class Stopped(Exception):
    """A trial ended early; the message says when and why."""


class RobotTrial:
    """One attempt at an episode.

    Args:
        start: one, as it was set up: what is to be reached, and forces that act at the beginning.
    """

    def __init__(
        self,
        scenario: Scenario,
        robot: Robot,
        wiring: Wiring,
        envelope: SafetyEnvelope,
        clock: Clock,
        start: Starts,
    ) -> None:
        self._scenario, self._task = scenario, task_of(scenario)
        self._robot, self._wiring, self._envelope, self._clock = robot, wiring, envelope, clock
        self._start = start
        self._dt_s = scenario.control_dt_s
        self._oldest_s = envelope.max_sensor_age_s or scenario.control_dt_s
        self._good: Mapping[str, np.ndarray] = {}
        # The random generator makes velocities filtered as a robot's are; nothing draws from it here.
        self._measuring = Measuring(scenario, self._task, 1, np.random.default_rng(0))
        self._action = np.zeros((1, self._task.action.size))
        self._rows: list[dict[str, np.ndarray]] = []
        self._time_s: list[float] = []
        self._faulty = 0

    def run(self, policy: Controller, index: int) -> Episode:
        """Record the episode; it ends early where the task has failed.

        Raises:
            Stopped: a fault lasted, or the loop did not keep its rate.
            RealityError: the robot raised an error.
        """
        measured, _, _ = self._measure()
        guard = Guard(self._envelope, self._first_command(measured), self._dt_s)
        self._check_beginning(measured, guard.previous)
        begin_s = self._clock.now_s()
        try:
            for row in range(self._scenario.episode_steps):
                if self._step(policy, guard, self._tick(begin_s, row)):
                    break
            self._close(guard, self._tick(begin_s, len(self._rows)))
            with suppress(Exception):  # the episode is whole
                self._brake(guard.previous)
        finally:
            self._make_safe(guard.previous)
        values = {name: np.concatenate([row[name] for row in self._rows]) for name in self._rows[0]}
        return Episode(index, np.array(self._time_s), values, guard.tags(0))

    def _first_command(self, measured: Channels) -> np.ndarray:
        """Commands [1, nu] that are taken to be in force: the measured positions; of speeds and forces the start's."""
        model = self._scenario.base_model
        held = rest_command(model, reach_of(self._scenario).posture(measured, 1))
        if self._start.command is None:
            return held
        return np.where(command_kinds(model) == "position", held, self._start.command)

    def _check_beginning(self, measured: Channels, command: np.ndarray) -> None:
        for reason, where in self._envelope.limits.holds(command, measured).items():
            if where.any():
                raise Stopped(f"at its beginning, where the robot could only be held: {self._envelope.words[reason]}")

    def _brake(self, previous: np.ndarray) -> None:
        """Slow down what is commanded by force, which else would coast on under its safe command."""
        limits = self._envelope.limits
        for _ in range(round(BRAKING_S / self._dt_s) if limits.rates else 0):
            due_s = self._clock.now_s() + self._dt_s
            measured, held, _ = self._measure()
            if any(where.any() for where in held.values()):
                return  # who does not see cannot brake
            channels = self._measuring.completed(measured, self._start.goal, previous, self._action)
            previous = self._send(limits.safe(previous, channels))
            self._clock.sleep_until(due_s)

    def _make_safe(self, previous: np.ndarray) -> None:
        """Leave the robot under its safe command; what it says to that changes nothing any more."""
        safe = self._envelope.limits.safe(previous)
        if not np.array_equal(safe, previous):
            with suppress(Exception):
                self._robot.send_action(self._wiring.command(safe[0]))

    def _tick(self, begin_s: float, row: int) -> float:
        """Wait for the row's moment; returns seconds since the beginning."""
        due_s = row * self._dt_s
        self._clock.sleep_until(begin_s + due_s)
        now_s = self._clock.now_s() - begin_s
        if now_s - due_s > GRID_TOLERANCE * self._dt_s:
            raise Stopped(f"at {now_s:.2f} s: late, {1e3 * (now_s - due_s):.0f} ms behind its rate")
        return now_s

    def _step(self, policy: Controller, guard: Guard, now_s: float) -> bool:
        """Go through one period; returns whether the task has failed."""
        asked_s = self._clock.now_s()
        measured, held, why = self._measure()
        if not self._rows:
            self._measuring.begin(measured, np.arange(1), guard.previous)
        channels = self._measuring.completed(measured, self._start.goal, guard.previous, self._action)
        action = self._decide(policy, self._task.observe(channels), asked_s + _LATEST * self._dt_s, now_s)
        wanted = wanted_command(self._task, action, guard.previous, channels)
        held["late"] = np.array([self._clock.now_s() - asked_s > self._dt_s])
        limited = guard.limit(wanted, channels, held)
        guard.correct(self._send(limited.sent))
        self._action = np.clip(recordable(action), -1.0, 1.0)
        self._time_s.append(now_s)
        self._rows.append(session_row(self._scenario, channels, guard.previous, action, limited.share))
        self._endure(now_s, limited.reasons, why)
        return bool(self._task.failure is not None and len(self._rows) > 1 and self._task.failure(channels)[0])

    def _decide(self, policy: Controller, seen: np.ndarray, until_s: float, now_s: float) -> np.ndarray:
        """Ask the policy; one that does not answer in time ends the trial, and with it the robot is made safe."""
        try:
            return self._clock.call_until(until_s, lambda: policy.act(seen))
        except TimeoutError as error:
            raise Stopped(f"at {now_s:.2f} s: late, the policy had not decided after a control period") from error

    def _close(self, guard: Guard, now_s: float) -> None:
        """The last row: what was measured at the end, under the command that was in force."""
        measured, held, why = self._measure()
        if any(where.any() for where in held.values()):
            raise Stopped(f"at {now_s:.2f} s, the last row: {why}")
        channels = self._measuring.completed(measured, self._start.goal, guard.previous, self._action)
        in_force = {name: self._rows[-1][name] for name in ("action", "clipped") if name in self._rows[-1]}
        row = session_row(self._scenario, channels, guard.previous, self._action, np.zeros(1))
        self._time_s.append(now_s)
        self._rows.append(row | in_force)

    def _measure(self) -> tuple[Mapping[str, np.ndarray], dict[str, np.ndarray], str]:
        """Channels, reasons to hold the robot, and words for them. What is no number gives way to the last that was."""
        reading = self._wiring.read(self._call("get_observation", self._robot.get_observation))
        old = [f"{name} {age:.2f} s old" for name, age in reading.age_s.items() if not age <= self._oldest_s]
        none = [name for name, value in reading.values.items() if not np.isfinite(value).all()]
        if none and not self._good:
            raise Stopped(f"at its beginning: no number in {', '.join(none)}")
        self._good = {name: self._good[name] if name in none else value for name, value in reading.values.items()}
        held = {"stale_sensor": np.array([bool(old)]), "no_measurement": np.array([bool(none)])}
        return self._good, held, ", ".join([*old, *(f"no number in {name}" for name in none)])

    def _send(self, sent: np.ndarray) -> np.ndarray:
        command = self._wiring.command(sent[0])
        returned = self._call("send_action", lambda: self._robot.send_action(command))
        return self._wiring.sent(returned)[None]

    def _call(self, name: str, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except Exception as error:  # every robot has errors of its own
            raise RealityError(
                got=f"{type(error).__name__}: {error}",
                expected="an answer",
                where=f"{self._wiring.body.name}, {name}",
                next_step="Look after the robot, then run the same command: it goes on with this episode.",
            ) from error

    def _endure(self, now_s: float, reasons: Mapping[str, np.ndarray], why: str) -> None:
        faults = [reason for reason in _FAULTS if reason in reasons]
        self._faulty = self._faulty + 1 if faults else 0
        if self._faulty * self._dt_s > PATIENCE_S:
            words = ", ".join(HOLDS[fault] for fault in faults)
            raise Stopped(
                f"at {now_s:.2f} s after holding the robot for {PATIENCE_S:g} s: {words}{f' ({why})' * bool(why)}"
            )
