"""Between a scenario's states and the poses that this room speaks of: free bodies, their meshes and their masses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rsr.gnn.bodies import World
from rsr.gnn.rotations import conjugate, from_rotation_vector, product, rotation_vector, turned
from rsr.gnn.solids import world_of
from rsr.scenarios import Scenario

_CLEAR_M = 0.002
"""A body whose lowest corner is higher than this above the floor is taken to fly."""


@dataclass(frozen=True)
class FreeBodies:
    """The free bodies of a scenario with one set of parameters, and where they are in its states.

    Args:
        qpos, dofs: [n, 7] and [n, 6], indices into qpos and qvel, one row a body.
        com_m: [n, 3], centres of mass in the bodies' own frames.
        size: nq, nv of the scenario.
    """

    world: World
    qpos: np.ndarray
    dofs: np.ndarray
    com_m: np.ndarray
    size: tuple[int, int]
    dt_s: float

    def poses(self, states: np.ndarray) -> np.ndarray:
        """Poses [..., n, 7] of the centres of mass in states [..., nq + nv]; orientations wxyz."""
        poses = states[..., self.qpos]
        return np.concatenate([poses[..., :3] + turned(poses[..., 3:], self.com_m), poses[..., 3:]], axis=-1)

    def start(self, states: np.ndarray) -> np.ndarray:
        """The frame of states [B, nq + nv] and the one before it, [B, 2, n, 7].

        The frame before is what a camera would have seen: bodies in flight were on their parabola, others moved evenly.
        """
        poses, (linear, angular) = self.poses(states), self._velocities(states)
        before = poses.copy()
        before[..., :3] -= self.dt_s * linear
        before[..., 2] -= np.where(self.flying(poses), 0.5 * self.world.gravity_m_s2 * self.dt_s**2, 0.0)
        before[..., 3:] = product(from_rotation_vector(-self.dt_s * angular), poses[..., 3:])
        return np.stack([before, poses], axis=1)

    def states(self, poses: np.ndarray) -> np.ndarray:
        """States [B, T - 1, nq + nv] of frames 1 and later of poses [B, T, n, 7]; velocities are backward differences.

        Coordinates of anything but the free bodies are zero.
        """
        now, before = poses[:, 1:], poses[:, :-1]
        offset = turned(now[..., 3:], self.com_m)
        angular = rotation_vector(product(now[..., 3:], conjugate(before[..., 3:]))) / self.dt_s
        linear = (now[..., :3] - before[..., :3]) / self.dt_s - np.cross(angular, offset)
        states = np.zeros((*now.shape[:2], sum(self.size)))
        states[..., self.qpos] = np.concatenate([now[..., :3] - offset, now[..., 3:]], axis=-1)
        own = turned(conjugate(now[..., 3:]), angular)
        states[..., self.size[0] + self.dofs] = np.concatenate([linear, own], axis=-1)
        return states

    def _velocities(self, states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Velocities of the centres of mass and angular velocities, both [..., n, 3] in the world's frame."""
        velocity = states[..., self.size[0] + self.dofs]
        quaternion = states[..., self.qpos[:, 3:]]
        angular = turned(quaternion, velocity[..., 3:])  # MuJoCo keeps it in the body's frame
        return velocity[..., :3] + np.cross(angular, turned(quaternion, self.com_m)), angular

    def lowest(self, poses: np.ndarray) -> np.ndarray:
        """Height [..., n] of each body's lowest corner, m."""
        heights = [
            (poses[..., place, None, 2] + turned(poses[..., place, None, 3:], body.mesh.vertices_m)[..., 2]).min(-1)
            for place, body in enumerate(self.world.bodies)
        ]
        return np.stack(heights, axis=-1)

    def flying(self, poses: np.ndarray) -> np.ndarray:
        """Whether each body [..., n] is clear of the floor."""
        return self.lowest(poses) > _CLEAR_M


def free_bodies(scenario: Scenario, params: np.ndarray | None = None) -> FreeBodies:
    """Take the free bodies of a scenario, by default with its nominal parameters.

    Raises:
        ScenarioError: something else moves, or a body is not one box or mesh.
    """
    model = scenario.model(scenario.space.nominal if params is None else np.asarray(params, float))
    return FreeBodies(
        world=world_of(scenario, model),
        qpos=model.jnt_qposadr[:, None] + np.arange(7),
        dofs=model.jnt_dofadr[:, None] + np.arange(6),
        com_m=model.body_ipos[model.jnt_bodyid].copy(),
        size=(model.nq, model.nv),
        dt_s=scenario.control_dt_s,
    )
