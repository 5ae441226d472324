"""The scene as MJCF: any number of convex blocks on a table, all of whose contacts have the same numbers."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

SIDE_M = 0.08
MASS_KG = 0.15
FRAME_S = 1 / 60
SUBSTEPS = 10
"""Physics steps to a frame of the cameras: 1.7 ms, near MuJoCo's default."""
GRAVITY_M_S2 = 9.81

_COLOURS = ("0.20 0.45 0.70 1", "0.30 0.60 0.35 1", "0.75 0.35 0.25 1", "0.60 0.50 0.20 1")


@dataclass(frozen=True)
class ContactParameters:
    """Parameters of all of MuJoCo's contacts. Its own defaults, unless said otherwise.

    Args:
        mu: sliding friction, both directions.
        solimp: d_0, d_width, width (m), midpoint, power.
        solref: time constant (s), damping ratio.
    """

    mu: float = 1.0
    solimp: tuple[float, float, float, float, float] = (0.9, 0.95, 0.001, 0.5, 2.0)
    solref: tuple[float, float] = (0.02, 1.0)


@dataclass(frozen=True)
class BlockGeometry:
    """A convex body that the scene holds; its frame has the origin in the centre of mass.

    Args:
        inertia_kg_m2: [3, 3] about the centre of mass.
        half_sizes_m: of a box whose middle is the centre of mass; None for a mesh.
        vertices_m: [V, 3], of a mesh: its convex hull is what touches.
    """

    name: str
    mass_kg: float
    inertia_kg_m2: np.ndarray = field(repr=False)
    half_sizes_m: tuple[float, float, float] | None = None
    vertices_m: np.ndarray | None = field(default=None, repr=False)


def cube(name: str, side_m: float = SIDE_M, mass_kg: float = MASS_KG) -> BlockGeometry:
    """Make a homogeneous cube."""
    half_m = side_m / 2
    return BlockGeometry(name, mass_kg, np.eye(3) * mass_kg * side_m**2 / 6, (half_m, half_m, half_m))


def scene_xml(
    blocks: Sequence[BlockGeometry],
    contact: ContactParameters | None = None,
    timestep_s: float = FRAME_S / SUBSTEPS,
    floor: bool = True,
    gravity_m_s2: float = GRAVITY_M_S2,
) -> str:
    """Write the MJCF. Pairs are named floor_cube1, cube1_cube2 and so on; every two that can touch have one."""
    contact = ContactParameters() if contact is None else contact
    meshes = [block for block in blocks if block.half_sizes_m is None]
    flag = '\n    <flag multiccd="enable"/>\n  ' if meshes else ""
    assets = "".join(f'\n    <mesh name="{block.name}" vertex="{_numbers(block.vertices_m)}"/>' for block in meshes)
    bodies = "".join(_body(index, block, len(blocks)) for index, block in enumerate(blocks))
    names = [*(["floor"] if floor else []), *(block.name for block in blocks)]
    pairs = "".join(
        f'\n    <pair name="{one}_{other}" geom1="{one}" geom2="{other}"/>'
        for one, other in itertools.combinations(names, 2)
    )
    plane = '\n    <geom name="floor" type="plane" size="2 2 0.1" rgba="0.55 0.47 0.40 1"/>' if floor else ""
    return f"""<mujoco model="cubes">
  <compiler angle="radian"/>
  <option timestep="{timestep_s!r}" integrator="implicitfast" cone="elliptic" iterations="50" ls_iterations="50"
          tolerance="1e-10" gravity="0 0 {-gravity_m_s2!r}">{flag}</option>
  <default>
    <geom contype="0" conaffinity="0"/>
    <pair condim="3" friction="{contact.mu!r} {contact.mu!r} 0.005 0.0001 0.0001"
          solimp="{_numbers(contact.solimp)}" solref="{_numbers(contact.solref)}"/>
  </default>{f"{chr(10)}  <asset>{assets}{chr(10)}  </asset>" if assets else ""}
  <worldbody>
    <light pos="0 0 1.5"/>
    <camera name="overview" pos="0 -0.8 0.6" xyaxes="1 0 0 0 0.6 0.8"/>{plane}{bodies}
  </worldbody>
  <contact>{pairs}
  </contact>
</mujoco>
"""


def _body(index: int, block: BlockGeometry, count: int) -> str:
    if block.half_sizes_m is not None:
        shape, height_m = f'type="box" size="{_numbers(block.half_sizes_m)}"', block.half_sizes_m[2]
    else:
        shape, height_m = f'type="mesh" mesh="{block.name}"', -float(np.min(np.asarray(block.vertices_m)[:, 2]))
    x_m = 2 * SIDE_M * (index - (count - 1) / 2)
    inertia = np.asarray(block.inertia_kg_m2)
    six = _numbers(inertia[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]])
    return f"""
    <body name="{block.name}" pos="{x_m:.9g} 0 {height_m:.9g}">
      <freejoint name="{block.name}"/>
      <inertial pos="0 0 0" mass="{block.mass_kg!r}" fullinertia="{six}"/>
      <geom name="{block.name}" {shape} rgba="{_COLOURS[index % len(_COLOURS)]}"/>
    </body>"""


def _numbers(values: Sequence[float] | np.ndarray | None) -> str:
    return " ".join(repr(value) for value in np.ravel(np.asarray(values, float)).tolist())
