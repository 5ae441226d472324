"""Where what is driven by force comes to rest once it is braked: a limit that acts on places must act before them.

A force leads nowhere by itself, but what it has set moving has mass. So before a command is sent, the model says what
would follow: the command for one control step, on top of those that a delay still holds back; then the brakes, step by
step as they would be told, until it rests. Where that way leads beyond a limit, farther than it is beyond it now, the
command is not sent, and the robot is braked instead. What was sent before was judged in the same way, so braking was,
and is, enough. It is judged twice: with all of the force that holding the robot leaves, which is what will happen where
the model is right, and with a share of it, as it may not be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import mujoco
import numpy as np
from mujoco import rollout as mujoco_rollout

from rsr.scenarios.motion.kinematics import carriers, site_positions

if TYPE_CHECKING:
    from rsr.scenarios.scenario import Scenario

RATE = "rate:"
"""Prefix of a channel: the difference of the last two measurements over a control step, unfiltered."""
PAST = "past commands"
"""Channel of the commands sent, newest first, one after the other [B, (D + 1) nu]."""

_STEP_S = 0.005  # of the prediction: at 20 rad/s 0.01 s are centimetres off; contacts need finer ones, and are left out
_SHOTS = 3  # at the last control step
_LONGEST_S = 2.0  # of braking
_HARDLY = 1e-3  # of a joint's force, for braking, where holding takes all of it
_POSTURES, _SPARE = 64, 1.3  # drawn, and a factor on their extremes for those that were not
_STILL = 0.02  # rad/s or m/s
_MARGIN = 0.01  # rad or m before a limit: noise, and what a brake that acts step by step takes longer than a steady one
_FURTHER = 1e-6  # rad or m: rounding of a prediction
_FREE, _SLIDE, _HINGE = mujoco.mjtJoint.mjJNT_FREE, mujoco.mjtJoint.mjJNT_SLIDE, mujoco.mjtJoint.mjJNT_HINGE


class Place(Protocol):
    """Interface of a limit on where a site may be."""

    @property
    def site(self) -> int: ...

    def beyond(self, places: np.ndarray) -> np.ndarray: ...


@dataclass(frozen=True)
class _Extremes:
    """Of the driven joints: largest acceleration, least deceleration; arms [sites, driven] of sites."""

    acceleration: np.ndarray
    slowing: np.ndarray
    arms: np.ndarray


@dataclass(frozen=True, eq=False)
class Braking:
    """Predicts and brakes the joints of a model that are commanded by force.

    Args:
        model: the scenario's.
        driven: actuators of those joints.
        channels: (channel, its indices into qpos, into qvel) of what is measured of hinges and slides.
        limited: joints whose range is a limit.
        dt_s: a control step.
        delay_steps: by which commands may be late.
        share: of the drives' force that brakes are trusted to have; the rest is for what the model does not know.
        lower, upper, rate: limits of each command, and of its change in a second [nu].
        safe: command that is sent while drives turn round [nu].
    """

    model: mujoco.MjModel
    driven: np.ndarray
    channels: tuple[tuple[str, tuple[int, ...], tuple[int, ...]], ...]
    limited: np.ndarray
    dt_s: float
    delay_steps: int
    share: float
    lower: np.ndarray
    upper: np.ndarray
    rate: np.ndarray
    safe: np.ndarray

    def knows(self, channels: Mapping[str, np.ndarray]) -> bool:
        """Whether the measurements say how fast everything moves."""
        return PAST in channels and all(RATE + name in channels for name, _, _ in self.channels)

    def sees(self, site: int) -> bool:
        """Whether a site's way follows from what is measured and driven."""
        joints = [joint for body in carriers(self.model, [site]) for joint in _joints_of(self.model, body)]
        shown = {place for _, places, _ in self.channels for place in places}
        driven = set(self.model.actuator_trnid[self.driven, 0])
        return bool(driven & set(joints)) and all(int(self.model.jnt_qposadr[joint]) in shown for joint in joints)

    def overruns(self, sent: np.ndarray, channels: Mapping[str, np.ndarray], sites: Sequence[Place] = ()) -> np.ndarray:
        """True [B] where commands [B, nu] would lead beyond a limit, however well it is braked afterwards."""
        past = channels[PAST].reshape(len(sent), -1, self.model.nu)
        overrun = np.zeros(len(sent), bool)
        # How late the commands are is not known: the least and the largest delay are tried.
        for delay in dict.fromkeys((0, self.delay_steps)):
            state = self._now(channels, past[:, delay])
            reached = self._beyond(state[:, None, : self.model.nq], sites)[:, 0]
            allowed = np.maximum(reached, -_MARGIN) + _FURTHER
            coming = np.stack([*(past[:, age] for age in range(delay - 1, -1, -1)), sent], axis=1)
            # What is far from every limit needs no prediction.
            longest = self._longest_way(state, coming.shape[1] + self._turning_steps, sites)
            near = np.any(reached + longest > allowed, axis=1)
            if near.any():
                state[near] = self._sharpened(state[near], channels, near, past[near, delay])
            # As the robot will be braked, and with less force: where joints push each other that is another way.
            for share in (1.0, self.share):
                if (left := near & ~overrun).any():
                    overrun[left] = self._runs_beyond(state[left], coming[left], allowed[left], sites, share)
        return overrun

    def brake(self, previous: np.ndarray, channels: Mapping[str, np.ndarray]) -> np.ndarray:
        """Commands [B, nu] that slow the driven joints down against their speed and hold them against gravity."""
        state = self._now(channels, channels[PAST].reshape(len(previous), -1, self.model.nu)[:, self.delay_steps])
        return self._braked(state, previous, 1.0)

    def _braked(self, state: np.ndarray, previous: np.ndarray, share: float) -> np.ndarray:
        """Commands [B, nu] that brake states [B, nq + nv] with a share of the force that holding them leaves."""
        safe = np.where(np.isnan(self.safe), previous, self.safe)
        wanted, reach = safe.copy(), self.rate * self.dt_s
        weight, inertia = self._weight_and_inertia(state[:, : self.model.nq])
        speed = state[:, self.model.nq + self._dofs]
        # All slow down alike, so that the robot stays on its way: a brake of each for itself would push the others.
        slowing = -np.einsum("bij,bj->bi", inertia, speed) / self._settling_s
        # Holding comes first: a joint whose weight takes nearly all of its force has hardly a brake against falling.
        held = np.clip(weight, -self._strength, self._strength)
        slowing = np.clip(slowing, share * (-self._strength - held), share * (self._strength - held))
        wanted[:, self.driven] = (held + slowing) / self._force
        # Coming nearer to the safe command is free: it is how a robot is held.
        bounded = np.clip(wanted, np.minimum(previous - reach, safe), np.maximum(previous + reach, safe))
        return np.clip(bounded, self.lower, self.upper)

    # What is measured now.

    def _now(self, channels: Mapping[str, np.ndarray], acting: np.ndarray) -> np.ndarray:
        """Positions and speeds [B, nq + nv] at the last measurement.

        A difference is the speed in the middle of a control step; what acted since [B, nu] has changed it further.
        """
        count, model = len(acting), self.model
        state = np.tile(np.concatenate([model.qpos0, np.zeros(model.nv)]), (count, 1))
        for name, places, dofs in self.channels:
            state[:, list(places)] = np.nan_to_num(channels[name])
            state[:, [model.nq + dof for dof in dofs]] = np.nan_to_num(channels[RATE + name])
        first = self._roll(self._free, state, acting[:, None], 1)[:, 0]
        gained = (first[:, model.nq :] - state[:, model.nq :]) * (0.5 * self.dt_s / self._free.opt.timestep)
        state[:, model.nq :] += gained
        return state

    def _sharpened(
        self, state: np.ndarray, channels: Mapping[str, np.ndarray], rows: np.ndarray, acting: np.ndarray
    ) -> np.ndarray:
        """The same of some rows, where speeds change much within a control step: by simulating the last one.

        Its first speed is sought with which it leads from the measurement before to the last one.
        """
        model, substeps = self.model, round(self.dt_s / self._free.opt.timestep)
        before, ended = state.copy(), state
        for name, places, dofs in self.channels:
            rate = np.nan_to_num(channels[RATE + name][rows])
            before[:, list(places)] -= self.dt_s * rate
            before[:, [model.nq + dof for dof in dofs]] = rate
        for _ in range(_SHOTS):
            ended = self._roll(self._free, before, acting[:, None], substeps)[:, -1]
            for _, places, dofs in self.channels:
                missed = state[:, list(places)] - ended[:, list(places)]
                before[:, [model.nq + dof for dof in dofs]] += missed / self.dt_s
        return np.concatenate([state[:, : model.nq], ended[:, model.nq :]], axis=1)

    # What would follow.

    def _longest_way(self, state: np.ndarray, steps: int, sites: Sequence[Place]) -> np.ndarray:
        """Way [B, limits] towards each limit, at most, whatever is sent for so many steps, with the brakes after it."""
        extremes, acting_s = self._extremes, steps * self.dt_s
        speed = np.abs(state[:, self.model.nq + self._dofs])
        fastest = speed + extremes.acceleration * acting_s
        way = fastest * (acting_s + 0.5 * fastest / extremes.slowing + self._settling_s)
        driven = self.model.actuator_trnid[self.driven, 0].tolist()
        of_joints = [way[:, driven.index(joint)] for joint in self.limited.tolist()]
        return np.stack([*of_joints, *(way @ extremes.arms[each.site] for each in sites)], axis=1)

    def _runs_beyond(
        self, state: np.ndarray, coming: np.ndarray, allowed: np.ndarray, sites: Sequence[Place], share: float
    ) -> np.ndarray:
        """True [B] where the commands [B, n, nu], then the brakes, lead beyond what is allowed [B, limits]."""
        model, substeps = self.model, round(self.dt_s / self._free.opt.timestep)
        beyond, off = np.zeros(len(state), bool), np.full(allowed.shape, np.inf)
        state, coming, moving = state.copy(), coming.copy(), np.arange(len(state))
        for step in range(coming.shape[1] + round(_LONGEST_S / self.dt_s)):
            passed = self._roll(self._free, state[moving], coming[moving, :1], substeps)
            ways = self._beyond(passed[:, :, : model.nq], sites)
            beyond[moving] |= np.any(ways > allowed[moving, None], axis=(1, 2))
            state[moving], off[moving] = passed[:, -1], ways[:, -1]
            # What brakes are told from now on is as late as everything that is sent.
            told = self._braked(state[moving], coming[moving, -1], share)
            coming[moving] = np.concatenate([coming[moving, 1:], told[:, None]], axis=1)
            if step + 1 < coming.shape[1] + self._turning_steps:
                continue  # something that was sent is still to come, or the drives turn round
            # What has braked so far that it reaches no limit any more need not be followed until it rests.
            near = np.any(off + self._longest_way(state, 0, sites) > allowed, axis=1)
            fast = np.abs(state[:, model.nq + self._dofs]).max(axis=1) > _STILL
            moving = np.flatnonzero(~beyond & fast & near)
            if not len(moving):
                break
        return beyond

    def _beyond(self, qpos: np.ndarray, sites: Sequence[Place]) -> np.ndarray:
        """How far postures [B, T, nq] are beyond each limit [B, T, limits]; negative where they are allowed."""
        joints = qpos[..., self.model.jnt_qposadr[self.limited]]
        lower, upper = self.model.jnt_range[self.limited].T
        rows = [np.maximum(lower - joints, joints - upper)]
        if sites:
            flat = qpos.reshape(-1, qpos.shape[-1])
            places = site_positions(self.model, flat, [each.site for each in sites])
            off = [each.beyond(places[:, index]) for index, each in enumerate(sites)]
            rows.append(np.stack(off, axis=-1).reshape(*qpos.shape[:-1], len(sites)))
        return np.concatenate(rows, axis=-1)

    def _roll(self, model: mujoco.MjModel, state: np.ndarray, commands: np.ndarray, repeats: int) -> np.ndarray:
        """States [B, n * repeats, nq + nv] under commands [B, n, nu], each for so many steps."""
        full = np.concatenate([np.zeros((len(state), 1)), state], axis=1)
        controls = np.repeat(commands, repeats, axis=1)
        states, _ = mujoco_rollout.rollout(model, self._data, full, controls)
        return states[:, :, 1:]

    # Numbers of the model.

    @cached_property
    def _data(self) -> mujoco.MjData:
        return mujoco.MjData(self._free)

    @cached_property
    def _dofs(self) -> np.ndarray:
        return self.model.jnt_dofadr[self.model.actuator_trnid[self.driven, 0]]

    @cached_property
    def _force(self) -> np.ndarray:
        """Force at each driven joint over its command."""
        return (self.model.actuator_gear[:, 0] * self.model.actuator_gainprm[:, 0])[self.driven]

    @cached_property
    def _strength(self) -> np.ndarray:
        """Largest force of each driven joint either way."""
        largest = np.minimum(-self.lower, self.upper)[self.driven].clip(0.0) * np.abs(self._force)
        limited = self.model.actuator_forcelimited[self.driven] > 0
        bound = np.abs(self.model.actuator_forcerange[self.driven]).min(axis=1)
        own = np.where(limited, bound * np.abs(self.model.actuator_gear[self.driven, 0]), np.inf)
        return np.minimum(largest, own)

    @cached_property
    def _turning_steps(self) -> int:
        """Control steps in which drives come from nothing to the brakes' force; one more, in which nothing is sent."""
        turned = self.share * self._strength / np.abs(self._force) / (self.rate[self.driven] * self.dt_s)
        return 1 + int(np.ceil(turned.max()))

    @cached_property
    def _extremes(self) -> _Extremes:
        """What the driven joints may do at most and at least, in postures drawn from the ranges of all joints."""
        model, dofs, rng = self.model, self._dofs, np.random.default_rng(0)
        data, full, jacobian = mujoco.MjData(model), np.zeros((model.nv, model.nv)), np.zeros((3, model.nv))
        acceleration, slowing = np.zeros(len(dofs)), np.full(len(dofs), np.inf)
        arms = np.zeros((model.nsite, len(dofs)))
        for _ in range(_POSTURES):
            for joint in np.flatnonzero(np.isin(model.jnt_type, (_SLIDE, _HINGE))):
                lower, upper = model.jnt_range[joint] if model.jnt_limited[joint] else (-np.pi, np.pi)
                data.qpos[model.jnt_qposadr[joint]] = rng.uniform(lower, upper)
            mujoco.mj_forward(model, data)
            mujoco.mj_fullM(model, data, full)
            inverse = np.linalg.inv(full)
            falling = np.abs(inverse @ data.qfrc_bias)[dofs]
            acceleration = np.maximum(acceleration, np.abs(inverse[np.ix_(dofs, dofs)]) @ self._strength + falling)
            left = np.maximum(self._strength - np.abs(data.qfrc_bias)[dofs], _HARDLY * self._strength)
            slowing = np.minimum(slowing, self.share * left / np.diag(full)[dofs])
            for site in range(model.nsite):
                mujoco.mj_jacSite(model, data, jacobian, None, site)
                arms[site] = np.maximum(arms[site], np.linalg.norm(jacobian[:, dofs], axis=0))
        return _Extremes(_SPARE * acceleration, slowing / _SPARE, _SPARE * arms)

    @cached_property
    def _free(self) -> mujoco.MjModel:
        """The model for prediction: no contacts, and no ends of ranges that would help to stop."""
        spare = copy(self.model)
        spare.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_LIMIT
        spare.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
        spare.opt.timestep = self.dt_s / max(1, round(self.dt_s / _STEP_S))
        return spare

    def _weight_and_inertia(self, qpos: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Force [B, driven] that holds postures [B, nq]; inertia [B, driven, driven] of the driven joints there."""
        model, data, dofs = self._free, self._data, self._dofs
        bias, inertia = np.zeros((len(qpos), model.nv)), np.zeros((len(qpos), model.nv, model.nv))
        for row, posture in enumerate(qpos):
            data.qpos[:], data.qvel[:] = posture, 0.0
            mujoco.mj_forward(model, data)
            mujoco.mj_fullM(model, data, inertia[row])
            bias[row] = data.qfrc_bias - data.qfrc_passive
        return bias[:, dofs], inertia[:, dofs[:, None], dofs]

    @property
    def _settling_s(self) -> float:
        return 2.0 * (self.delay_steps + 1) * self.dt_s


def braking_of(scenario: Scenario, force: np.ndarray, share: float) -> Braking | None:
    """Brakes of the joints that a scenario commands by force; None where there are none, or the model is not all.

    Args:
        force: [nu], True where a force is commanded.
    """
    model = scenario.base_model
    plain = (model.actuator_biastype == mujoco.mjtBias.mjBIAS_NONE) & (
        model.actuator_dyntype == mujoco.mjtDyn.mjDYN_NONE
    )
    plain &= (model.actuator_gaintype == mujoco.mjtGain.mjGAIN_FIXED) & (model.actuator_ctrllimited > 0)
    joint = model.actuator_trntype == mujoco.mjtTrn.mjTRN_JOINT
    plain &= joint & np.isin(model.jnt_type[np.where(joint, model.actuator_trnid[:, 0], 0)], (_SLIDE, _HINGE))
    driven = np.flatnonzero(force & plain)
    # Effects are physics of which this model knows nothing; so are states of actuators, which nobody measures.
    if not len(driven) or model.na or scenario.effects:
        return None
    places, shown = {int(place) for place in model.jnt_qposadr[np.isin(model.jnt_type, (_SLIDE, _HINGE))]}, []
    for each in scenario.observed:
        if each.qpos and each.kind != "quaternion" and set(each.qpos) <= places:
            shown.append((each.channel.name, each.qpos, each.dofs))
    seen = {place for _, qpos, _ in shown for place in qpos}
    joints = np.unique(model.actuator_trnid[driven, 0])
    limited = [index for index in joints if model.jnt_limited[index] and int(model.jnt_qposadr[index]) in seen]
    delay = 0 if scenario.delay_parameter is None else scenario.delay_steps
    unknown = np.full(model.nu, np.nan)
    return Braking(
        model,
        driven,
        tuple(shown),
        np.array(limited, int),
        scenario.control_dt_s,
        delay,
        share,
        *(unknown,) * 4,
    )


def _joints_of(model: mujoco.MjModel, body: int) -> range:
    first = int(model.body_jntadr[body])
    return range(first, first + int(model.body_jntnum[body]))
