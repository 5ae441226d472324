"""Hidden numbers of a stand-in and the ranges they are drawn from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rsr.common import generator


@dataclass(frozen=True)
class CubesTruth:
    """One table with two cubes.

    Args:
        table_friction: [2], of each cube: two prints are not alike.
        grain: friction is larger by this share along y, and smaller along x.
        static_ratio, static_speed_m_s: more friction at the lowest speeds (Stribeck).
        rate_s_m: friction grows with speed by this share per m/s.
        cube_friction: cube against cube.
        table_solref, cube_solref: time constant in s and damping ratio.
        slope: of the table, along x and y.
        mass_ratio: [2]. centre_m: [2, 3], centre of mass from the middle of the cube.
    """

    table_friction: tuple[float, float]
    grain: float
    static_ratio: float
    static_speed_m_s: float
    rate_s_m: float
    cube_friction: float
    table_solref: tuple[float, float]
    cube_solref: tuple[float, float]
    slope: tuple[float, float]
    mass_ratio: tuple[float, float]
    centre_m: np.ndarray


def draw_truth(seed: int) -> CubesTruth:
    """Draw one stand-in."""
    rng = generator(seed, "two_cubes", "truth")
    friction = rng.uniform(0.22, 0.42)
    one, other = (friction * rng.uniform(0.93, 1.07, 2)).tolist()
    slope_x, slope_y = rng.normal(0, 0.003, 2).tolist()
    heavier, lighter = rng.uniform(0.95, 1.05, 2).tolist()
    return CubesTruth(
        table_friction=(one, other),
        grain=float(rng.uniform(0.0, 0.10)),
        static_ratio=float(rng.uniform(1.0, 1.25)),
        static_speed_m_s=float(rng.uniform(0.02, 0.08)),
        rate_s_m=float(rng.uniform(-0.1, 0.4)),
        cube_friction=float(rng.uniform(0.15, 0.40)),
        table_solref=(float(rng.uniform(0.004, 0.012)), float(rng.uniform(0.6, 1.2))),
        cube_solref=(float(rng.uniform(0.002, 0.006)), float(rng.uniform(0.15, 0.6))),
        slope=(slope_x, slope_y),
        mass_ratio=(heavier, lighter),
        centre_m=rng.normal(0, 0.0008, (2, 3)),
    )
