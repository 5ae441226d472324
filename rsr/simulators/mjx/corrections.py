"""Constants that MuJoCo derives from masses and inertias, and MJX does not update: a differentiable `mj_setConst`.

`dof_invweight0` and `body_invweight0` set how soft each contact, limit and friction is; left stale, a contact of a body
whose mass was changed has wrong forces and 0.6 % wrong derivatives.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
from mujoco import mjx
from mujoco.mjx._src import support as _support

from rsr.scenarios import Binding

_RESHAPES = ("com_", "stretch_", "shear_")
"""Beginnings of fields with which a ball may be none."""
_ONLY_SLIDES = 2
"""body_simple: a body that only slides; MuJoCo takes 1/mass for it and ignores armature."""


def refresh_constants(model: mjx.Model, base: mujoco.MjModel, data: mjx.Data) -> mjx.Model:
    """Recompute dof_invweight0, body_invweight0 and body_subtreemass of a model whose masses or armatures changed.

    Args:
        base: the C model that `model` was made from; only its structure is read.
        data: any data of the model; only its shapes are read.
    """
    # `mj_setConst` evaluates everything at qpos0.
    data = data.replace(qpos=model.qpos0)
    data = mjx.crb(model, mjx.com_pos(model, mjx.kinematics(model, data)))
    # nv is small here (an arm and a few blocks): the dense inverse of M is cheaper than nv sparse solves.
    inverse = jnp.linalg.inv(mjx.full_m(model, data))
    return model.replace(
        dof_invweight0=_joint_weights(model, base, inverse),
        body_invweight0=_body_weights(model, base, data, inverse),
        body_subtreemass=_subtree_masses(model, base),
    )


def _joint_weights(model: mjx.Model, base: mujoco.MjModel, inverse: jax.Array) -> jax.Array:
    """[nv], the diagonal of the inverse inertia; translations averaged and rotations, of free and ball joints."""
    diagonal, weights = jnp.diag(inverse), []
    for joint in range(base.njnt):
        first, body = int(base.jnt_dofadr[joint]), int(base.jnt_bodyid[joint])
        kind = base.jnt_type[joint]
        if kind == mujoco.mjtJoint.mjJNT_FREE:
            weights += [diagonal[first : first + 3].mean()] * 3 + [diagonal[first + 3 : first + 6].mean()] * 3
        elif kind == mujoco.mjtJoint.mjJNT_BALL:
            weights += [diagonal[first : first + 3].mean()] * 3
        elif base.body_simple[body] == _ONLY_SLIDES:
            weights += [1.0 / model.body_mass[body]]
        else:
            weights += [diagonal[first]]
    return jnp.stack(weights)


def _body_weights(model: mjx.Model, base: mujoco.MjModel, data: mjx.Data, inverse: jax.Array) -> jax.Array:
    """[nbody, 2], mean inverse weight of each body's centre of mass in translation and in rotation."""
    weights = []
    for body in range(base.nbody):
        if base.body_weldid[body] == 0:
            weights.append(jnp.zeros(2))
        elif base.body_simple[body] == _ONLY_SLIDES:
            weights.append(jnp.stack([1.0 / model.body_mass[body], jnp.zeros(())]))
        else:
            # Translational and rotational Jacobians J of the centre of mass: weight = trace(J M^-1 J') / 3.
            moves = _support.jac(model, data, data.xipos[body], jnp.asarray(body))
            weights.append(jnp.stack([jnp.trace(part.T @ inverse @ part) / 3.0 for part in moves]))
    return jnp.stack(weights)


def _subtree_masses(model: mjx.Model, base: mujoco.MjModel) -> jax.Array:
    masses = [model.body_mass[body] for body in range(base.nbody)]
    # Children have larger indices than their parents, so one pass from the end sums whole subtrees.
    for body in range(base.nbody - 1, 0, -1):
        masses[int(base.body_parentid[body])] += masses[body]
    return jnp.stack(masses)


# C integrates rotation of free bodies implicitly (since MuJoCo 3.11), MJX explicitly: forces that correct for it.


def turning_bodies(base: mujoco.MjModel, bindings: tuple[Binding, ...]) -> tuple[int, ...]:
    """Free bodies that need the treatment: no joint below them, and not always a ball around their origin."""
    if base.opt.integrator != mujoco.mjtIntegrator.mjINT_IMPLICITFAST:
        return ()
    shifted = {body for binding in bindings if binding.field.startswith(_RESHAPES) for body in binding.ids}
    bodies = []
    for joint in np.flatnonzero(base.jnt_type == mujoco.mjtJoint.mjJNT_FREE):
        body = int(base.jnt_bodyid[joint])
        parts = _rigid_parts(base, body)
        round_ = np.ptp(base.body_inertia[body]) == 0 and not base.body_ipos[body].any() and body not in shifted
        if base.body_dofnum[parts].sum() == 6 and not (len(parts) == 1 and round_):
            bodies.append(body)
    return tuple(bodies)


def correct(model: mjx.Model, base: mujoco.MjModel, data: mjx.Data, bodies: tuple[int, ...]) -> mjx.Data:
    """Change the forces of a solved step so that MJX's integrator arrives where C's does."""
    if not bodies:
        return data
    # implicitfast solves (M - h D) a = f with D the derivative of the smooth forces by velocity. C's D of a free body
    # has the gyroscopic term T as well: (M - h D + h T) a = f. MJX gets there with the force f - h T a.
    damped = mjx.full_m(model, data)
    derivative = mjx.deriv_smooth_vel(model, data)
    if derivative is not None:
        damped = damped - model.opt.timestep * derivative
    force = data.qfrc_constraint
    for body in bodies:
        first = int(base.jnt_dofadr[base.body_jntadr[body]])
        block = slice(first, first + 6)
        turning = model.opt.timestep * _bias_derivative(model, base, data, body)
        total = (data.qfrc_smooth + data.qfrc_constraint)[block]
        acceleration = jnp.linalg.solve(damped[block, block] + turning, total)
        force = force.at[block].add(-turning @ acceleration)
    return data.replace(qfrc_constraint=force)


def _bias_derivative(model: mjx.Model, base: mujoco.MjModel, data: mjx.Data, body: int) -> jax.Array:
    """Derivative [6, 6] of a free body's gyroscopic and centrifugal forces by its velocity.

    Velocities of a free joint are linear in the world's frame, angular (w) in the body's. With the first moment of
    mass s and the inertia J about the origin, both in the body's frame, the forces are R w x (w x s) and w x J w.
    """
    turn = data.xmat[body]
    moment, inertia = jnp.zeros(3), jnp.zeros((3, 3))
    for part in _rigid_parts(base, body):
        mass, centre = model.body_mass[part], turn.T @ (data.xipos[part] - data.xpos[body])
        axes = turn.T @ data.ximat[part]
        moment = moment + mass * centre
        # Parallel axis theorem: -m [c]x [c]x.
        inertia = inertia + (axes * model.body_inertia[part]) @ axes.T - mass * _cross(centre) @ _cross(centre)
    first = int(base.jnt_dofadr[base.body_jntadr[body]])
    rate = data.qvel[first + 3 : first + 6]
    # d/dw of w x (w x s) = -[w x s]x - [w]x [s]x; d/dw of w x J w = [w]x J - [J w]x.
    linear = -turn @ (_cross(jnp.cross(rate, moment)) + _cross(rate) @ _cross(moment))
    angular = _cross(rate) @ inertia - _cross(inertia @ rate)
    return jnp.concatenate([jnp.zeros((6, 3)), jnp.concatenate([linear, angular])], axis=1)


def _rigid_parts(base: mujoco.MjModel, body: int) -> np.ndarray:
    """A free body and everything below it."""
    return np.flatnonzero(base.body_rootid == body)


def _cross(vector: jax.Array) -> jax.Array:
    """The matrix [3, 3] of the cross product with a vector."""
    return jnp.cross(vector, -jnp.eye(3))
