"""The reality `robot`: any robot behind LeRobot's `Robot` interface, one episode after the other, at its rate.

The interface is spelt out in `rsr.realities.trial`, so that lerobot itself is not needed. A robot cannot set up
its own episodes: goals come from the plan, and a person, or a stand-in, sets up each episode and says so.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from rsr.common import Advance, ConfigError, RealityError, SessionError, Waiting, generator, load
from rsr.policies import RobotInterface, check_contract, task_contract
from rsr.realities.envelope import SafetyEnvelope, safety_notes
from rsr.realities.reality import Clock, CollectionPlan, Controller, RealClock, SimulatedClock, required
from rsr.realities.robot_file import RobotFile, load_robot_file
from rsr.realities.sensing import check_recordable
from rsr.realities.trial import Robot, RobotTrial, Stopped
from rsr.realities.wiring import Wiring
from rsr.scenarios import Scenario, Starts, Task, task_of
from rsr.sessions import Card, Channel, Episode, Journal, Session, check_session

ATTEMPTS = 3


@dataclass(frozen=True)
class Placement:
    """How to set up an episode.

    Args:
        start: one, as far as it can be had.
        words: what a person puts where.
    """

    episode: int
    episodes: int
    start: Starts
    words: str


Reset = Callable[[Placement], None]
"""Returns when everything is in its place and the robot may move; raises `Waiting` if nobody is there to do it."""


class RobotReality:
    """The reality `robot`.

    Args:
        root: folder of the recordings; see `rsr.sessions.journal`.
        robot: connected by `collect`, and disconnected at its end whatever happens.
        recorded_at: date and time for the card.

    Raises:
        PolicyError: robot's file and scenario do not mean the same by commands, rate, units, frames or channels.
    """

    def __init__(
        self,
        scenario: Scenario,
        robot: Robot,
        wiring: Wiring,
        reset: Reset,
        clock: Clock,
        root: Path,
        envelope: SafetyEnvelope | None = None,
        recorded_at: str | None = None,
    ) -> None:
        check_contract(task_contract(scenario), wiring.body)
        wiring.check_recorded(scenario)
        wiring.check_robot(robot.observation_features, robot.action_features)
        self._scenario, self._robot, self._wiring = scenario, robot, wiring
        self._reset, self._clock, self._root = reset, clock, Path(root)
        self._task = task_of(scenario)
        check_recordable(scenario, self._task)
        self._envelope = envelope or wiring.envelope(scenario)
        self._recorded_at = recorded_at

    @property
    def body(self) -> RobotInterface:
        """Interface that the robot offers to a policy."""
        return self._wiring.body

    def collect(self, policy: Controller | None, plan: CollectionPlan, advance: Advance) -> Session:
        """Record what the plan lacks yet, and store the session. After an interruption the same call goes on."""
        policy = required(policy, "robot")
        starts = self._task.reset(generator(plan.seed, "starts"), plan.episodes)
        journal = Journal.open(self._root, self._card(plan), self._scenario.channels)
        self._robot.connect()
        try:
            for index in range(len(journal.episodes), plan.episodes):
                advance(index / plan.episodes, f"episode {index + 1} of {plan.episodes}")
                start = starts.take([index])
                words = instruction(self._scenario, self._task, start)
                journal.add(self._episode(policy, Placement(index, plan.episodes, start, words), journal))
        finally:
            self._robot.disconnect()
        advance(1.0, f"{plan.episodes} episodes")
        return journal.close(safety_notes([episode.tags for episode in journal.episodes]))

    def _episode(self, policy: Controller, placement: Placement, journal: Journal) -> Episode:
        """Try until an episode is fit for use; the journal notes what became of the others."""
        words = ""
        for attempt in range(1, ATTEMPTS + 1):
            self._reset(placement)
            trial = RobotTrial(self._scenario, self._robot, self._wiring, self._envelope, self._clock, placement.start)
            try:
                episode = trial.run(policy, placement.episode)
                check_session(Session(journal.card, journal.channels, (episode,)), self._scenario.channels)
                return episode
            except (Stopped, SessionError, RealityError) as error:
                words = str(error)
                journal.note(f"Episode {placement.episode}, attempt {attempt} was not kept; it stopped {words}.")
                if isinstance(error, RealityError):
                    raise
        raise RealityError(
            got=f"{ATTEMPTS} attempts that stopped, the last {words}",
            expected="an episode from its beginning to its end",
            where=f"{self._wiring.body.name}, episode {placement.episode}",
            next_step="Mend this, then run the same command: it goes on with this episode.",
        )

    def _card(self, plan: CollectionPlan) -> Card:
        return Card(
            session=plan.session,
            scenario=self._scenario.name,
            reality="robot",
            simulated=self._wiring.simulated,
            control_dt_s=self._scenario.control_dt_s,
            policy_sha256=plan.policy_sha256,
            recorded_at=self._recorded_at,
            robot=self._wiring.body.name.removeprefix("robot "),
            gains=self._wiring.gains,
            limits=self._envelope.stated(),
            notes=f"{plan.episodes} starts of seed {plan.seed}.",
        )


# A robot's reality from its file: the robot, its clock, and who sets up each episode.


def make_robot_reality(
    scenario: Scenario, path: Path, root: Path, real_time: bool = True, recorded_at: str | None = None
) -> RobotReality:
    """Make the reality that a robot's file describes.

    Args:
        path: of the robot's file.
        root: folder of the recordings.
        real_time: False lets a stand-in run as fast as it can; refused for what really moves.
    """
    file = load_robot_file(path)
    clock = _clock(file, path, real_time)
    robot = _robot(file, path)
    reset: Reset = robot.place if file.reset == "robot" else ask_at_terminal
    return RobotReality(scenario, robot, Wiring(file, scenario), reset, clock, root, recorded_at=recorded_at)


def ask_at_terminal(placement: Placement) -> None:
    """Ask the person at the terminal to set up the episode, and wait for Enter.

    Raises:
        Waiting: nobody is there to answer.
    """
    if not sys.stdin.isatty():
        raise Waiting(
            got="no terminal, so nobody who could set up the next episode and confirm it",
            expected="a person beside the robot",
            where=f"episode {placement.episode + 1} of {placement.episodes}",
            next_step="Run the same command in a terminal beside the robot; it goes on with this episode.",
        )
    Console(stderr=True).input(
        f"Episode {placement.episode + 1} of {placement.episodes}: {placement.words}\n"
        "Keep clear of the robot. Enter: it moves. Ctrl-C: stop here, everything recorded is kept. "
    )


def instruction(scenario: Scenario, task: Task, start: Starts) -> str:
    """Instruction in words: the task's own, or where every channel shall begin and what the goal is."""
    if task.instruction is not None:
        return task.instruction(start)
    state = np.concatenate([start.qpos, np.zeros((1, scenario.base_model.nv))], axis=1)
    # What a person can see to: places, and no readings of sensors.
    shown = [each for each in scenario.observed if each.qpos]
    begin = "; ".join(_placed(each.channel, state[0, list(each.places)]) for each in shown)
    channels = {channel.name: channel for channel in scenario.channels}
    goal = "; ".join(_placed(channels[name], values[0]) for name, values in start.goal.items())
    return f"bring it to rest at {begin}." + (f" The goal is {goal}." if goal else "")


def _placed(channel: Channel, values: np.ndarray) -> str:
    unit = "" if channel.unit == "1" else f" {channel.unit}"
    numbers = ", ".join(f"{column} = {value:.3f}{unit}" for column, value in zip(channel.columns, values, strict=True))
    return f"{channel.name.replace('_', ' ')} {numbers}"


def _clock(file: RobotFile, path: Path, real_time: bool) -> Clock:
    if real_time:
        return RealClock()
    if not file.simulated:
        raise ConfigError(
            got="simulated time for a robot that is no stand-in",
            expected="real time: it would get all its commands at once",
            where=f"{path}: simulated",
            next_step="Run it in real time.",
        )
    return SimulatedClock()


def _robot(file: RobotFile, path: Path) -> Any:
    try:
        return load(file.robot)(**file.options)
    except (ImportError, AttributeError, TypeError) as error:
        raise ConfigError(
            got=f"{type(error).__name__}: {error}",
            expected="module:name of what makes the robot from these options",
            where=f"{path}: robot {file.robot}",
            next_step="Correct `robot` or `options`, or install what the module needs.",
        ) from error
