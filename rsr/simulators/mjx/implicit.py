"""Contacts exactly as in C where MJX's own differ: boxes against planes and spheres, capsules against planes.

MJX drops corners of a tilted box that penetrate a plane 1 mm less than the deepest (in C every one of them carries
load), and tilts a sphere's normal on a box edge by 0.002 rad. Over half a second either sends a pushed block elsewhere.
The tangents at a capsule that stands steeper than 60 degrees it takes from the world, where C takes them from the
capsule: a pyramid of friction turns with its tangents. On a tilted plane those of the world are not even tangents.
"""

from __future__ import annotations

import copy
import dataclasses
import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
from mujoco import mjx
from mujoco.mjx._src import (
    collision_driver as _collision,
    collision_primitive as _primitive,
    forward as _forward,  # private: pinned to the version in pyproject.toml
    math as _math,
    solver as _solver,
    support as _support,
)
from mujoco.mjx._src.collision_types import GeomInfo

from rsr.scenarios import Scenario

Contacts = tuple[jax.Array, jax.Array, jax.Array]
"""Distances, positions and frames; a frame's first row is the normal, from the first geom to the second."""

_UPRIGHT = 1e-6
_SIGNS = np.array(list(itertools.product((-1.0, 1.0), repeat=3)))


@_primitive.collider(ncon=4)
def plane_box(plane: GeomInfo, box: GeomInfo) -> Contacts:
    """The four lowest corners: no more can lie below the centre of a box, and C counts none above it."""
    normal = plane.mat[:, 2]
    corners = box.pos + (_SIGNS * box.size) @ box.mat.T
    heights = (corners - plane.pos) @ normal
    # The selection has no derivative; the selected heights do.
    _, lowest = jax.lax.top_k(-jax.lax.stop_gradient(heights), 4)
    distance = heights[lowest]
    return distance, corners[lowest] - 0.5 * distance[:, None] * normal, jnp.stack([_math.make_frame(normal)] * 4)


@_primitive.collider(ncon=1)
def sphere_box(sphere: GeomInfo, box: GeomInfo) -> Contacts:
    """The point of the box nearest to the centre; the nearest face's, where the centre is inside."""
    # In the box's frame; `beyond` is the signed distance to each pair of faces.
    centre = box.mat.T @ (sphere.pos - box.pos)
    beyond = jnp.abs(centre) - box.size
    outside = jnp.any(beyond > 0)
    apart = centre - jnp.clip(centre, -box.size, box.size)
    # Inside the box the offset is zero, and a norm's derivative there NaN: differentiate a constant instead.
    gap = jnp.linalg.norm(jnp.where(outside, apart, 1.0))
    face = jnp.argmax(beyond)
    outward = jnp.zeros(3).at[face].set(jnp.where(centre[face] < 0, -1.0, 1.0))
    normal = box.mat @ jnp.where(outside, -apart / gap, -outward)
    distance = jnp.where(outside, gap, beyond[face]) - sphere.size[0]
    return distance, sphere.pos + normal * (sphere.size[0] + 0.5 * distance), _math.make_frame(normal)


@_primitive.collider(ncon=2)
def plane_capsule(plane: GeomInfo, capsule: GeomInfo) -> Contacts:
    """Both ends; the first tangent follows the capsule, however steeply it stands."""
    normal, axis = plane.mat[:, 2], capsule.mat[:, 2]
    ends = capsule.pos + np.array([[1.0], [-1.0]]) * capsule.size[1] * axis
    distance = (ends - plane.pos) @ normal - capsule.size[0]
    along = axis - normal * (normal @ axis)
    still = jax.lax.stop_gradient(along)
    lean = jnp.linalg.norm(still)
    # Upright, it leans to no side, and next to upright the least motion turns its side by any angle: no derivative.
    along = jnp.where(lean < _UPRIGHT, still, along)
    along = jnp.where(lean < mujoco.mjMINVAL, _math.orthogonals(normal)[1], along)
    tangent = along / jnp.linalg.norm(along)
    frame = jnp.stack([normal, tangent, jnp.cross(normal, tangent)])
    points = ends - (capsule.size[0] + 0.5 * distance)[:, None] * normal
    return distance, points, jnp.stack([frame] * 2)


EXACT = {
    (mjx.GeomType.PLANE, mjx.GeomType.CAPSULE): plane_capsule,
    (mjx.GeomType.PLANE, mjx.GeomType.BOX): plane_box,
    (mjx.GeomType.SPHERE, mjx.GeomType.BOX): sphere_box,
}
"""Replacements in MJX's table of collision functions; the numbers of contacts are equal."""


# C MuJoCo with its contact solver run to the end: what MJX and its derivatives are compared with.


def converged(scenario: Scenario) -> Scenario:
    """The same scenario with a contact solver that stops at rounding errors."""
    model = copy.copy(scenario.base_model)
    model.opt.tolerance = 1e-15
    model.opt.iterations = max(model.opt.iterations, 100)
    model.opt.ls_iterations = max(model.opt.ls_iterations, 50)
    return dataclasses.replace(scenario, base_model=model)


# Forward dynamics whose derivative passes through the *converged* contact solve.

_stock_solve = _solver.solve
_patching = threading.RLock()


def forward(model: mjx.Model, data: mjx.Data) -> mjx.Data:
    """Compute accelerations like `mjx.forward`: derivatives through the converged solve, contacts as in C."""
    with _replacing(solve):
        return mjx.forward(model, data)


def solve(model: mjx.Model, data: mjx.Data) -> mjx.Data:
    """Solve for constrained accelerations like `mjx.solve`, differentiable in both modes and for both cones."""
    solved = _solve_values(_stopped(model), _stopped(data))
    found = jax.lax.stop_gradient(solved.qacc)
    # Implicit function theorem: at the solution g(a, theta) = 0, so da = -H^-1 dg. The value of the Newton step is zero
    # there, and its derivative, with H held constant, is exactly that.
    acceleration = found - _newton_step(model, data.replace(qacc=found))
    # At the solution the constraint forces are what the smooth ones leave to do.
    force = _support.mul_m(model, data, acceleration) - data.qfrc_smooth
    return data.tree_replace(
        {
            "qacc": acceleration,
            "qfrc_constraint": force,
            "_impl.efc_force": jax.lax.stop_gradient(solved._impl.efc_force),
        }
    )


def _newton_step(model: mjx.Model, data: mjx.Data) -> jax.Array:
    """H^-1 g at data.qacc [nv], H without derivative: g carries the derivative with respect to model and data."""
    newton = model.replace(opt=model.opt.replace(solver=mjx.SolverType.NEWTON))
    context = _solver.Context.create(newton, data, grad=False)
    gradient = context.Ma - data.qfrc_smooth - context.qfrc_constraint
    still = _stopped(data)
    # The solver forms the gradient as Ma - smooth - constraint, and this context makes that our g.
    frozen = _stopped(context)
    frozen = frozen.replace(Ma=gradient + still.qfrc_smooth + frozen.qfrc_constraint)
    return _solver._update_gradient(_stopped(newton), still, frozen).Mgrad


def _solve_values(model: mjx.Model, data: mjx.Data) -> mjx.Data:
    """MJX's solve, leaving its line search when that is done: the stock one always runs to its last iteration."""
    # MJX unrolls its loop as a scan to be differentiable in reverse; values need no derivative.
    original = _solver._while_loop_scan
    with _patching:
        _solver._while_loop_scan = lambda condition, body, start, _: jax.lax.while_loop(condition, body, start)
        try:
            return _stock_solve(model, data)
        finally:
            _solver._while_loop_scan = original


@contextmanager
def _replacing(solver: Any) -> Iterator[None]:
    """While a step is traced, `mjx.forward` calls another solver and exact collisions."""
    # Tracing happens in several threads, and a patched module is global: one at a time.
    with _patching:
        stock_solver, stock_collisions = _forward.solver.solve, dict(_collision._COLLISION_FUNC)
        _forward.solver.solve = solver
        _collision._COLLISION_FUNC.update(EXACT)
        try:
            yield
        finally:
            _forward.solver.solve = stock_solver
            _collision._COLLISION_FUNC.update(stock_collisions)


def _stopped(tree: Any) -> Any:
    return jax.tree.map(lambda leaf: jax.lax.stop_gradient(leaf) if isinstance(leaf, jax.Array) else leaf, tree)
