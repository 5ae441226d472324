"""What MuJoCo derives from masses and inertias once, and MJX leaves as it was: a differentiable `mj_setConst`.

`dof_invweight0` and `body_invweight0` set how soft each contact, limit and friction is; left stale, a contact of a body
whose mass was changed has wrong forces and 0.6 % wrong derivatives.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import mujoco
from mujoco import mjx
from mujoco.mjx._src import support as _support

_ONLY_SLIDES = 2
"""body_simple: a body that only slides; MuJoCo takes 1/mass for it and ignores armature."""


def refresh_constants(model: mjx.Model, base: mujoco.MjModel, data: mjx.Data) -> mjx.Model:
    """Recompute dof_invweight0, body_invweight0 and body_subtreemass of a model whose masses or armatures changed.

    Args:
        base: the C model that `model` was made from; only its structure is read.
        data: any data of the model; only its shapes are read.
    """
    data = data.replace(qpos=model.qpos0)
    data = mjx.crb(model, mjx.com_pos(model, mjx.kinematics(model, data)))
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
            moves = _support.jac(model, data, data.xipos[body], jnp.asarray(body))
            weights.append(jnp.stack([jnp.trace(part.T @ inverse @ part) / 3.0 for part in moves]))
    return jnp.stack(weights)


def _subtree_masses(model: mjx.Model, base: mujoco.MjModel) -> jax.Array:
    masses = [model.body_mass[body] for body in range(base.nbody)]
    for body in range(base.nbody - 1, 0, -1):
        masses[int(base.body_parentid[body])] += masses[body]
    return jnp.stack(masses)
