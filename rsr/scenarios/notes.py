"""What a scenario leaves unsaid that its results hang on: good to know before anything is recorded or fitted."""

from __future__ import annotations

from collections.abc import Iterator

import mujoco
import numpy as np

from rsr.scenarios.channels.rolling import unseen_spins
from rsr.scenarios.scenario import Scenario

_VAST_M = 5.0
"""A robot's part of this size is a mesh in mm: MJCF takes a file's numbers for metres."""


def notes_of(scenario: Scenario) -> Iterator[str]:
    """Say how simulations begin with each joint that no channel shows in full, and which meshes are vast."""
    yield from _unseen_joints(scenario)
    yield from _vast_meshes(scenario.base_model)


def _vast_meshes(model: mujoco.MjModel) -> Iterator[str]:
    for geom in np.flatnonzero((model.geom_type == mujoco.mjtGeom.mjGEOM_MESH) & (model.geom_bodyid > 0)):
        size_m = 2 * float(model.geom_aabb[geom, 3:].max())
        if size_m > _VAST_M:
            mesh, body = model.mesh(model.geom_dataid[geom]).name, model.body(model.geom_bodyid[geom]).name
            yield (
                f"mesh '{mesh}' of body '{body}' is {size_m:.3g} m long, and its inertia is that of such a body. "
                'If the file is in mm, say so: <mesh scale="0.001 0.001 0.001" .../>.'
            )


def _unseen_joints(scenario: Scenario) -> Iterator[str]:
    """Say of each joint that no channel shows, in full or in part, how simulations of a recording begin."""
    model, rolling = scenario.base_model, unseen_spins(scenario)
    seen = {dof for observed in scenario.observed for dof in observed.dofs}
    widths = {mujoco.mjtJoint.mjJNT_FREE: 6, mujoco.mjtJoint.mjJNT_BALL: 3}
    for joint in range(model.njnt):
        first = int(model.jnt_dofadr[joint])
        dofs = set(range(first, first + widths.get(mujoco.mjtJoint(model.jnt_type[joint]), 1)))
        name = model.joint(joint).name or model.body(model.jnt_bodyid[joint]).name or str(joint)
        if joint in rolling:
            yield (
                f"no channel shows how '{name}' is turned: simulations of a recording begin with it as in the MJCF, "
                "rolling where it touches. That is right for a ball; of any other body record the orientation."
            )
        elif not dofs <= seen:
            yield (
                f"no channel shows joint '{name}': simulations of a recording begin with it as in the MJCF, at rest. "
                "If it moves, a fit takes that for other parameters: record it, or weld it."
            )
