"""Parity: does MJX step as C does? Checked in states where each pair of geometries touches, the worst pair named."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np
from mujoco.mjx._src import collision_driver as _collision

from rsr.simulators import MujocoSimulator
from rsr.simulators.mjx.implicit import converged
from rsr.simulators.mjx.simulator import MjxSimulator

Pair = tuple[int, int]
"""Two geometry ids."""

FREE_MOTION = "free motion"
DEPTH_M = 1e-3
"""Touching geometries overlap by up to this much."""
_TOO_DEEP_M = 5e-3
_TRIES = 40
_NEWTON_STEPS = 12
_FAR_M = 10.0


@dataclass(frozen=True)
class Parity:
    """Largest differences of velocities after one control step, MJX against C.

    Args:
        velocity_error: pair of geometry names, or "free motion" -> largest difference (m/s or rad/s) in states where
            they touch.
        unchecked: pairs that no random state brought into contact.
        tolerance: difference that counts as equal.
    """

    velocity_error: dict[str, float]
    unchecked: tuple[str, ...]
    tolerance: float

    @property
    def worst(self) -> str:
        """Pair at which the simulators differ most."""
        return max(self.velocity_error, key=lambda pair: self.velocity_error[pair])

    @property
    def equal(self) -> bool:
        return all(error <= self.tolerance for error in self.velocity_error.values())

    def __str__(self) -> str:
        verdict = "MJX steps as C does" if self.equal else "MJX does NOT step as C does"
        error = self.velocity_error[self.worst]
        missing = f"; no random state brought into contact: {', '.join(self.unchecked)}" if self.unchecked else ""
        return f"{verdict}: worst {self.worst}, velocities differ by {error:.1e}{missing}"


def check_parity(
    simulator: MjxSimulator, rng: np.random.Generator, count: int = 16, tolerance: float = 1e-6, threads: int = 2
) -> Parity:
    """Step both simulators from `count` random states for every pair of geometries that can collide."""
    model = simulator.scenario.model(simulator.scenario.space.nominal)
    pairs = pairs_that_touch(model)
    free = [np.concatenate([_random_position(model, rng), 0.1 * rng.normal(size=model.nv)]) for _ in range(count)]
    # Without contact first: a difference there is in the smooth dynamics, and would show in every pair.
    states = {FREE_MOTION: np.array(free)}
    states |= {name: touching_states(model, pair, rng, count) for name, pair in pairs.items()}
    with MujocoSimulator(converged(simulator.scenario), threads) as reference:
        errors = {name: _velocity_error(simulator, reference, rows) for name, rows in states.items() if len(rows)}
    return Parity(errors, tuple(name for name, rows in states.items() if not len(rows)), tolerance)


def pairs_that_touch(model: mujoco.MjModel) -> dict[str, Pair]:
    """Name each pair of geometries that can collide; none where the MJCF switches contact off."""
    if model.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_CONTACT:
        return {}
    return {_name(model, (first, second)): (first, second) for first, second, _ in _collision.geom_pairs(model)}


def _velocity_error(simulator: MjxSimulator, reference: MujocoSimulator, states: np.ndarray) -> float:
    """Largest difference of velocities after one control step from states [N, nq + nv]."""
    scenario, model = simulator.scenario, simulator.scenario.base_model
    actions = np.repeat(_holding_commands(model, states)[:, None], scenario.history_steps + 1, axis=1)
    rest = np.zeros((len(states), scenario.state_size - states.shape[1]))  # activations and readings
    states = np.concatenate([states, rest], axis=1)
    expected = reference.rollout(states, actions, scenario.space.nominal)
    # The compiled program of the sensitivities returns states too, and a fit needs it anyway: no second compilation.
    got, _ = simulator.sensitivities(states, actions, scenario.space.nominal)
    return float(np.abs((got - expected)[:, 1, model.nq : model.nq + model.nv]).max())


def touching_states(model: mujoco.MjModel, pair: Pair, rng: np.random.Generator, count: int) -> np.ndarray:
    """Up to `count` random states [N, nq + nv] in which two geometries overlap a little, and nothing overlaps much."""
    data, states = mujoco.MjData(model), []
    heights = model.jnt_qposadr[model.jnt_type == mujoco.mjtJoint.mjJNT_FREE] + 2
    for _ in range(_TRIES * count):
        data.qpos = _random_position(model, rng)
        data.qpos[heights] += 1.0  # turned at random where they rest, they would be in the table
        _move_into_contact(model, data, pair, rng)
        mujoco.mj_kinematics(model, data)
        mujoco.mj_collision(model, data)
        # Deep overlaps make forces so large that rounding differences of the solvers exceed the tolerance.
        depths: dict[Pair, float] = {}
        for contact in data.contact:  # a pair may touch at several points, a capsule on a plane at both ends
            touching = int(min(contact.geom)), int(max(contact.geom))
            depths[touching] = max(depths.get(touching, -np.inf), -contact.dist)
        if depths.get((min(pair), max(pair)), -1.0) > 0 and max(depths.values()) < _TOO_DEEP_M:
            states.append(np.concatenate([data.qpos, 0.1 * rng.normal(size=model.nv)]))
        if len(states) == count:
            break
    return np.array(states).reshape(-1, model.nq + model.nv)


def _random_position(model: mujoco.MjModel, rng: np.random.Generator) -> np.ndarray:
    """Joints anywhere in their ranges, free bodies turned at random near where the MJCF puts them."""
    qpos = model.qpos0.copy()
    for joint in range(model.njnt):
        start, kind = model.jnt_qposadr[joint], model.jnt_type[joint]
        if kind == mujoco.mjtJoint.mjJNT_HINGE or kind == mujoco.mjtJoint.mjJNT_SLIDE:
            low, high = model.jnt_range[joint] if model.jnt_limited[joint] else (-0.5, 0.5)
            qpos[start] = rng.uniform(low, high)
        else:
            turn = start + 3 if kind == mujoco.mjtJoint.mjJNT_FREE else start
            quaternion = rng.normal(size=4)
            qpos[turn : turn + 4] = quaternion / np.linalg.norm(quaternion)
    return qpos


def _move_into_contact(model: mujoco.MjModel, data: mujoco.MjData, pair: Pair, rng: np.random.Generator) -> None:
    """Move joints and free bodies by Newton's method until the two geometries just overlap."""
    bodies = [int(model.geom_bodyid[geom]) for geom in pair]
    overlap = rng.uniform(0.1, 1.0) * DEPTH_M
    limited = (model.jnt_limited == 1) & (model.jnt_type != mujoco.mjtJoint.mjJNT_BALL)
    at, (low, high) = model.jnt_qposadr[limited], model.jnt_range[limited].T
    nearest, jacobian = np.zeros((2, 3)), np.zeros((2, 3, model.nv))
    for _ in range(_NEWTON_STEPS):
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)  # what mj_jac goes by
        distance = mujoco.mj_geomDistance(model, data, *pair, _FAR_M, nearest.reshape(-1))
        if abs(distance + overlap) < DEPTH_M / 10 or not 1e-9 < abs(distance) < _FAR_M:
            return
        for body, point, slopes in zip(bodies, nearest, jacobian, strict=True):
            mujoco.mj_jac(model, data, slopes, None, point, body)
        slope = (nearest[1] - nearest[0]) / distance @ (jacobian[1] - jacobian[0])
        if not slope.any():
            return
        mujoco.mj_integratePos(model, data.qpos, slope * (-overlap - distance) / (slope @ slope), 1.0)
        data.qpos[at] = np.clip(data.qpos[at], low, high)


def _holding_commands(model: mujoco.MjModel, states: np.ndarray) -> np.ndarray:
    """Commands [N, nu] with which position servos of joints hold still, and other actuators do nothing."""
    commands = np.zeros((len(states), model.nu))
    for actuator in range(model.nu):
        # MuJoCo's <position>: gain kp on the command, bias -kp on the position.
        servo = model.actuator_biasprm[actuator, 1] == -model.actuator_gainprm[actuator, 0]
        if servo and model.actuator_trntype[actuator] == mujoco.mjtTrn.mjTRN_JOINT:
            commands[:, actuator] = states[:, model.jnt_qposadr[model.actuator_trnid[actuator, 0]]]
    return commands


def _name(model: mujoco.MjModel, pair: Pair) -> str:
    names = [mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_GEOM, geom) or f"geom {geom}" for geom in pair]
    return " / ".join(names)
