"""Boxes against planes and spheres exactly as in C, in place of MJX's approximations for general convex meshes.

MJX drops corners of a tilted box that penetrate a plane 1 mm less than the deepest (in C every one of them carries
load), and tilts a sphere's normal on a box edge by 0.002 rad. Over half a second either sends a pushed block elsewhere.
"""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
from mujoco import mjx
from mujoco.mjx._src import collision_primitive as _primitive
from mujoco.mjx._src import math as _math
from mujoco.mjx._src.collision_types import GeomInfo

Contacts = tuple[jax.Array, jax.Array, jax.Array]
"""Distances, positions and frames; a frame's first row is the normal, from the first geom to the second."""

_SIGNS = np.array(list(itertools.product((-1.0, 1.0), repeat=3)))


@_primitive.collider(ncon=4)
def plane_box(plane: GeomInfo, box: GeomInfo) -> Contacts:
    """The four lowest corners: no more can lie below the centre of a box, and C counts none above it."""
    normal = plane.mat[:, 2]
    corners = box.pos + (_SIGNS * box.size) @ box.mat.T
    heights = (corners - plane.pos) @ normal
    _, lowest = jax.lax.top_k(-jax.lax.stop_gradient(heights), 4)
    distance = heights[lowest]
    return distance, corners[lowest] - 0.5 * distance[:, None] * normal, jnp.stack([_math.make_frame(normal)] * 4)


@_primitive.collider(ncon=1)
def sphere_box(sphere: GeomInfo, box: GeomInfo) -> Contacts:
    """The point of the box nearest to the centre; the nearest face's, where the centre is inside."""
    centre = box.mat.T @ (sphere.pos - box.pos)
    beyond = jnp.abs(centre) - box.size
    outside = jnp.any(beyond > 0)
    apart = centre - jnp.clip(centre, -box.size, box.size)
    gap = jnp.linalg.norm(jnp.where(outside, apart, 1.0))
    face = jnp.argmax(beyond)
    outward = jnp.zeros(3).at[face].set(jnp.where(centre[face] < 0, -1.0, 1.0))
    normal = box.mat @ jnp.where(outside, -apart / gap, -outward)
    distance = jnp.where(outside, gap, beyond[face]) - sphere.size[0]
    return distance, sphere.pos + normal * (sphere.size[0] + 0.5 * distance), _math.make_frame(normal)


EXACT = {
    (mjx.GeomType.PLANE, mjx.GeomType.BOX): plane_box,
    (mjx.GeomType.SPHERE, mjx.GeomType.BOX): sphere_box,
}
"""What replaces MJX's own functions in its table of collision functions; the numbers of contacts are equal."""
