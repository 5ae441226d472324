"""A stand-in for reality: MuJoCo with hidden parameters and with effects that the nominal model cannot express.

It differs from the simulator in friction that depends on direction, dry friction in the joints, latency that varies
from episode to episode, gravity compensation that is not perfect, sensor noise, the friction cone and the time step.
No choice of the scenario's parameters reproduces it exactly.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mujoco
import numpy as np

from rsr.common import Advance, generator
from rsr.environments import Measuring, World, tried_task
from rsr.policies import command_channel
from rsr.realities._truth import changed as changed_truth, draw_truth, hidden_model
from rsr.realities.envelope import Guard, SafetyEnvelope, recordable, safety_notes, wanted_command
from rsr.realities.reality import CollectionPlan, Controller, required
from rsr.realities.robot import Placement
from rsr.realities.sensing import Sensors, check_recordable, session_row
from rsr.scenarios import Channels, Observed, RecordedVelocity, Scenario, Task, command_kinds, load_scenario
from rsr.sessions import Card, Channel, Episode, Session


class StandIn:
    """The reality `stand-in`. Recordings made by it say `simulated: true`.

    Args:
        seed: which hidden world.
        changed: factors on hidden parameters: what wear or a repair did to this robot since.
    """

    def __init__(
        self,
        scenario: Scenario,
        seed: int,
        envelope: SafetyEnvelope | None = None,
        changed: Mapping[str, float] | None = None,
    ) -> None:
        self._scenario = scenario
        self._task = tried_task(scenario)
        check_recordable(scenario, self._task)
        self._truth = changed_truth(draw_truth(seed, scenario), changed or {})
        self._model = hidden_model(scenario, self._truth)
        self._envelope = envelope or SafetyEnvelope.of(scenario)

    def collect(self, policy: Controller | None, plan: CollectionPlan, advance: Advance) -> Session:
        """Run the policy from seeded starts; see `Reality.collect`. An episode in which the task fails ends there."""
        policy = required(policy, "stand_in")
        starts = self._task.reset(generator(plan.seed, "starts"), plan.episodes)
        rng = generator(plan.seed, "noise")
        with self.world(rng, plan.episodes) as world:
            world.place(np.arange(plan.episodes), starts)
            run = _Run(self._scenario, self._task, world, self.sensors(rng, plan.episodes), rng, self._envelope)
            for step in range(self._scenario.episode_steps):
                run.step(policy)
                advance((step + 1) / self._scenario.episode_steps, f"{plan.episodes} episodes")
            run.close()
        return self._session(plan, run.episodes())

    def world(self, rng: np.random.Generator, episodes: int) -> World:
        """A hidden world for so many episodes, each with its own latency."""
        scenario, truth = self._scenario, self._truth
        delays = np.zeros(1)
        if scenario.delay_parameter is not None:
            middle = truth.parameters[scenario.space.names[scenario.delay_parameter]]
            longest = scenario.delay_steps * scenario.control_dt_s
            delays = rng.normal(middle, truth.delay_jitter_s, episodes).clip(0.0, longest)
        hidden = scenario.space.vector(truth.parameters)
        seed = int(rng.integers(2**31)) if scenario.draws_settings else 0
        return World(scenario, [self._model], hidden, episodes, delay_s=delays, seed=seed)

    def sensors(self, rng: np.random.Generator, episodes: int) -> Sensors:
        """Sensors for so many episodes, from their beginning."""
        hidden = self._scenario.space.vector(self._truth.parameters)
        return Sensors(self._scenario, self._truth.noise_factor, hidden, episodes, rng)

    def _session(self, plan: CollectionPlan, episodes: tuple[Episode, ...]) -> Session:
        scenario = self._scenario
        card = Card(
            session=plan.session,
            scenario=scenario.name,
            reality="stand_in",
            simulated=True,
            control_dt_s=scenario.control_dt_s,
            policy_sha256=plan.policy_sha256,
            robot="MuJoCo stand-in with hidden parameters",
            limits=self._envelope.stated(),
            notes=safety_notes([episode.tags for episode in episodes]),
        )
        return Session(card, scenario.channels, episodes)


class _Run:
    """Episodes that advance together, and their rows."""

    def __init__(
        self,
        scenario: Scenario,
        task: Task,
        world: World,
        sensors: Sensors,
        rng: np.random.Generator,
        envelope: SafetyEnvelope,
    ) -> None:
        self._scenario, self._task, self._world, self._sensors = scenario, task, world, sensors
        self._measuring = Measuring(scenario, task, world.count, rng)
        self._guard = Guard(envelope, world.command, scenario.control_dt_s)
        self._rows: list[dict[str, np.ndarray]] = []
        self._count = np.zeros(world.count, int)  # rows of each episode
        self._going = np.ones(world.count, bool)

    def step(self, policy: Controller) -> None:
        """Observe, decide, pass the envelope, send, record."""
        channels = self._measure()
        action = policy.act(self._task.observe(channels))
        wanted = wanted_command(self._task, action, self._world.command, channels)
        limited = self._guard.limit(wanted, channels)
        self._world.action = np.clip(recordable(action), -1.0, 1.0)
        self._world.send(limited.sent)  # which draws the settings that are recorded beside the command
        settings = self._world.sent.settings
        self._add(session_row(self._scenario, channels, limited.sent, action, limited.share, settings), channels)

    def close(self) -> None:
        """Add the last row: what was measured at the end, under the command that was in force."""
        channels = self._measure()
        in_force = {name: self._rows[-1][name] for name in ("action", "clipped") if name in self._rows[-1]}
        share = np.zeros(self._world.count)
        settings = self._world.sent.settings
        row = session_row(self._scenario, channels, self._world.command, self._world.action, share, settings)
        self._add(row | in_force, channels)

    def episodes(self) -> tuple[Episode, ...]:
        """What was recorded, each episode as long as it lasted."""
        time_s = np.arange(len(self._rows)) * self._scenario.control_dt_s
        names = [channel.name for channel in self._scenario.channels]
        series = {name: np.stack([row[name] for row in self._rows], axis=1) for name in names}
        return tuple(
            Episode(
                index,
                time_s[:rows],
                {name: values[index, :rows] for name, values in series.items()},
                self._guard.tags(index, rows - 1),
            )
            for index, rows in enumerate(self._count.tolist())
        )

    def _measure(self) -> Channels:
        measured = self._sensors(self._world)
        if not self._rows:
            self._measuring.begin(measured, np.arange(self._world.count), self._world.command)
        return self._measuring.completed(measured, self._world.goal, self._world.command, self._world.action)

    def _add(self, row: dict[str, np.ndarray], channels: Channels) -> None:
        self._rows.append(row)
        self._count[self._going] += 1
        if self._task.failure is not None and len(self._rows) > 1:
            self._going &= ~self._task.failure(channels)


# The stand-in behind LeRobot's `Robot` interface: everything that a robot goes through, without one.

_SUFFIXES = {"position": "pos", "velocity": "vel", "force": "effort"}
"""As LeRobot names what a joint does."""


class StandInRobot:
    """One stand-in as a robot, in the scenario's units. `NAME.age` says how old a channel other than joints' is.

    A joint's position is called `COLUMN.pos`; a column of another channel by the channel's name up to its last `_`,
    such as `tool.x` of `tool_position`. Commands are `COLUMN.pos`, `COLUMN.vel` or `COLUMN.effort`.

    Args:
        scenario: name or path.
        seed: which hidden world.
    """

    name = "stand_in"

    def __init__(self, scenario: str, seed: int = 0) -> None:
        self._scenario = load_scenario(scenario)
        self._stand_in = StandIn(self._scenario, seed)
        self._rng = generator(seed, "twin", "robot")
        self._keys, self._ages = _observation_keys(self._scenario)
        self._command = _command_keys(self._scenario)
        self._world: World | None = None
        self._sensors: Sensors | None = None
        self._connected = False

    @property
    def observation_features(self) -> Mapping[str, Any]:
        return dict.fromkeys((*(key for keys in self._keys.values() for key in keys), *self._ages), float)

    @property
    def action_features(self) -> Mapping[str, Any]:
        return dict.fromkeys(self._command, float)

    def connect(self, calibrate: bool = True) -> None:
        self._connected = True

    def disconnect(self) -> None:
        self._connected = False
        if self._world is not None:
            self._world.close()
            self._world = self._sensors = None

    def place(self, placement: Placement) -> None:
        """Put everything where an episode starts, at rest."""
        if self._world is not None:
            self._world.close()
        self._world = self._stand_in.world(self._rng, 1)
        self._sensors = self._stand_in.sensors(self._rng, 1)
        self._world.place(np.arange(1), placement.start)

    def get_observation(self) -> dict[str, float]:
        world, sensors = self._placed()
        measured = sensors(world)
        numbers = {
            key: float(value)
            for name, keys in self._keys.items()
            for key, value in zip(keys, measured[name][0], strict=True)
        }
        return numbers | dict.fromkeys(self._ages, 0.0)

    def send_action(self, action: Mapping[str, Any]) -> dict[str, Any]:
        world, _ = self._placed()
        world.send(np.array([[float(action[key]) for key in self._command]]))
        return {key: action[key] for key in self._command}

    def _placed(self) -> tuple[World, Sensors]:
        if self._world is None or self._sensors is None or not self._connected:
            raise ConnectionError("the stand-in is not connected, or nothing was placed in it yet")
        return self._world, self._sensors


def _observation_keys(scenario: Scenario) -> tuple[dict[str, tuple[str, ...]], tuple[str, ...]]:
    """Channel -> keys of its columns, and the keys of ages."""
    measured: list[tuple[Channel, str | None]] = [
        (each.channel, _joints(scenario, each, "pos")) for each in scenario.observed
    ]
    measured += [(each.channel, _joints(scenario, each, "vel")) for each in scenario.velocities]
    keys = {
        channel.name: tuple(
            f"{column}.{suffix}" if suffix else f"{_stem(channel)}.{column}" for column in channel.columns
        )
        for channel, suffix in measured
    }
    every = [key for own in keys.values() for key in own]
    if len(set(every)) < len(every):
        keys = {
            channel.name: tuple(f"{channel.name}.{column}" for column in channel.columns) for channel, _ in measured
        }
    ages = dict.fromkeys(f"{_stem(channel)}.age" for channel, suffix in measured if not suffix)
    return keys, tuple(ages)


def _command_keys(scenario: Scenario) -> tuple[str, ...]:
    kinds = command_kinds(scenario.base_model)
    channel = command_channel(scenario)
    return tuple(f"{column}.{_SUFFIXES[kind]}" for column, kind in zip(channel.columns, kinds.tolist(), strict=True))


def _joints(scenario: Scenario, shown: Observed | RecordedVelocity, suffix: str) -> str | None:
    """The suffix, if the channel shows joints."""
    model = scenario.base_model
    free = [model.jnt_type[model.dof_jntid[dof]] == mujoco.mjtJoint.mjJNT_FREE for dof in shown.dofs]
    return suffix if free and not any(free) else None


def _stem(channel: Channel) -> str:
    return channel.name.rpartition("_")[0] or channel.name
