"""The contract of a task: what a policy sees, does, is paid for, and when it has succeeded.

All functions are batched: they take arrays [..., width] by channel name, as a robot would measure them, and return
arrays. Beside the scenario's channels they find there

- the goal, under the names that `Task.goal` lists;
- what `Task.derived` computes from the others, such as a tool's position;
- `velocity:NAME` for each channel that an observation term asks for in this form: differences of two measurements;
- `episode:time`, seconds since the episode began, by which a goal may move;
- the command in force, under the name of the scenario's command channel, and the last `action`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from rsr.scenarios.motion.limits import MotionLimits
from rsr.scenarios.tasks.probes import Probes

OBSERVATION_LIMIT = 100.0  # no observation reaches it (rad, m); for learners that want bounded spaces
VELOCITY = "velocity:"
TIME = "episode:time"
HELD = "episode:held"

Channels = Mapping[str, np.ndarray]
Value = Callable[[Channels], np.ndarray]
"""Channels [..., width] -> [...], or [..., k]."""


@dataclass(frozen=True)
class Starts:
    """Where episodes begin: at rest.

    Args:
        qpos: [B, nq].
        goal: channel -> [B, width], what the episode is to reach.
        command: in force at the beginning [B, nu]; by default the one that holds `qpos` (`rest_command`).
    """

    qpos: np.ndarray
    goal: Channels = field(default_factory=dict)
    command: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.qpos)

    def repeated(self, times: int) -> Starts:
        """All of them, `times` times over."""
        return self.take(np.tile(np.arange(len(self)), times))

    def take(self, rows: np.ndarray | list[int]) -> Starts:
        """Some of them."""
        goal = {name: values[rows] for name, values in self.goal.items()}
        return Starts(self.qpos[rows], goal, None if self.command is None else self.command[rows])


@dataclass(frozen=True)
class ObservationTerm:
    """A part of the observation: `size` numbers in one unit and one frame.

    Args:
        channels: which it is computed from.
        compute: [..., size] of them; None where the task computes all its terms at once, or where it is one channel.
    """

    name: str
    size: int
    unit: str
    frame: str
    channels: tuple[str, ...]
    compute: Value | None = None

    def __call__(self, channels: Channels) -> np.ndarray:
        return channels[self.channels[0]] if self.compute is None else self.compute(channels)


@dataclass(frozen=True)
class ProgressFigure:
    """A number by which people see how far an episode has come.

    Args:
        compute: channels -> [...]; signed where it is an axis.
        channel: measures it; its noise is the figure's.
        tolerance: the episode succeeds where the figure ends within it; None where it does not decide.
        axis: the KL divergence between simulation and reality is reported of it, as in the paper's Table I.
    """

    name: str
    compute: Value
    unit: str
    channel: str
    tolerance: float | None = None
    axis: bool = True

    @property
    def key(self) -> str:
        """Its name in metrics.json."""
        return self.name.replace(" ", "_")


@dataclass(frozen=True)
class StateColumns:
    """What InfoGap compares of a state: named columns [..., k], each with the noise it is measured with."""

    names: tuple[str, ...]
    compute: Value
    noise: tuple[float, ...]


NOT_STATED = StateColumns((), lambda channels: np.zeros(0), ())  # replaced when the task is loaded


@dataclass(frozen=True)
class Plane:
    """Two figures whose coverage is reported: a square around `centre`, `half` to each side, in `unit`."""

    names: tuple[str, str]
    unit: str
    compute: Value
    centre: tuple[float, float]
    half: float


class ActionMeaning(Protocol):
    """Interface of what turns numbers in -1..1 into commands."""

    @property
    def kind(self) -> str: ...

    @property
    def size(self) -> int: ...

    def command(self, action: np.ndarray, previous: np.ndarray, channels: Channels) -> np.ndarray:
        """Commands [B, nu] of actions [B, size], after the previous ones [B, nu]."""
        ...

    def stated(self) -> dict[str, Any]:
        """Numbers for the contract of an exported policy."""
        ...


@dataclass(frozen=True)
class DisplacementAction:
    """Each number moves one command, relative to the one in force.

    Args:
        scale: largest change in one control step, one a command.
        lower: limits of the command.
        upper: limits of the command.
        measured: the channel that measures what is commanded, column by column; with it `lead` bounds how far a
            command runs ahead of it, so that a joint that is held does not wind up.
    """

    scale: tuple[float, ...]
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    measured: str | None = None
    lead: tuple[float, ...] | None = None
    kind: str = "displacement"

    @property
    def size(self) -> int:
        return len(self.scale)

    def command(self, action: np.ndarray, previous: np.ndarray, channels: Channels) -> np.ndarray:
        wanted = previous + np.array(self.scale) * np.clip(action, -1.0, 1.0)
        if self.measured is not None and self.lead is not None:
            measured, lead = channels[self.measured], np.array(self.lead)
            wanted = np.clip(wanted, measured - lead, measured + lead)
        return np.clip(wanted, self.lower, self.upper)

    def stated(self) -> dict[str, Any]:
        return {"scale": self.scale, "lower": self.lower, "upper": self.upper, "lead": self.lead or ()}


@dataclass(frozen=True)
class AbsoluteAction:
    """Each number is a command: -1 its lower, 1 its upper bound. Torques, thrusts, speeds, or positions."""

    lower: tuple[float, ...]
    upper: tuple[float, ...]
    kind: str = "absolute"

    @property
    def size(self) -> int:
        return len(self.lower)

    def command(self, action: np.ndarray, previous: np.ndarray, channels: Channels) -> np.ndarray:
        lower, upper = np.array(self.lower), np.array(self.upper)
        return lower + 0.5 * (np.clip(action, -1.0, 1.0) + 1.0) * (upper - lower)

    def stated(self) -> dict[str, Any]:
        return {"scale": (), "lower": self.lower, "upper": self.upper, "lead": ()}


@dataclass(frozen=True)
class ActionHead:
    """An analytic last layer of the policy: the network's numbers become the task's action.

    Args:
        size: numbers that the network chooses, in -1..1.
        act: (observation [B, n], chosen [B, size]) -> action [B, m]; exported with the policy, so it is written in what
            `rsr.policies.tracing` knows.
        alone: so many of the observation's first columns are for the head alone. The network does not see them: a pose
            in the world, say, by which it would learn for each place anew what is the same in all of them.
    """

    size: int
    act: Callable[[np.ndarray, np.ndarray], np.ndarray]
    alone: int = 0


@dataclass(frozen=True)
class Task:
    """Task of a policy in a scenario: what it sees, does, is paid for, and when it has succeeded.

    Args:
        terms: of the observation, in its order.
        goal: channels that say what the episode is to reach; a session records them.
        action: what the policy's numbers mean.
        reset: (generator, count) -> Starts.
        reward: of one control step [...].
        figures: by which progress is reported; see `ProgressFigure`.
        states: what InfoGap compares; by default the measured positions, see `rsr.scenarios.tasks.state_columns`.
        success: channels -> bool [...]; by default all figures within their tolerance.
        held_s: success counts only once it has lasted for so long without a break, to the end of the episode.
        failure: channels -> bool [...]; ends the episode, which then has not succeeded.
        potential: training pays its increase on top of the reward, so that the task is learnt sooner; over an episode
            that adds up to where it begins and ends.
        observation: channels -> [..., n], all terms at once; by default one after the other.
        derived: channels computed from the measured ones, as a session records them.
        head: see `ActionHead`.
        limits: of motion, in place of those that the model and the YAML file state.
        plane: whose coverage is reported.
        instruction: one start -> words for the person who sets it up.
        probes: scripted motions worth recording; by default sines about the rest position.
        training: algorithm -> settings other than the defaults, and `further_steps`.
        name: of the scenario, filled in when it is loaded.
    """

    terms: tuple[ObservationTerm, ...]
    goal: tuple[str, ...]
    action: ActionMeaning
    reset: Callable[[np.random.Generator, int], Starts]
    reward: Value
    figures: tuple[ProgressFigure, ...]
    states: StateColumns = NOT_STATED
    success: Value | None = None
    held_s: float = 0.0
    failure: Value | None = None
    potential: Value | None = None
    observation: Value | None = None
    derived: Callable[[Channels], dict[str, np.ndarray]] | None = None
    head: ActionHead | None = None
    limits: MotionLimits | None = None
    plane: Plane | None = None
    instruction: Callable[[Starts], str] | None = None
    probes: Probes | None = None
    training: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    name: str = ""

    @property
    def observation_size(self) -> int:
        return sum(term.size for term in self.terms)

    @property
    def chosen_size(self) -> int:
        """Numbers that the network chooses."""
        return self.action.size if self.head is None else self.head.size

    @property
    def unseen(self) -> int:
        """First columns of the observation that the network does not see."""
        return 0 if self.head is None else self.head.alone

    def columns(self, *names: str) -> list[int]:
        """Columns of the observation that these terms take, in the order of the names."""
        starts = np.cumsum([0, *(term.size for term in self.terms)])
        places = {term.name: range(start, start + term.size) for term, start in zip(self.terms, starts, strict=False)}
        return [column for name in names for column in places[name]]

    def observe(self, channels: Channels) -> np.ndarray:
        """Compute the observation [..., n] float32."""
        if self.observation is not None:
            return self.observation(channels).astype(np.float32)
        return np.concatenate([term(channels) for term in self.terms], axis=-1).astype(np.float32)

    def completed(self, channels: Channels) -> dict[str, np.ndarray]:
        """The channels, and what is derived from them."""
        return {**channels, **(self.derived(channels) if self.derived else {})}

    def succeeded(self, channels: Channels) -> np.ndarray:
        """True [...] where the task is done."""
        done = self.reached(channels)
        if self.held_s:
            done = done & (channels[HELD][..., 0] >= self.held_s * (1 - 1e-9))  # sums of control steps are rounded
        return done if self.failure is None else done & ~self.failure(channels)

    def reached(self, channels: Channels) -> np.ndarray:
        """True [...] where it is as it shall be, no matter for how long."""
        return self.off_target(channels) < 1.0 if self.success is None else self.success(channels)

    def off_target(self, channels: Channels) -> np.ndarray:
        """The largest of the figures [...], each in units of its tolerance."""
        off = [np.abs(each.compute(channels)) / each.tolerance for each in self.figures if each.tolerance]
        return np.max(off, axis=0)

    def act(self, observation: np.ndarray, chosen: np.ndarray) -> np.ndarray:
        """Actions [B, m] of what the network chose [B, k]."""
        return chosen if self.head is None else self.head.act(observation, chosen)

    @property
    def velocities(self) -> tuple[str, ...]:
        """Channels whose velocity some term asks for."""
        asked = [name.removeprefix(VELOCITY) for term in self.terms for name in term.channels if VELOCITY in name]
        return tuple(dict.fromkeys(asked))
