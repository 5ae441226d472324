"""A stand-in for reality: MuJoCo with hidden parameters and with effects that the nominal model cannot express.

It differs from the simulator in friction that depends on direction, stiction in the joints, latency that varies from
episode to episode, gravity compensation that is not perfect, sensor noise, the friction cone and the time step.
No choice of the scenario's parameters reproduces it exactly.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import mujoco
import numpy as np

from rsr.policies import World
from rsr.policies.world import MeasurementNoise
from rsr.progress import Advance
from rsr.randomness import generator
from rsr.realities._truth import Truth, draw_truth
from rsr.realities.contract import Actor, CollectionPlan
from rsr.realities.envelope import Guard, SafetyEnvelope, recordable, safety_notes
from rsr.scenarios import Scenario, task_of
from rsr.scenarios.pushing import kinematics
from rsr.scenarios.pushing.arm import next_setpoint
from rsr.sessions import Card, Episode, Session
from rsr.simulators import delay_weights


class Twin:
    """The reality `twin`. Recordings made by it say `simulated: true`.

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
        self._task = task_of(scenario)
        self._truth = _changed(draw_truth(seed, scenario.space.names), changed or {})
        self._model = _hidden_model(scenario, self._truth)
        self._envelope = envelope or SafetyEnvelope()

    def collect(self, policy: Actor, plan: CollectionPlan, advance: Advance) -> Session:
        """Run the policy from seeded starts; see `Reality.collect`."""
        starts = self._task.sample_starts(generator(plan.seed, "starts"), plan.episodes)
        rng = generator(plan.seed, "noise")
        with self.world(rng, plan.episodes) as world:
            world.place(np.arange(plan.episodes), starts)
            log, guard = _Log(), Guard(self._envelope, world.setpoint, self._scenario.control_dt_s)
            for step in range(self._scenario.episode_steps):
                self._step(world, policy, rng, log, guard)
                advance((step + 1) / self._scenario.episode_steps, f"{plan.episodes} episodes")
            self._close(world, rng, log)
        return self._session(plan, log, guard)

    def world(self, rng: np.random.Generator, episodes: int) -> World:
        """A hidden world for so many episodes, each with its own latency."""
        scenario, truth = self._scenario, self._truth
        longest = scenario.history_steps * scenario.control_dt_s
        delays = rng.normal(truth.parameters["control_delay"], truth.delay_jitter_s, episodes).clip(0.0, longest)
        substeps = round(scenario.control_dt_s / self._model.opt.timestep)
        weights = [delay_weights(delay, scenario.control_dt_s, substeps, scenario.history_steps) for delay in delays]
        return World(self._task, [self._model], np.stack(weights), episodes)

    def _step(self, world: World, policy: Actor, rng: np.random.Generator, log: _Log, guard: Guard) -> None:
        measured = self.measure(world, rng)
        block = self._task.block(measured)
        seen = self._task.observation(measured["joint_position"], block, world.target)
        action = policy.act(seen)
        wanted = next_setpoint(world.setpoint, measured["joint_position"], action)
        limited = guard.limit(wanted, block)
        commanded = {"joint_setpoint": limited.sent, "action": recordable(action), "clipped": limited.share[:, None]}
        log.add(measured, **commanded, **self._task.target_rows(world.target))
        world.send(limited.sent)

    def _close(self, world: World, rng: np.random.Generator, log: _Log) -> None:
        """Add the last row: what was measured at the end, under the command that was in force."""
        last = {name: rows[-1] for name, rows in log.rows.items()}
        held = {name: last[name] for name in ("joint_setpoint", "action", "clipped", *self._task.target_channels)}
        log.add(self.measure(world, rng), **held)

    def measure(self, world: World, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """What the sensors say, [episodes, width] a channel."""
        noise = MeasurementNoise(self._scenario, rng)
        joints = noise.joints(world.joints)
        orientation = noise.orientation(world.states[:, 3:7])
        return {
            "joint_position": joints,
            "block_position": noise.block(world.block[:, :3]),
            "block_orientation": orientation,
            "tip_position": kinematics.fingertip(joints),
        }

    def _session(self, plan: CollectionPlan, log: _Log, guard: Guard) -> Session:
        scenario = self._scenario
        series = {name: np.stack(rows, axis=1) for name, rows in log.rows.items()}
        time_s = np.arange(scenario.episode_steps + 1) * scenario.control_dt_s
        tags = [guard.tags(i) for i in range(plan.episodes)]
        episodes = tuple(
            Episode(i, time_s, {channel.name: series[channel.name][i] for channel in scenario.channels}, tags[i])
            for i in range(plan.episodes)
        )
        card = Card(
            session=plan.session,
            scenario=scenario.name,
            reality="twin",
            simulated=True,
            control_dt_s=scenario.control_dt_s,
            policy_sha256=plan.policy_sha256,
            robot="MuJoCo stand-in with hidden parameters",
            limits=self._envelope.stated(),
            notes=safety_notes(tags),
        )
        return Session(card, scenario.channels, episodes)


class _Log:
    """Rows of every channel, [episodes, width] each."""

    def __init__(self) -> None:
        self.rows: dict[str, list[np.ndarray]] = {}

    def add(self, measured: dict[str, np.ndarray], **more: np.ndarray) -> None:
        for name, row in {**measured, **more}.items():
            self.rows.setdefault(name, []).append(np.array(row, float))


def _changed(truth: Truth, factors: Mapping[str, float]) -> Truth:
    values = {name: value * factors.get(name, 1.0) for name, value in truth.parameters.items()}
    return replace(truth, parameters=values)


def _hidden_model(scenario: Scenario, truth: Truth) -> mujoco.MjModel:
    model = scenario.model(scenario.space.vector(truth.parameters))
    model.opt.timestep = truth.timestep_s
    model.opt.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    sliding = _pairs_with_table(model)
    model.pair_friction[sliding, 0] *= truth.anisotropy
    model.pair_friction[sliding, 1] /= truth.anisotropy
    first = model.jnt_dofadr[mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, "joint1")]
    model.dof_frictionloss[first : first + 3] = truth.stiction_nm
    model.dof_frictionloss[first + 3 : first + 6] = truth.stiction_nm / 3
    model.body_gravcomp[:] *= truth.gravity_share
    return model


def _pairs_with_table(model: mujoco.MjModel) -> list[int]:
    """Contacts of the block's geoms with the table; the finger's own is without friction."""
    return [
        pair for pair in range(model.npair) if model.pair(pair).name.startswith("table_") and model.pair_dim[pair] > 1
    ]
