"""The bodies of a scenario's MJCF as convex meshes about their centres of mass."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

from rsr.common import ScenarioError, conjugate, from_rotation_vector, product, rotation_vector, turned
from rsr.learned.gnn.bodies import Mesh, RigidBody, RigidWorld, box_mesh, hull_mesh
from rsr.scenarios import Scenario

_SOLID = (int(mujoco.mjtGeom.mjGEOM_BOX), int(mujoco.mjtGeom.mjGEOM_MESH))


def world_of(scenario: Scenario, model: mujoco.MjModel) -> RigidWorld:
    """The free bodies of a model that a scenario made, on the floor if it has one.

    Raises:
        ScenarioError: not only free bodies move, or a body is not one box or mesh, the floor is not z = 0, or
            gravity does not point down.
    """
    if (model.jnt_type != mujoco.mjtJoint.mjJNT_FREE).any() or model.njnt == 0:
        raise _unfit(scenario, "joints that are not free, or none", "free bodies alone, which nobody drives")
    bodies = tuple(_body(scenario, model, int(body)) for body in model.jnt_bodyid)
    planes = np.flatnonzero(model.geom_type == mujoco.mjtGeom.mjGEOM_PLANE)
    for plane in planes:
        if np.abs(model.geom_pos[plane][2]) > 1e-9 or np.abs(model.geom_quat[plane][1:3]).max() > 1e-9:
            raise _unfit(scenario, "a floor that is not the plane z = 0", "the world's frame in the floor, z up")
    if np.abs(model.opt.gravity[:2]).max() > 1e-9 or model.opt.gravity[2] > 0:
        raise _unfit(scenario, f"gravity along {model.opt.gravity.tolist()}", "gravity straight down, or none")
    return RigidWorld(bodies, floor=len(planes) > 0, gravity_m_s2=-float(model.opt.gravity[2]))


def _body(scenario: Scenario, model: mujoco.MjModel, body: int) -> RigidBody:
    axes = np.empty(9)
    mujoco.mju_quat2Mat(axes, model.body_iquat[body])
    axes = axes.reshape(3, 3)
    # MuJoCo stores principal inertias and the frame they hold in: I = R diag(i) R^T.
    inertia = axes @ np.diag(model.body_inertia[body]) @ axes.T
    mesh = _mesh(scenario, model, body).moved(-model.body_ipos[body])
    return RigidBody(model.body(body).name, mesh, float(model.body_mass[body]), (inertia + inertia.T) / 2)


def _mesh(scenario: Scenario, model: mujoco.MjModel, body: int) -> Mesh:
    """Find the touching surface in the body's frame: its box or mesh, or balls that stand in its corners instead."""
    touching = set(model.pair_geom1.tolist()) | set(model.pair_geom2.tolist())
    geoms = np.flatnonzero(model.geom_bodyid == body).tolist()
    # Scenarios may round a cube by balls in its corners; what touches is then their hull, not the box.
    balls = [geom for geom in geoms if geom in touching and model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_SPHERE]
    solids = [geom for geom in geoms if int(model.geom_type[geom]) in _SOLID]
    name = model.body(body).name
    if len(balls) > 3 and not touching & set(solids):
        return hull_mesh(np.concatenate([_ball(model, geom) for geom in balls]), name)
    if len(solids) != 1:
        raise _unfit(scenario, f"{len(solids)} boxes or meshes in body '{name}'", "one, which is convex")
    geom = solids[0]
    if model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_BOX:
        mesh = box_mesh(model.geom_size[geom], name)
    else:
        which = model.geom_dataid[geom]
        first = model.mesh_vertadr[which]
        # MuJoCo collides with a mesh's convex hull, so the hull is what touches.
        mesh = hull_mesh(model.mesh_vert[first : first + model.mesh_vertnum[which]].astype(float), name)
    return Mesh(turned(model.geom_quat[geom], mesh.vertices_m) + model.geom_pos[geom], mesh.faces, name)


def _ball(model: mujoco.MjModel, geom: int) -> np.ndarray:
    """A few points [7, 3] of a ball: along the body's axes, and away from the body's origin."""
    centre, radius = model.geom_pos[geom], model.geom_size[geom, 0]
    away = centre / max(float(np.linalg.norm(centre)), 1e-12)
    return centre + radius * np.concatenate([np.eye(3), -np.eye(3), away[None]])


def _unfit(scenario: Scenario, got: str, expected: str) -> ScenarioError:
    next_step = "Choose another scenario, or make Trajectory objects of your own bodies."
    return ScenarioError(
        got=got, expected=expected, where=f"scenario {scenario.name}, rsr.learned.gnn", next_step=next_step
    )


# Between a scenario's states and the poses that this room speaks of: free bodies, their meshes and their masses.

# A body whose lowest corner is higher than this above the floor is taken to fly.
_CLEAR_M = 0.002


@dataclass(frozen=True)
class FreeBodies:
    """The free bodies of a scenario with one set of parameters, and where they are in its states.

    Args:
        qpos, dofs: [n, 7] and [n, 6], indices into qpos and qvel, one row a body.
        com_m: [n, 3], centres of mass in the bodies' own frames.
        size: nq, nv of the scenario.
    """

    world: RigidWorld
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
        # Velocity of the frame's origin: v_origin = v_com - w x (com - origin).
        linear = (now[..., :3] - before[..., :3]) / self.dt_s - np.cross(angular, offset)
        states = np.zeros((*now.shape[:2], sum(self.size)))
        states[..., self.qpos] = np.concatenate([now[..., :3] - offset, now[..., 3:]], axis=-1)
        # MuJoCo's free joints: linear velocity in the world's frame, angular in the body's.
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
