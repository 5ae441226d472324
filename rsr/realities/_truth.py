"""What is hidden in the twin. Only the twin and the test suite may read it (import-linter holds this)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from rsr.randomness import generator

_RANGES = {
    "table_friction": (0.05, 0.09),
    "finger_friction": (0.15, 0.35),
    "cube_mass": (0.25, 0.45),
    "block_mass": (0.35, 0.60),
    "joint_damping": (1.5, 3.0),
    "actuator_gain": (0.35, 0.50),
    "control_delay": (0.09, 0.115),
    "contact_softness": (0.02, 0.03),
}


@dataclass(frozen=True)
class Truth:
    """Parameters of the twin, and the effects that no parameter of the nominal model expresses.

    Args:
        anisotropy: table friction along one axis over its geometric mean.
        stiction_nm: dry friction of the three large joints; the small ones have a third of it.
        delay_jitter_s: spread of the latency from episode to episode.
        gravity_share: part of the arm's weight that its controller compensates.
    """

    parameters: dict[str, float]
    anisotropy: float
    stiction_nm: float
    delay_jitter_s: float
    gravity_share: float
    timestep_s: float = 0.002


def draw_truth(seed: int, names: Collection[str]) -> Truth:
    """Draw the hidden world of one twin seed, for a scenario with parameters of these names."""
    rng = generator(seed, "twin", "truth")
    ranges = {name: bounds for name, bounds in _RANGES.items() if name in names}
    parameters = {name: float(np.exp(rng.uniform(*np.log(bounds)))) for name, bounds in ranges.items()}
    return Truth(
        parameters=parameters,
        anisotropy=float(rng.uniform(1.1, 1.3)),
        stiction_nm=float(rng.uniform(0.2, 0.6)),
        delay_jitter_s=0.005,
        gravity_share=float(rng.uniform(0.97, 0.99)),
    )
