"""Spin of free bodies whose position is measured and whose orientation is not, such as a ball that a camera tracks."""

from __future__ import annotations

import copy

import mujoco
import numpy as np

from rsr.scenarios.scenario import Scenario

_NEAR_NOISES = 10.0
"""A body touches what it is so many standard deviations of its position away from, as measured: what it touches errs,
too."""
_SLIP = 0.5
"""Standard deviation of a spin that nothing shows, over the spin of rolling at its speed: sliding without spin lies two
of them away."""
_RIGID = 1e3
"""Weight of not turning into, or away from, what is touched, over that of not sliding on it."""


def unseen_spins(scenario: Scenario) -> list[int]:
    """Free joints of which channels show the position, and neither orientation nor initial angular velocity."""
    model = scenario.base_model
    placed = {dof for observed in scenario.observed for dof in observed.dofs}
    seen = placed | {dof for velocity in scenario.velocities if velocity.initial for dof in velocity.dofs}
    free = np.flatnonzero(model.jnt_type == mujoco.mjtJoint.mjJNT_FREE)
    first = [int(model.jnt_dofadr[joint]) for joint in free]
    return [int(joint) for joint, dof in zip(free, first, strict=True) if dof in placed and dof + 3 not in seen]


def roll(scenario: Scenario, qpos: np.ndarray, qvel: np.ndarray) -> None:
    """Give bodies of unseen spin, in qvel [T, nv], the spin at which they slide least where they touch: they roll.

    At rest in a simulation's first row, a rolling ball would slide until friction had spun it up, and lose two sevenths
    of its speed: a fit takes that for little friction, or for a clock offset.
    """
    joints = unseen_spins(scenario)
    if not joints:
        return
    model = copy.copy(scenario.base_model)
    places = set(model.jnt_dofadr[joints].tolist())
    reach = _NEAR_NOISES * max(observed.noise for observed in scenario.observed if places & set(observed.dofs))
    model.geom_margin[:] += reach
    model.pair_margin[:] += reach
    bodies = model.jnt_bodyid[joints]
    spins = np.concatenate([model.jnt_dofadr[joint] + np.arange(3, 6) for joint in joints])
    data = mujoco.MjData(model)
    for row in range(len(qpos)):
        data.qpos[:] = qpos[row]
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_collision(model, data)
        turning, sliding = [], []
        for contact in data.contact:
            first, second = model.geom_bodyid[contact.geom]
            if first in bodies or second in bodies:
                jacobian = contact.frame.reshape(3, 3) @ (
                    _of_point(model, data, contact.pos, second) - _of_point(model, data, contact.pos, first)
                )
                turning.append(jacobian[:, spins])
                sliding.append(jacobian @ qvel[row])
        if turning:
            # Along the normal (row 0 of a contact) a spin moves nothing: a box that slides does not tip over.
            weights = np.tile([_RIGID, 1.0, 1.0], len(turning))
            wanted = np.tile([0.0, 1.0, 1.0], len(turning)) * -np.concatenate(sliding)
            qvel[row, spins] = np.linalg.lstsq(weights[:, None] * np.concatenate(turning), wanted, rcond=1e-6)[0]


def _of_point(model: mujoco.MjModel, data: mujoco.MjData, point: np.ndarray, body: int) -> np.ndarray:
    """Jacobian [3, nv] of the velocity of a point that is fixed in a body."""
    jacobian = np.zeros((3, model.nv))
    mujoco.mj_jac(model, data, jacobian, None, point, body)
    return jacobian


def start_spread(scenario: Scenario, starts: np.ndarray) -> np.ndarray:
    """How wrong initial states [W, n] are, [W, 2 nv] standard deviations: `Scenario.start_std`, and those of spins.

    A spin that is inferred is wrong as the measured speed is, and as far as the body may slide, or spin in flight.
    """
    model, std = scenario.base_model, np.tile(scenario.start_std, (len(starts), 1))
    for joint in unseen_spins(scenario):
        dof, body = int(model.jnt_dofadr[joint]), model.jnt_bodyid[joint]
        radius_m = float(model.geom_rbound[model.geom_bodyid == body].max(initial=0.0))
        if radius_m > 0.0:
            speed = np.linalg.norm(starts[:, model.nq + dof : model.nq + dof + 3], axis=1)
            spread = np.hypot(_SLIP * speed, scenario.start_std[model.nv + dof]) / radius_m
            std[:, model.nv + dof + 3 : model.nv + dof + 6] = spread[:, None]
    return std
