"""The bodies of a scenario's MJCF as convex meshes about their centres of mass."""

from __future__ import annotations

import mujoco
import numpy as np

from rsr.errors import ScenarioError
from rsr.gnn.bodies import Body, Mesh, World, box_mesh, hull_mesh
from rsr.gnn.rotations import turned
from rsr.scenarios import Scenario

_SOLID = (int(mujoco.mjtGeom.mjGEOM_BOX), int(mujoco.mjtGeom.mjGEOM_MESH))


def world_of(scenario: Scenario, model: mujoco.MjModel) -> World:
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
    return World(bodies, floor=len(planes) > 0, gravity_m_s2=-float(model.opt.gravity[2]))


def _body(scenario: Scenario, model: mujoco.MjModel, body: int) -> Body:
    axes = np.empty(9)
    mujoco.mju_quat2Mat(axes, model.body_iquat[body])
    axes = axes.reshape(3, 3)
    inertia = axes @ np.diag(model.body_inertia[body]) @ axes.T
    mesh = _mesh(scenario, model, body).moved(-model.body_ipos[body])
    return Body(model.body(body).name, mesh, float(model.body_mass[body]), (inertia + inertia.T) / 2)


def _mesh(scenario: Scenario, model: mujoco.MjModel, body: int) -> Mesh:
    """What of the body touches, in the body's frame: its box or mesh, or balls that stand in its corners instead."""
    touching = set(model.pair_geom1.tolist()) | set(model.pair_geom2.tolist())
    geoms = np.flatnonzero(model.geom_bodyid == body).tolist()
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
        mesh = hull_mesh(model.mesh_vert[first : first + model.mesh_vertnum[which]].astype(float), name)
    return Mesh(turned(model.geom_quat[geom], mesh.vertices_m) + model.geom_pos[geom], mesh.faces, name)


def _ball(model: mujoco.MjModel, geom: int) -> np.ndarray:
    """A few points [7, 3] of a ball: along the body's axes, and away from the body's origin."""
    centre, radius = model.geom_pos[geom], model.geom_size[geom, 0]
    away = centre / max(float(np.linalg.norm(centre)), 1e-12)
    return centre + radius * np.concatenate([np.eye(3), -np.eye(3), away[None]])


def _unfit(scenario: Scenario, got: str, expected: str) -> ScenarioError:
    next_step = "Choose another scenario, or make Trajectory objects of your own bodies."
    return ScenarioError(got=got, expected=expected, where=f"scenario {scenario.name}, rsr.gnn", next_step=next_step)
