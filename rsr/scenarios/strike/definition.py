"""What a simulated strike is, apart from shape and parameters. At MuJoCo's default of 2 ms it is another strike."""

from __future__ import annotations

from dataclasses import dataclass

from rsr.scenarios.parameters import Parameter, ParameterSpace

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

    timestep_s: float = 0.00025
    hit_time_s: float = 0.003
    ground_time_s: float = 0.005
    nose_radius_m: float = 0.010
    nose_height_m: tuple[float, float] = (0.012, 0.028)
    striker_mass_kg: float = 4.0
    braking_m_s2: float = 13.0
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
