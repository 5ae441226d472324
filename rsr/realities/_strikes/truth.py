"""Hidden numbers of a stand-in and the ranges they are drawn from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rsr.common import generator

FAMILIES = ("rigid", "compliant")
_MATERIALS = ("resin", "nylon", "petg")
_SURFACES = ("low", "high")

_HIT_FRICTION = {"resin": 0.30, "nylon": 0.22, "petg": 0.40}
_RESTITUTION = {"resin": 0.60, "nylon": 0.45, "petg": 0.35}
_LOSS_S_M = {"resin": 1.2, "nylon": 2.0, "petg": 3.0}
_GROUND_FRICTION = {"low": 0.25, "high": 0.50}


@dataclass(frozen=True)
class Ground:
    """Friction of a patch of points under the block.

    Args:
        friction: sliding, mean of both directions.
        static_ratio, static_speed_m_s: more friction at the lowest speeds (Stribeck).
        rate_s_m: friction grows with speed by this share per m/s.
        anisotropy, direction_rad: more along one direction, less across.
        rim, slope, slope_rad: pressure grows to the rim, and to one side.
    """

    friction: float
    static_ratio: float
    static_speed_m_s: float
    rate_s_m: float
    anisotropy: float
    direction_rad: float
    rim: float
    slope: float
    slope_rad: float


@dataclass(frozen=True)
class Hit:
    """Contact between the blocks. `rigid` reads restitution, its fall and the exposure; `compliant` the other four.

    Args:
        restitution, restitution_fall: e(v) = restitution (v / 0.5 m/s)^-fall.
        exposure_s: for how long ground friction acts on the full velocity during a rigid impact.
        stiffness: of a Hertz contact, N/m^1.5. loss_s_m: Hunt and Crossley. tangential_ratio: of the stiffnesses.
        static_ratio, static_speed_m_s: more friction between the blocks at the lowest speeds.
    """

    friction: float
    restitution: float
    restitution_fall: float
    exposure_s: float
    stiffness: float
    loss_s_m: float
    tangential_ratio: float
    static_ratio: float
    static_speed_m_s: float


@dataclass(frozen=True)
class StrikeTruth:
    """One stand-in: laws, what the block and the arm really weigh, and how much strikes differ from one another."""

    family: str
    ground: Ground
    hit: Hit
    mass_ratio: float
    inertia_ratio: float
    centre_m: tuple[float, float]
    arm_mass_kg: float
    arm_stiffness_n_m: float
    arm_damping: float
    scatter: float = 0.10


def draw_truth(seed: int) -> StrikeTruth:
    """Draw one stand-in. Twelve seeds in a row go through both families, three materials and two surfaces."""
    rng = generator(seed, "strikes", "truth")
    family, material = FAMILIES[seed % 2], _MATERIALS[seed // 2 % 3]
    ground = _draw_ground(rng, _GROUND_FRICTION[_SURFACES[seed // 6 % 2]])
    hit = _draw_hit(rng, material)
    x_m, y_m = rng.normal(0, 0.0007, 2)
    return StrikeTruth(
        family,
        ground,
        hit,
        mass_ratio=rng.uniform(0.97, 1.03),
        inertia_ratio=rng.uniform(0.92, 1.08),
        centre_m=(float(x_m), float(y_m)),
        arm_mass_kg=rng.uniform(2.0, 4.0),
        arm_stiffness_n_m=rng.uniform(5e3, 2e4),
        arm_damping=rng.uniform(0.3, 0.8),
    )


def _draw_ground(rng: np.random.Generator, friction: float) -> Ground:
    return Ground(
        friction=friction * rng.uniform(0.8, 1.2),
        static_ratio=rng.uniform(1.0, 1.3),
        static_speed_m_s=rng.uniform(0.01, 0.05),
        rate_s_m=rng.uniform(-0.1, 0.5),
        anisotropy=rng.uniform(0.0, 0.12),
        direction_rad=rng.uniform(0, np.pi),
        rim=rng.uniform(0.0, 1.5),
        slope=rng.uniform(-0.3, 0.3),
        slope_rad=rng.uniform(0, 2 * np.pi),
    )


def _draw_hit(rng: np.random.Generator, material: str) -> Hit:
    return Hit(
        friction=_HIT_FRICTION[material] * rng.uniform(0.75, 1.25),
        restitution=_RESTITUTION[material] * rng.uniform(0.85, 1.15),
        restitution_fall=rng.uniform(0.1, 0.3),
        exposure_s=rng.uniform(0.001, 0.005),
        stiffness=float(np.exp(rng.uniform(np.log(1e6), np.log(1e7)))),
        loss_s_m=_LOSS_S_M[material] * rng.uniform(0.7, 1.3),
        tangential_ratio=float(np.exp(rng.uniform(np.log(2), np.log(20)))),
        static_ratio=rng.uniform(1.0, 1.3),
        static_speed_m_s=rng.uniform(0.02, 0.1),
    )
