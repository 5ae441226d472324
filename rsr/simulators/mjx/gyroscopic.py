"""Free bodies turn implicitly in C (since MuJoCo 3.11), explicitly in MJX: the difference, made good.

C's integrator `implicitfast` solves, for the six velocities of a free body without joints below it,

    (M - h df/dv) dv/dt = f,

with the derivative of its gyroscopic and centrifugal forces in df/dv, which MJX leaves out. It matters where the centre
of mass is off the body's origin or the inertia differs between axes: a turning cube with its centre of mass 2 mm off
centre drifts from C by 1e-3 rad/s within a tenth of a second.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
from mujoco import mjx

from rsr.scenarios.bindings import Binding


def turning_bodies(base: mujoco.MjModel, bindings: tuple[Binding, ...]) -> tuple[int, ...]:
    """Free bodies that need the treatment: no joint below them, and not always a ball around their origin."""
    if base.opt.integrator != mujoco.mjtIntegrator.mjINT_IMPLICITFAST:
        return ()
    shifted = {body for binding in bindings if binding.field.startswith("com_") for body in binding.ids}
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
        inertia = inertia + (axes * model.body_inertia[part]) @ axes.T - mass * _cross(centre) @ _cross(centre)
    first = int(base.jnt_dofadr[base.body_jntadr[body]])
    rate = data.qvel[first + 3 : first + 6]
    linear = -turn @ (_cross(jnp.cross(rate, moment)) + _cross(rate) @ _cross(moment))
    angular = _cross(rate) @ inertia - _cross(inertia @ rate)
    return jnp.concatenate([jnp.zeros((6, 3)), jnp.concatenate([linear, angular])], axis=1)


def _rigid_parts(base: mujoco.MjModel, body: int) -> np.ndarray:
    """A free body and everything below it."""
    return np.flatnonzero(base.body_rootid == body)


def _cross(vector: jax.Array) -> jax.Array:
    """The matrix [3, 3] of the cross product with a vector."""
    return jnp.cross(vector, -jnp.eye(3))
