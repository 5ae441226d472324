"""Definition of a simulated strike, apart from shape and parameters, and its MJCF."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rsr.scenarios import Parameter, ParameterSpace
from rsr.scenarios.built_in.strike.shapes import Shape

GRAVITY_M_S2 = 9.81


@dataclass(frozen=True)
class Definition:
    """Numbers that the outcome of a strike depends on, and that no strike can tell.

    "After" is the first time step without force between the two blocks. Until then the striker is slowed down, faster
    than friction slows the struck block, so that they do part.

    Args:
        hit_time_s, ground_time_s: time constants of the two contacts (`solref`), a parameter that damping ratios hide.
        nose_radius_m: the striking block is round where it hits, seen from above.
        striker_mass_kg: what the arm weighs in the direction of motion.
        braking_m_s2: how fast the striker is slowed down once it touches.
    """

    timestep_s: float = 0.00025  # at 2 ms, MuJoCo's default, most outcomes are others
    hit_time_s: float = 0.003
    ground_time_s: float = 0.005
    nose_radius_m: float = 0.010
    nose_height_m: tuple[float, float] = (0.012, 0.028)
    striker_mass_kg: float = 4.0
    braking_m_s2: float = 13.0  # more than friction decelerates the block, so that the two do part
    longest_contact_s: float = 0.06


PARAMETERS = ParameterSpace(
    (
        Parameter("hit_friction", 0.3, 0.02, 1.0, "1", 1.0, description="block against block"),
        Parameter("ground_friction", 0.3, 0.02, 1.0, "1", 1.0, description="block on table"),
        Parameter("hit_damping_ratio", 0.3, 0.05, 3.0, "1", 1.0, description="block against block; small: it rebounds"),
        Parameter("ground_damping_ratio", 1.0, 0.1, 3.0, "1", 1.0, description="block on table"),
    )
)
"""P of the paper: (mu1, mu2, e1, e2), in this order wherever parameters are an array."""


# The scene as MJCF: the struck block on a table, and a striker on one rail along x.

_NOSE_FACETS = 24
_NOSE_BACK_M = 0.03


def scene_xml(shape: Shape, definition: Definition, striker: bool = True, nose_facets: int = _NOSE_FACETS) -> str:
    """Write the MJCF. The direction of a strike is in how the struck block is turned; the striker has one rail.

    Pairs are sorted when MuJoCo compiles: address "hit" and "ground" by name.

    Args:
        nose_facets: of the half circle that is the round end of the striker.
    """
    low, high = definition.nose_height_m
    parts = _striker(definition, nose_facets) if striker else ("", "", "", "")
    nose_mesh, body, pair, sensor = parts
    xx, yy, zz = shape.inertia
    half = shape.height_m / 2
    return f"""<mujoco model="strike">
  <compiler angle="radian"/>
  <option timestep="{definition.timestep_s}" cone="elliptic" integrator="implicitfast" iterations="50">
    <flag multiccd="enable"/>
  </option>
  <asset><mesh name="block" vertex="{_prism(shape.outline, -half, half)}"/>{nose_mesh}</asset>
  <worldbody>
    <light pos="0 0 1"/>
    <geom name="table" type="plane" size="2 2 0.1" contype="0" conaffinity="0" rgba="0.55 0.47 0.40 1"/>
    <body name="block" pos="0 0 {half}">
      <freejoint name="block"/>
      <inertial pos="0 0 0" mass="{shape.mass_kg}" diaginertia="{xx:.9g} {yy:.9g} {zz:.9g}"/>
      <geom name="block" type="mesh" mesh="block" contype="0" conaffinity="0" rgba="0.20 0.45 0.70 1"/>
    </body>{body.format(height=(low + high) / 2)}
  </worldbody>
  <contact>{pair}
    <pair name="ground" geom1="table" geom2="block" condim="3" solref="{definition.ground_time_s} 1"
          solimp="0.9 0.95 0.001"/>
  </contact>{sensor}
</mujoco>"""


def _striker(definition: Definition, facets: int) -> tuple[str, str, str, str]:
    low, high = definition.nose_height_m
    half = (high - low) / 2
    mesh = f'<mesh name="nose" vertex="{_prism(_nose(definition.nose_radius_m, facets), -half, half)}"/>'
    body = f"""
    <body name="striker" pos="0 0 {{height}}">
      <joint name="rail" type="slide" axis="1 0 0"/>
      <inertial pos="0 0 0" mass="{definition.striker_mass_kg}" diaginertia="0.01 0.01 0.01"/>
      <geom name="nose" type="mesh" mesh="nose" contype="0" conaffinity="0" rgba="0.75 0.35 0.25 1"/>
    </body>"""
    pair = f"""
    <pair name="hit" geom1="nose" geom2="block" condim="3" solref="{definition.hit_time_s} 1"
          solimp="0.9 0.95 0.001"/>"""
    sensor = """
  <sensor><contact name="hit" geom1="nose" geom2="block" num="1" reduce="netforce" data="found force"/></sensor>
  <actuator><motor name="rail" joint="rail"/></actuator>"""
    return mesh, body, pair, sensor


def _nose(radius_m: float, facets: int) -> np.ndarray:
    angle = np.linspace(-np.pi / 2, np.pi / 2, facets + 1)
    round_end = radius_m * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return np.vstack([round_end, [[-_NOSE_BACK_M, radius_m], [-_NOSE_BACK_M, -radius_m]]])


def _prism(outline: np.ndarray, low_m: float, high_m: float) -> str:
    return " ".join(f"{x:.9g} {y:.9g} {z:.9g}" for z in (low_m, high_m) for x, y in outline)
