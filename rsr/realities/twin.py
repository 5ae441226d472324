"""A stand-in for reality: MuJoCo with hidden parameters and with effects that the nominal model cannot express.

It differs from the simulator in friction that depends on direction, stiction in the joints, latency that varies from
episode to episode, gravity compensation that is not perfect, sensor noise, the friction cone and the time step.
No choice of the scenario's parameters reproduces it exactly.
"""

from __future__ import annotations

import mujoco
import numpy as np

from rsr.policies import Policy, World
from rsr.policies.world import MeasurementNoise
from rsr.progress import Advance
from rsr.randomness import generator
from rsr.realities._truth import Truth, draw_truth
from rsr.realities.contract import CollectionPlan
from rsr.realities.envelope import SafetyEnvelope
from rsr.scenarios import Scenario
from rsr.scenarios.push_cube import kinematics, task
from rsr.sessions import Card, Episode, Session
from rsr.simulators import delay_weights


class Twin:
    """The reality `twin`. Recordings made by it say `simulated: true`.

    Args:
        seed: which hidden world.
    """

    def __init__(self, scenario: Scenario, seed: int, envelope: SafetyEnvelope | None = None) -> None:
        self._scenario = scenario
        self._truth = draw_truth(seed)
        self._model = _hidden_model(scenario, self._truth)
        self._envelope = envelope or SafetyEnvelope()

    def collect(self, policy: Policy, plan: CollectionPlan, advance: Advance) -> Session:
        """Run the policy from seeded starts; see `Reality.collect`."""
        starts = task.sample_starts(generator(plan.seed, "starts"), plan.episodes)
        rng = generator(plan.seed, "noise")
        with self._world(rng, plan.episodes) as world:
            world.place(np.arange(plan.episodes), starts)
            log = _Log()
            for step in range(self._scenario.episode_steps):
                self._step(world, policy, rng, log)
                advance((step + 1) / self._scenario.episode_steps, f"{plan.episodes} episodes")
            self._close(world, rng, log)
        return self._session(plan, log)

    def _world(self, rng: np.random.Generator, episodes: int) -> World:
        scenario, truth = self._scenario, self._truth
        longest = scenario.history_steps * scenario.control_dt_s
        delays = rng.normal(truth.parameters["control_delay"], truth.delay_jitter_s, episodes).clip(0.0, longest)
        substeps = round(scenario.control_dt_s / self._model.opt.timestep)
        weights = [delay_weights(delay, scenario.control_dt_s, substeps, scenario.history_steps) for delay in delays]
        return World(self._model, np.stack(weights), episodes)

    def _step(self, world: World, policy: Policy, rng: np.random.Generator, log: _Log) -> None:
        measured = self._measure(world, rng)
        seen = task.observation(measured["joint_position"], measured["block_position"], world.target)
        action = policy.act(seen)
        wanted = task.next_setpoint(world.setpoint, measured["joint_position"], action)
        sent, share = self._envelope.limit(wanted, world.setpoint, self._scenario.control_dt_s)
        log.add(measured, joint_setpoint=sent, action=action, clipped=share[:, None], target_position=world.target)
        world.send(sent)

    def _close(self, world: World, rng: np.random.Generator, log: _Log) -> None:
        """Add the last row: what was measured at the end, under the command that was in force."""
        last = {name: rows[-1] for name, rows in log.rows.items()}
        held = {name: last[name] for name in ("joint_setpoint", "action", "clipped", "target_position")}
        log.add(self._measure(world, rng), **held)

    def _measure(self, world: World, rng: np.random.Generator) -> dict[str, np.ndarray]:
        noise = MeasurementNoise(self._scenario, rng)
        joints = noise.joints(world.joints)
        yaw_noise_rad = self._scenario.observed_channel("block_orientation").noise
        turned = _turn(world.states[:, 3:7], rng.normal(0.0, yaw_noise_rad, world.count))
        return {
            "joint_position": joints,
            "block_position": noise.block(world.block),
            "block_orientation": turned,
            "tip_position": kinematics.fingertip(joints),
        }

    def _session(self, plan: CollectionPlan, log: _Log) -> Session:
        scenario = self._scenario
        series = {name: np.stack(rows, axis=1) for name, rows in log.rows.items()}
        time_s = np.arange(scenario.episode_steps + 1) * scenario.control_dt_s
        episodes = tuple(
            Episode(i, time_s, {channel.name: series[channel.name][i] for channel in scenario.channels})
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
            limits={"setpoint_speed_rad_s": self._envelope.max_speed_rad_s},
        )
        return Session(card, scenario.channels, episodes)


class _Log:
    """Rows of every channel, [episodes, width] each."""

    def __init__(self) -> None:
        self.rows: dict[str, list[np.ndarray]] = {}

    def add(self, measured: dict[str, np.ndarray], **more: np.ndarray) -> None:
        for name, row in {**measured, **more}.items():
            self.rows.setdefault(name, []).append(np.array(row, float))


def _hidden_model(scenario: Scenario, truth: Truth) -> mujoco.MjModel:
    model = scenario.model(scenario.space.vector(truth.parameters))
    model.opt.timestep = truth.timestep_s
    model.opt.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    table = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_PAIR, "table_cube")
    model.pair_friction[table, 0] *= truth.anisotropy
    model.pair_friction[table, 1] /= truth.anisotropy
    first = model.jnt_dofadr[mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, "joint1")]
    model.dof_frictionloss[first : first + 3] = truth.stiction_nm
    model.dof_frictionloss[first + 3 : first + 6] = truth.stiction_nm / 3
    model.body_gravcomp[:] *= truth.gravity_share
    return model


def _turn(quaternion: np.ndarray, yaw: np.ndarray) -> np.ndarray:
    """Turn orientations [B, 4] (wxyz) about the vertical by yaw [B]."""
    w, x, y, z = quaternion.T
    cosine, sine = np.cos(yaw / 2), np.sin(yaw / 2)
    return np.stack([cosine * w - sine * z, cosine * x - sine * y, cosine * y + sine * x, cosine * z + sine * w], 1)
