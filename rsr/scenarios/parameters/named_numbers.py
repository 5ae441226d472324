"""Fields by MuJoCo's own name: `geom_friction[0]`, `tendon_damping`, `eq_solref[1]`; any float that an element has."""

from __future__ import annotations

import re
from typing import Any

import mujoco
import numpy as np

LEAVES = {
    "pair": ("pair_",),
    "geom": ("geom_",),
    "body": ("body_",),
    "joint": ("jnt_", "dof_"),
    "actuator": ("actuator_",),
    "site": ("site_",),
    "camera": ("cam_",),
    "tendon": ("tendon_",),
    "equality": ("eq_",),
}
"""Kind of element -> how MuJoCo's arrays of it begin."""
INSTEAD = {
    "body_mass": "mass",
    "body_inertia": "inertia, or stretch_x to shear_yz",
    "body_iquat": "shear_xy, shear_xz, shear_yz",
    "body_ipos": "com_x, com_y, com_z",
    "body_pos": "x, y, z",
    "body_quat": "turn_x, turn_y, turn_z",
    "site_pos": "x, y, z",
    "site_quat": "turn_x, turn_y, turn_z",
    "cam_pos": "x, y, z",
    "cam_quat": "turn_x, turn_y, turn_z",
    "geom_size": "size",
    "geom_quat": "turn_x, turn_y, turn_z of its body",
    "jnt_axis": "turn_x, turn_y, turn_z of its body",
    "dof_frictionloss": "friction_loss",
    "dof_damping": "damping",
    "dof_armature": "armature",
    "tendon_frictionloss": "friction_loss",
}
"""Arrays of which one number cannot be written alone, or that a field of ours writes with all that belongs to it."""
_NAME = re.compile(r"(?P<leaf>[a-z]+_[a-z0-9_]+)(\[(?P<column>\d+)\])?")
_DERIVED = ("0", "subtreemass", "rbound", "aabb", "lengthrange", "dof_length", "user", "rgba", "history", "delay")
_INERTIAL = ("body_gravcomp", "jnt_pos", "actuator_gear", "tendon_armature")


def leaf_and_column(element: str, field: str) -> tuple[str, int] | None:
    """Array of the model and column that a name says; None where it is no name of MuJoCo's."""
    found = _NAME.fullmatch(field)
    if found is None or not found["leaf"].startswith(LEAVES.get(element, ())):
        return None
    return found["leaf"], int(found["column"] or 0)


def refused(model: mujoco.MjModel, element: str, field: str, count: int) -> str | None:
    """Say why a field by MuJoCo's name cannot be written; None where it can."""
    leaf, column = leaf_and_column(element, field) or ("", 0)
    array = getattr(model, leaf, None)
    if not isinstance(array, np.ndarray) or array.dtype.kind != "f" or leaf.endswith(_DERIVED):
        return f"{leaf}, which is no float of the MJCF"
    if leaf in INSTEAD:
        return f"{leaf}, which the field {INSTEAD[leaf]} writes"
    rows = model.nv if leaf.startswith("dof_") else count
    width = array[:1].size if len(array) else 0
    if len(array) != rows or column >= width or (width > 1 and "[" not in field):
        return f"{field} of an array with {width} columns" if width else f"{leaf}, of which the MJCF has none"
    return None


def moves_inertia(leaf: str) -> bool:
    """Whether MuJoCo derives constants from it."""
    return leaf in _INERTIAL


def rows_of(model: mujoco.MjModel, leaf: str, ids: np.ndarray) -> np.ndarray:
    """Rows of an array that belong to elements: those of joints are degrees of freedom in arrays of these."""
    return model.jnt_dofadr[ids] if leaf.startswith("dof_") else ids


def index_of(array: Any, rows: np.ndarray, column: int) -> Any:
    """Index of a column in rows; arrays of one number a row have no columns."""
    return rows if array.ndim == 1 else (rows, column)
