"""One episode on a robot: observe, decide, pass the envelope, send, record; once a control period.

The arm is held, that is, the last setpoint is repeated, in the very period in which a sensor is stale, a number is
none, or deciding took too long. If that lasts, the trial is stopped and says why. An interface of joint positions also
holds the arm while nothing is sent: that is what stops it when this process dies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np

from rsr.errors import RealityError
from rsr.realities.clocks import Clock
from rsr.realities.contract import Actor
from rsr.realities.envelope import HOLDS, Guard, SafetyEnvelope, recordable
from rsr.realities.wiring import Wiring
from rsr.scenarios import Scenario, task_of
from rsr.scenarios.pushing import kinematics
from rsr.scenarios.pushing.arm import next_setpoint
from rsr.sessions import Episode
from rsr.sessions.checks import GRID_TOLERANCE

PATIENCE_S = 0.5
"""A fault that lasts longer ends the trial; a shorter one is held through."""
_FAULTS = ("not_a_number", "no_measurement", "stale_sensor", "late")


class Robot(Protocol):
    """LeRobot's `Robot`, as far as it is used here. Dictionaries are flat; commands are joint positions."""

    @property
    def observation_features(self) -> Mapping[str, Any]: ...

    @property
    def action_features(self) -> Mapping[str, Any]: ...

    @property
    def is_connected(self) -> bool: ...

    def connect(self) -> None: ...

    def get_observation(self) -> Mapping[str, Any]: ...

    def send_action(self, action: dict[str, Any]) -> Mapping[str, Any]:
        """Returns what was really sent."""
        ...

    def disconnect(self) -> None: ...


class Stopped(Exception):
    """A trial ended early; the message says when and why."""


class Trial:
    """One attempt at an episode.

    Args:
        target: where the block shall go [1, k].
    """

    def __init__(
        self,
        scenario: Scenario,
        robot: Robot,
        wiring: Wiring,
        envelope: SafetyEnvelope,
        clock: Clock,
        target: np.ndarray,
    ) -> None:
        self._scenario, self._task = scenario, task_of(scenario)
        self._robot, self._wiring, self._envelope, self._clock = robot, wiring, envelope, clock
        self._target = target
        self._dt_s = scenario.control_dt_s
        self._oldest_s = envelope.max_sensor_age_s or scenario.control_dt_s
        self._good: Mapping[str, np.ndarray] = {}
        self._rows: dict[str, list[np.ndarray]] = {}
        self._time_s: list[float] = []
        self._faulty = 0

    def run(self, policy: Actor, index: int) -> Episode:
        """Record the episode.

        Raises:
            Stopped: a fault lasted, or the loop did not keep its rate.
            RealityError: the robot raised an error.
        """
        measured, _, _ = self._measure()
        if not self._envelope.limits.inside(measured["joint_position"]).all():
            raise Stopped("at its beginning: the fingertip stands outside its box, where it could only be held")
        guard = Guard(self._envelope, measured["joint_position"], self._dt_s)
        begin_s = self._clock.now_s()
        for row in range(self._scenario.episode_steps):
            self._step(policy, guard, self._tick(begin_s, row))
        self._close(self._tick(begin_s, self._scenario.episode_steps))
        names = [channel.name for channel in self._scenario.channels]
        values = {name: np.concatenate(self._rows[name]) for name in names if name in self._rows}
        return Episode(index, np.array(self._time_s), values, guard.tags(0))

    def _tick(self, begin_s: float, row: int) -> float:
        """Wait for the row's moment; returns seconds since the beginning."""
        due_s = row * self._dt_s
        self._clock.sleep_until(begin_s + due_s)
        now_s = self._clock.now_s() - begin_s
        if now_s - due_s > GRID_TOLERANCE * self._dt_s:
            raise Stopped(f"at {now_s:.2f} s: late, {1e3 * (now_s - due_s):.0f} ms behind its rate")
        return now_s

    def _step(self, policy: Actor, guard: Guard, now_s: float) -> None:
        asked_s = self._clock.now_s()
        measured, held, why = self._measure()
        block = self._task.block(measured)
        action = policy.act(self._task.observation(measured["joint_position"], block, self._target))
        wanted = next_setpoint(guard.previous, measured["joint_position"], action)
        held["late"] = np.array([self._clock.now_s() - asked_s > self._dt_s])
        limited = guard.limit(wanted, block, held)
        guard.correct(self._send(limited.sent))
        self._record(
            now_s, measured, joint_setpoint=guard.previous, action=recordable(action), clipped=limited.share[:, None]
        )
        self._endure(now_s, limited.reasons, why)

    def _close(self, now_s: float) -> None:
        """The last row: what was measured at the end, under the command that was in force."""
        measured, held, why = self._measure()
        if any(where.any() for where in held.values()):
            raise Stopped(f"at {now_s:.2f} s, the last row: {why}")
        self._record(
            now_s, measured, **{name: self._rows[name][-1] for name in ("joint_setpoint", "action", "clipped")}
        )

    def _measure(self) -> tuple[Mapping[str, np.ndarray], dict[str, np.ndarray], str]:
        """Channels, reasons to hold the arm, and words for them. What is no number gives way to the last that was."""
        reading = self._wiring.read(self._call("get_observation", self._robot.get_observation))
        old = [f"{name} {age:.2f} s old" for name, age in reading.age_s.items() if not age <= self._oldest_s]
        none = [name for name, value in reading.values.items() if not np.isfinite(value).all()]
        if none and not self._good:
            raise Stopped(f"at its beginning: no number in {', '.join(none)}")
        self._good = {name: self._good[name] if name in none else value for name, value in reading.values.items()}
        tip = kinematics.fingertip(self._good["joint_position"])
        held = {"stale_sensor": np.array([bool(old)]), "no_measurement": np.array([bool(none)])}
        return {**self._good, "tip_position": tip}, held, ", ".join([*old, *(f"no number in {name}" for name in none)])

    def _send(self, setpoint: np.ndarray) -> np.ndarray:
        command = self._wiring.command(setpoint[0])
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

    def _record(self, now_s: float, measured: Mapping[str, np.ndarray], **commanded: np.ndarray) -> None:
        self._time_s.append(now_s)
        for name, value in {**measured, **commanded, **self._task.target_rows(self._target)}.items():
            self._rows.setdefault(name, []).append(np.array(value, float))

    def _endure(self, now_s: float, reasons: Mapping[str, np.ndarray], why: str) -> None:
        faults = [reason for reason in _FAULTS if reason in reasons]
        self._faulty = self._faulty + 1 if faults else 0
        if self._faulty * self._dt_s > PATIENCE_S:
            words = ", ".join(HOLDS[fault] for fault in faults)
            raise Stopped(
                f"at {now_s:.2f} s after holding the arm for {PATIENCE_S:g} s: {words}{f' ({why})' * bool(why)}"
            )
