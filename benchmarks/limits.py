"""What a policy does that is paid for breaking limits, whatever it commands: 0 violations.

    violations               of all worlds together
    KIND_violations          commands beyond a limit that an arm of two joints was sent, by position, velocity or torque
    KIND_cut                 share of the commands in training that were cut: it did try
    KIND_recorded_cut        the same on the stand-in, under the safety envelope
    KIND_overshoot_m         farthest that the tool itself came out of its box on the stand-in: what moves has mass
    scara_...                the same of a SCARA under torque: joints push each other, and gravity pulls at its slide;
                             a violation is a control step in training with the tool out of its box
    heavy_arm_...            the same of two links of which the second takes 95 % of its motor to hold
    max_tip_speed_m_s        of `push_cube` and `push_t`: fastest movement of the fingertip, in any physics step
    tip_speed_limit_m_s      what it may not exceed
    max_block_distance_m     farthest that a block came from the middle of the workspace
    workspace_radius_m       what it may not exceed

PPO from scratch, `--steps` environment steps in each world. The arm is paid for taking its tool out of a box and into
a keep-out, and for speed; then it is recorded on its stand-in, where one action in fifty is no number. What was sent
is judged by MuJoCo's own kinematics; under torque, where a command leads nowhere by itself, the tool itself is. The
pushing arm is paid for getting the block far away, with nominal friction and with that of a polished table (0.05),
over which blocks slide ten times as far.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import mujoco
import numpy as np
import torch
from _common import Figure, run
from _two_joint_arm import two_joint_arm

from rsr.common import ignore
from rsr.environments import TaskVecEnv
from rsr.policies import Policy, PPOSettings, make_learner
from rsr.realities import CollectionPlan, StandIn
from rsr.scenarios import (
    Channels,
    Cut,
    MotionLimits,
    Scenario,
    SiteLimit,
    Starts,
    Task,
    limits_of,
    load_scenario,
    task_of,
)
from rsr.scenarios.built_in.pushing import CENTRE_M, kinematics
from rsr.sessions import Session

TIP_SPEED_LIMIT_M_S = 0.60
WORKSPACE_RADIUS_M = 0.50
POLISHED = 0.05
QUICK_STEPS = 10_000
ROUNDING = 1e-9
MEASURED = 2e-3
"""How far noise of the joints' sensors moves the tool in a recording, m."""
INSIDE = {"box_lower": [0.2, -0.3, 0.0], "box_upper": [0.5, 0.3, 0.2]}
KEEP_OUT = {"box_lower": [0.25, 0.15, 0.0], "box_upper": [0.35, 0.25, 0.2]}
SITE_SPEED_M_S = 0.5
LIMITS: dict[str, dict[str, float]] = {
    "position": {"command_rate": 1.5, "command_acceleration": 20.0},
    "velocity": {"command_rate": 20.0, "command_acceleration": 600.0},
    "torque": {"command_rate": 60.0},
}


def measure(quick: bool, steps: int) -> dict[str, Figure]:
    """Train in each world and report the worst of all."""
    steps = min(steps, QUICK_STEPS) if quick else steps
    torch.set_num_threads(1)
    arms = {kind: commanded_arm(kind, steps) for kind in LIMITS}
    arms |= {name: boxed_arm(name, steps) for name in ("scara", "heavy_arm")}
    watches = [pushing(name, parameters, steps) for name in ("push_cube", "push_t") for parameters in ({}, SLIPPERY)]
    figures = {f"{kind}_{name}": value for kind, found in arms.items() for name, value in found.items()}
    pushed = sum(watch.violations for watch in watches)
    return {
        "violations": pushed + sum(int(found["violations"]) for found in arms.values()),
        **figures,
        "max_tip_speed_m_s": max(watch.tip_speed_m_s for watch in watches),
        "tip_speed_limit_m_s": TIP_SPEED_LIMIT_M_S,
        "max_block_distance_m": max(watch.block_distance_m for watch in watches),
        "workspace_radius_m": WORKSPACE_RADIUS_M,
        "train_steps": steps,
    }


# An arm of two joints, by each kind of command.


def commanded_arm(kind: str, steps: int) -> dict[str, float]:
    """Train for breaking limits, then record on the stand-in."""
    with tempfile.TemporaryDirectory() as folder:
        site = {"inside": INSIDE, "keep_out": [KEEP_OUT]} | ({} if kind == "torque" else {"speed": SITE_SPEED_M_S})
        scenario = two_joint_arm(Path(folder), kind, limits={**LIMITS[kind], "sites": {"tool": site}})
        envs = TaskVecEnv(scenario, scenario.space.nominal, PPOSettings(steps).copies, seed=0)
        judge = Judge(scenario, kind)
        envs.world.limits = watched = Watched(envs.world.limits, judge)
        envs.task = replace(envs.task, reset=begun_inside(envs.task, judge))
        envs.world.task = replace(envs.task, reward=out_of_bounds, potential=None)
        learner = make_learner(envs, PPOSettings(steps), seed=0)
        learner.model.learn(steps)
        envs.close()
        policy = Faltering(learner.policy(envs.task, {}))
        plan = CollectionPlan("session-001", max(10, steps // 600), seed=0)
        session = StandIn(scenario, seed=1).collect(policy, plan, ignore)
        judge_session(judge, session, scenario)
        return {
            "violations": judge.violations,
            "cut": watched.cut / watched.sent,
            "recorded_cut": float(np.mean([episode["clipped"] > 0 for episode in session.episodes])),
            "overshoot_m": max(overshoot(judge.places(e["joint_position"])) for e in session.episodes),
        }


def boxed_arm(name: str, steps: int) -> dict[str, float]:
    """Train an arm under torque for taking its tool out of its box, then record on the stand-in."""
    scenario = load_scenario(Path(__file__).parent / f"_{name}")
    judge = PlaceJudge(scenario, "torque")
    envs = TaskVecEnv(scenario, scenario.space.nominal, PPOSettings(steps).copies, seed=0)
    envs.world.limits = watched = Watched(envs.world.limits, judge)
    envs.task = replace(envs.task, reset=begun_inside(envs.task, judge))
    envs.world.task = replace(envs.task, reward=judge.beyond, potential=None)
    learner = make_learner(envs, PPOSettings(steps), seed=0)
    learner.model.learn(steps)
    envs.close()
    plan = CollectionPlan("session-001", max(10, steps // 600), seed=0)
    session = StandIn(scenario, seed=1).collect(Faltering(learner.policy(envs.task, {})), plan, ignore)
    off = [judge.off(episode["joint_position"]) for episode in session.episodes]
    return {
        "violations": judge.violations,
        "cut": watched.cut / watched.sent,
        "recorded_cut": float(np.mean([episode["clipped"] > 0 for episode in session.episodes])),
        "overshoot_m": max(float((each - each[0]).max()) for each in off),
    }


def begun_inside(task: Task, judge: Judge) -> Callable[[np.random.Generator, int], Starts]:
    """The task's starts, of which those are left out where the tool is where it may not be."""

    def reset(rng: np.random.Generator, count: int) -> Starts:
        starts = task.reset(rng, 40 * count)
        return starts.take(np.flatnonzero(judge.off(starts.qpos) == 0)[:count])

    return reset


def out_of_bounds(channels: Channels) -> np.ndarray:
    """Pay for the tool's way out of its box and into its keep-out, and for speed."""
    tool = channels["tool_position"]
    places = np.concatenate([tool, np.full((*tool.shape[:-1], 1), 0.1)], axis=-1)
    to_keep_out = np.linalg.norm(tool - np.mean([KEEP_OUT["box_lower"], KEEP_OUT["box_upper"]], axis=0)[:2], axis=-1)
    speed = np.abs(channels["velocity:joint_position"]).mean(axis=-1)
    return 10.0 * trespass(places) - to_keep_out + 0.3 * speed


def trespass(places: np.ndarray) -> np.ndarray:
    """How far places [..., 3] are out of the box, or in the keep-out, m."""
    out = np.maximum(INSIDE["box_lower"] - places, places - np.array(INSIDE["box_upper"])).max(axis=-1)
    deep = np.minimum(places - np.array(KEEP_OUT["box_lower"]), KEEP_OUT["box_upper"] - places).min(axis=-1)
    return np.maximum(np.maximum(out, deep), 0.0)


def overshoot(places: np.ndarray) -> float:
    """How far places [T, 3] of an episode came out of the box, m; where it began outside, farther than there."""
    off = trespass(places)
    return float((off - off[0]).max())


@dataclass
class Judge:
    """Counts commands that no limit allows; knows what the limits should be, not how they are computed."""

    scenario: Scenario
    kind: str
    violations: int = 0

    def look(self, sent: np.ndarray, previous: np.ndarray, joints: np.ndarray, off: float = ROUNDING) -> None:
        """Judge commands [B, 2] that were sent after the previous ones, with the joints there [B, 2].

        Args:
            off: how far the tool of an arm under torque may be out of its box, m: as far as the episode began.
        """
        model, dt_s = self.scenario.base_model, self.scenario.control_dt_s
        ranges = model.jnt_range if self.kind == "position" else model.actuator_ctrlrange
        bad = ((sent < ranges[:, 0] - ROUNDING) | (sent > ranges[:, 1] + ROUNDING)).any(axis=1)
        safe = previous if self.kind == "position" else np.zeros_like(sent)
        # Coming nearer to the safe command is free: it is how a robot is held.
        nearer = np.abs(sent - safe) <= np.abs(previous - safe)
        bad |= ((np.abs(sent - previous) > LIMITS[self.kind]["command_rate"] * dt_s + ROUNDING) & ~nearer).any(axis=1)
        if self.kind == "torque":
            bad |= trespass(self.places(joints)) > off
        else:
            bad |= self._misplaced(sent, joints) & (sent != safe).any(axis=1)
            start = previous if self.kind == "position" else joints
            moved_m = np.linalg.norm(self.places(self._reached(sent, joints)) - self.places(start), axis=1)
            bad |= moved_m > SITE_SPEED_M_S * dt_s + ROUNDING
        self.violations += int(bad.sum())

    def look_at_growth(self, sent: np.ndarray) -> None:
        """Judge how fast commands [T, 2] of one episode gather speed."""
        growth = LIMITS[self.kind].get("command_acceleration", np.inf) * self.scenario.control_dt_s**2
        change = np.abs(np.diff(sent, axis=0))
        nearer = np.zeros_like(change, bool) if self.kind == "position" else np.diff(np.abs(sent), axis=0) <= 0
        self.violations += int(((change[1:] > change[:-1] + growth + ROUNDING) & ~nearer[1:]).any(axis=1).sum())

    def off(self, joints: np.ndarray) -> np.ndarray:
        """How far the tool is out of its box, or in its keep-out [B], m."""
        return trespass(self.places(joints))

    def places(self, joints: np.ndarray) -> np.ndarray:
        """Where the tool is [B, 3], by `mj_kinematics`."""
        data = mujoco.MjData(self.scenario.base_model)
        return np.array([self._place(data, row) for row in joints])

    def _place(self, data: mujoco.MjData, joints: np.ndarray) -> np.ndarray:
        data.qpos[:] = joints
        mujoco.mj_kinematics(self.scenario.base_model, data)
        return data.site_xpos[0].copy()

    def _reached(self, sent: np.ndarray, joints: np.ndarray) -> np.ndarray:
        return sent if self.kind == "position" else joints + self.scenario.control_dt_s * sent

    def _misplaced(self, sent: np.ndarray, joints: np.ndarray) -> np.ndarray:
        """True [B] where the tool is led to where it may not be, and not on its way back."""
        off = trespass(self.places(self._reached(sent, joints)))
        back = off < trespass(self.places(joints)) if self.kind == "velocity" else np.zeros(len(sent), bool)
        return (off > ROUNDING) & ~back


class PlaceJudge(Judge):
    """Judges the tool's place alone, by the limits of the scenario's one site."""

    def look(self, sent: np.ndarray, previous: np.ndarray, joints: np.ndarray, off: float = ROUNDING) -> None:
        self.violations += int((self.off(joints) > off).sum())

    def off(self, joints: np.ndarray) -> np.ndarray:
        return self._site.trespass(self.places(joints))

    def beyond(self, channels: Channels) -> np.ndarray:
        """Pay for how far the tool is out of its box, or near to that."""
        return 20.0 * self._site.beyond(self.places(channels["joint_position"]))

    @cached_property
    def _site(self) -> SiteLimit:
        return limits_of(self.scenario, task_of(self.scenario)).sites[0]


@dataclass
class Watched:
    """Limits whose every decision is judged."""

    limits: MotionLimits
    judge: Judge
    sent: int = 0
    cut: int = 0
    words: Mapping[str, str] = field(default_factory=dict)

    def allowed(self, wanted: np.ndarray, previous: np.ndarray, channels: Channels, dt_s: float) -> np.ndarray:
        sent = self.limits.allowed(wanted, previous, channels, dt_s)
        self.judge.look(sent, previous, channels["joint_position"])
        self.sent += len(sent)
        self.cut += int((sent != wanted).any(axis=1).sum())
        return sent

    def cuts(self, previous: np.ndarray, before: np.ndarray, channels: Channels, dt_s: float) -> Iterator[Cut]:
        return self.limits.cuts(previous, before, channels, dt_s)

    def holds(self, sent: np.ndarray, channels: Channels) -> dict[str, np.ndarray]:
        return self.limits.holds(sent, channels)

    def lost(self, channels: Channels) -> np.ndarray:
        return self.limits.lost(channels)

    def safe(self, previous: np.ndarray, channels: Channels | None = None) -> np.ndarray:
        return self.limits.safe(previous, channels)

    @property
    def rates(self) -> tuple[str, ...]:
        return self.limits.rates

    def stated(self) -> dict[str, float]:
        return self.limits.stated()


class Faltering:
    """A policy of which one action in fifty is no number."""

    def __init__(self, policy: Policy) -> None:
        self._policy, self._rng = policy, np.random.default_rng(0)

    def act(self, observation: np.ndarray) -> np.ndarray:
        action = np.array(self._policy.act(observation), float)
        action[self._rng.uniform(size=len(action)) < 0.02] = np.nan
        return action


def judge_session(judge: Judge, session: Session, scenario: Scenario) -> None:
    """Judge what was sent in a recording."""
    for episode in session.episodes:
        sent, joints = scenario.commands(episode), episode["joint_position"][1:-1]
        begun = float(trespass(judge.places(episode["joint_position"][:1]))[0])
        judge.look(sent[1:], sent[:-1], joints, off=begun + MEASURED)
        judge.look_at_growth(sent)


# The pushing arm, whose limits are its own.

SLIPPERY = {"table_friction": POLISHED}


@dataclass
class Watch:
    """Looks at every physics step of every copy while the reward is asked for."""

    envs: TaskVecEnv
    tip_speed_m_s: float = 0.0
    block_distance_m: float = 0.0
    violations: int = 0

    def paid(self, channels: Channels) -> np.ndarray:
        """Pay for the distance of the block, and take note of what the last control step went through."""
        states = self.envs.world.passed
        tip_speed = tip_speeds_m_s(states)
        distance = np.linalg.norm(states[..., :2] - CENTRE_M, axis=-1)
        self.tip_speed_m_s = max(self.tip_speed_m_s, float(tip_speed.max()))
        self.block_distance_m = max(self.block_distance_m, float(distance.max()))
        self.violations += int(((tip_speed > TIP_SPEED_LIMIT_M_S) | (distance > WORKSPACE_RADIUS_M)).sum())
        to_block = np.linalg.norm((channels["tip_position"] - channels["block_position"])[..., :2], axis=-1)
        return 10.0 * np.linalg.norm(channels["block_position"][..., :2] - CENTRE_M, axis=-1) - to_block


def pushing(name: str, parameters: Mapping[str, float], steps: int) -> Watch:
    """Train for flinging the block away, and watch."""
    scenario = load_scenario(name)
    envs = TaskVecEnv(scenario, scenario.space.vector(parameters), PPOSettings(steps).copies, seed=0)
    watch = Watch(envs)
    envs.world.task = replace(envs.task, reward=watch.paid, potential=None)
    make_learner(envs, PPOSettings(steps), seed=0).model.learn(steps)
    envs.close()
    return watch


def tip_speeds_m_s(states: np.ndarray) -> np.ndarray:
    """Speed of the fingertip [...] in states [..., nq + nv]: 7 of block, 6 of arm; 6 of block, 6 of arm."""
    joints, rates = states[..., 7:13], states[..., 19:25]
    return np.linalg.norm(kinematics.fingertip(joints + 1e-6 * rates) - kinematics.fingertip(joints), axis=-1) / 1e-6


if __name__ == "__main__":
    run(measure, __doc__ or "", steps=300_000)
