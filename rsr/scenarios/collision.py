"""The geoms whose impacts a model that is learnt may compute: `collision:` in a scenario's YAML file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import mujoco

from rsr.common import ScenarioError
from rsr.scenarios.parameters.bindings import element_id
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


@dataclass(frozen=True)
class SceneCollision:
    """Geoms of any shape strike a free body; impacts are simulated in the scenario's own scene.

    Args:
        striker: names of the geoms: of one body that strikes, or of walls.
        struck: name of a geom of the struck body.
        plane: in which everything moves, by the world's axes.
        apart_s: the two have parted when they have been apart for so long.
        table: our name of a column -> its name in tables of strikes, where that is another.
    """

    striker: tuple[str, ...]
    struck: str
    plane: Literal["xy", "xz", "yz"] = "xy"
    apart_s: float = 0.004
    table: Mapping[str, str] = field(default_factory=dict)
    base: Literal["scene"] = "scene"


_KEYS_OF = {"prism": ("nose_radius_m", "shape"), "scene": ("plane", "apart_s", "table")}


def parse_collision(model: mujoco.MjModel, entry: Mapping[str, Any], where: str) -> CollisionPair | SceneCollision:
    """Read `collision:` and check it against the compiled model."""
    check_fields("collision", entry, where)
    base = entry.get("base", "prism")
    other = "prism" if base == "scene" else "scene"
    if wrong := [key for key in _KEYS_OF[other] if key in entry]:
        raise _refused(f"{', '.join(wrong)} with base '{base}'", f"these with base '{other}' alone", where)
    struck = element_id(model, "geom", entry["struck"], f"{where}, struck")
    _check_free(model, struck, entry["struck"], where)
    if base == "scene":
        return _scene(model, entry, struck, where)
    if not isinstance(entry["striker"], str):
        raise _refused("a list of strikers", "one round geom, or base: scene", f"{where}, striker")
    striker = element_id(model, "geom", entry["striker"], f"{where}, striker")
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


def _check_free(model: mujoco.MjModel, struck: int, name: str, where: str) -> None:
    joint = model.body_jntadr[model.geom_bodyid[struck]]
    if joint < 0 or model.jnt_type[joint] != mujoco.mjtJoint.mjJNT_FREE:
        raise _refused(
            f"'{name}', on a body without a free joint", "a struck body that may move freely", f"{where}, struck"
        )


def _scene(model: mujoco.MjModel, entry: Mapping[str, Any], struck: int, where: str) -> SceneCollision:
    names = (entry["striker"],) if isinstance(entry["striker"], str) else tuple(entry["striker"])
    bodies = {int(model.geom_bodyid[element_id(model, "geom", name, f"{where}, striker")]) for name in names}
    if len(bodies) > 1:
        raise _refused(f"strikers on {len(bodies)} bodies", "geoms of one body, or walls", f"{where}, striker")
    if int(model.geom_bodyid[struck]) in bodies:
        raise _refused("a striker on the struck body", "two bodies, or a body and walls", f"{where}, striker")
    options = {key: entry[key] for key in _KEYS_OF["scene"] if key in entry}
    return SceneCollision(names, entry["struck"], **options)


def _refused(got: str, expected: str, where: str) -> ScenarioError:
    return ScenarioError(
        got=got,
        expected=expected,
        where=where,
        next_step="Correct `collision` in the scenario's YAML file; docs/scenarios.md explains every key.",
    )
