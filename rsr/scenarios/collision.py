"""The pair of geoms whose impacts a surrogate may compute: `collision:` in a scenario's YAML file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import mujoco

from rsr.errors import ScenarioError
from rsr.scenarios.bindings import element_id
from rsr.scenarios.yaml_keys import check_fields

_ROUND = {int(kind) for kind in (mujoco.mjtGeom.mjGEOM_SPHERE, mujoco.mjtGeom.mjGEOM_CYLINDER)}
_ROUND |= {int(mujoco.mjtGeom.mjGEOM_CAPSULE)}


@dataclass(frozen=True)
class CollisionPair:
    """A round geom strikes a free body, a convex prism that lies on a table.

    Args:
        striker, struck: names of the geoms.
        nose_radius_m: of the striker, seen from above.
        shape: the struck block, as `rsr.scenarios.built_in.strike.load_shape` takes it; None: as its geom is.
    """

    striker: str
    struck: str
    nose_radius_m: float
    shape: str | None = None


def parse_collision(model: mujoco.MjModel, entry: Mapping[str, Any], where: str) -> CollisionPair:
    """Read `collision:` and check it against the compiled model."""
    check_fields("collision", entry, where)
    striker, struck = (element_id(model, "geom", entry[key], f"{where}, {key}") for key in ("striker", "struck"))
    joint = model.body_jntadr[model.geom_bodyid[struck]]
    if joint < 0 or model.jnt_type[joint] != mujoco.mjtJoint.mjJNT_FREE:
        raise _refused(
            f"'{entry['struck']}', on a body without a free joint",
            "a struck body that may move freely",
            f"{where}, struck",
        )
    radius_m = entry.get("nose_radius_m")
    if radius_m is None and int(model.geom_type[striker]) in _ROUND:
        radius_m = float(model.geom_size[striker, 0])
    if not isinstance(radius_m, int | float) or radius_m <= 0:
        raise _refused(
            "no nose_radius_m, and a striker that is not round" if radius_m is None else f"nose_radius_m {radius_m}",
            "the radius of the striker where it hits, seen from above, in m",
            f"{where}, nose_radius_m",
        )
    return CollisionPair(entry["striker"], entry["struck"], float(radius_m), entry.get("shape"))


def _refused(got: str, expected: str, where: str) -> ScenarioError:
    return ScenarioError(
        got=got,
        expected=expected,
        where=where,
        next_step="Correct `collision` in the scenario's YAML file; docs/scenarios.md explains every key.",
    )
