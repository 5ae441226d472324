"""The collision that a scenario declares: shape of the struck block, and definition of the strike."""

from __future__ import annotations

from dataclasses import replace

import mujoco
import numpy as np
from scipy.spatial import ConvexHull

from rsr.common import ScenarioError
from rsr.scenarios import CollisionPair, Scenario, check_simulated
from rsr.scenarios.built_in.strike.scene import Definition
from rsr.scenarios.built_in.strike.shapes import Shape, load_shape, prism

_ALIKE = 1e-3
_BOX, _MESH = mujoco.mjtGeom.mjGEOM_BOX, mujoco.mjtGeom.mjGEOM_MESH


def declared_collision(scenario: Scenario) -> CollisionPair:
    """The pair that the scenario declares.

    Raises:
        ScenarioError: it declares none, or has what strikes cannot be simulated with.
    """
    check_simulated(scenario, "hybrid", "strikes")
    if not isinstance(scenario.collision, CollisionPair):
        own = scenario.file or scenario.name
        raise ScenarioError(
            got="a collision with base 'scene'",
            expected="a round nose that strikes a prism: of campaigns' recordings, only its strikes are found",
            where=f"scenario {scenario.name}",
            next_step="Write a table with one impact a row (its columns: docs/clash.md, 'Impacts in a scene of your "
            f"own'), then `rsr clash adapt --scenario {own} --strikes impacts.csv --out adapted`, and judge it on a "
            f"recording with `rsr evaluate --scenario {own} --sessions SESSION --calibration adapted`.",
        )
    return scenario.collision


def struck_shape(scenario: Scenario) -> Shape:
    """The struck block, with mass, centre of mass and inertia that the MJCF gives it.

    A shape that is declared by name or file has the mass and the inertia alone: its frame is its own.
    """
    declared, model = declared_collision(scenario), scenario.base_model
    geom = model.geom(declared.struck).id
    mass_kg = float(model.body_mass[model.geom_bodyid[geom]])
    if declared.shape is not None:
        beside = scenario.folder / declared.shape
        named = load_shape(str(beside) if beside.is_file() else declared.shape, mass_kg)
        return _with_inertia(scenario, geom, named)
    corners = _corners(scenario, geom)
    # Seen from above a prism is its hull, counter-clockwise as `ConvexHull` gives it in the plane.
    hull = ConvexHull(corners[:, :2])
    outline, centre = corners[hull.vertices, :2], model.body_ipos[model.geom_bodyid[geom], :2]
    found = prism(declared.struck, outline, float(np.ptp(corners[:, 2])), mass_kg, centre)
    return _with_inertia(scenario, geom, found)


def _with_inertia(scenario: Scenario, geom: int, shape: Shape) -> Shape:
    """The shape with the radius of gyration of the MJCF's body, where that is not the homogeneous prism's."""
    model = scenario.base_model
    body, turn = model.geom_bodyid[geom], np.zeros(9)
    mujoco.mju_quat2Mat(turn, model.body_iquat[body])
    about_z = turn.reshape(3, 3)[2] ** 2 @ model.body_inertia[body]
    gyration_m = float(np.sqrt(about_z / model.body_mass[body]))
    alike = abs(gyration_m / shape.gyration_m - 1) < _ALIKE
    return shape if alike else replace(shape, measured_gyration_m=gyration_m)


def striking(scenario: Scenario) -> Definition:
    """Definition of the declared strike: its own striker, the time step and contact times of every strike."""
    declared, model = declared_collision(scenario), scenario.base_model
    body = model.geom_bodyid[model.geom(declared.striker).id]
    return Definition(nose_radius_m=declared.nose_radius_m, striker_mass_kg=float(model.body_subtreemass[body]))


def _corners(scenario: Scenario, geom: int) -> np.ndarray:
    """Vertices [N, 3] of a box or a mesh, in the frame of its body."""
    model = scenario.base_model
    kind = model.geom_type[geom]
    if kind == _BOX:
        signs = np.array(np.meshgrid(*[(-1, 1)] * 3)).reshape(3, -1).T
        points = signs * model.geom_size[geom]
    elif kind == _MESH:
        mesh = model.geom_dataid[geom]
        first = model.mesh_vertadr[mesh]
        points = model.mesh_vert[first : first + model.mesh_vertnum[mesh]]
    else:
        raise ScenarioError(
            got=f"'{model.geom(geom).name}', neither box nor mesh",
            expected="a struck geom that is a box or the mesh of a convex prism",
            where=f"scenario {scenario.name}, collision, struck",
            next_step="Model the struck block as one of these.",
        )
    turn = np.zeros(9)
    mujoco.mju_quat2Mat(turn, model.geom_quat[geom])
    return points @ turn.reshape(3, 3).T + model.geom_pos[geom]
