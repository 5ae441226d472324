"""Recipes for surrogates. `paper`: as CLASH states it. `normalised`: that, with scales. `default`: what works best."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rsr.errors import ConfigError


@dataclass(frozen=True)
class Preset:
    """How a surrogate sees strikes and how it is trained.

    Args:
        frame: "contact": shares of the striking speed in the contact frame, mirrored where the shape is, with features
            of the parameters. "body": velocities in SI units in the block's frame, inputs as they are.
        scaled: standardise inputs, and weigh angular velocities with the radius of gyration.
        learning_rate: constant, or the peak of one cycle.
    """

    name: str
    frame: Literal["contact", "body"]
    scaled: bool
    activation: Literal["relu", "silu"]
    steps: int
    batch: int
    learning_rate: float
    one_cycle: bool
    weight_decay: float = 0.01
    width: int = 128
    depth: int = 3


PRESETS = {
    preset.name: preset
    for preset in (
        Preset("paper", "body", False, "relu", 1000, 1024, 1e-3, one_cycle=False),
        Preset("normalised", "body", True, "relu", 1000, 1024, 1e-3, one_cycle=False),
        Preset("default", "contact", True, "silu", 8000, 1024, 5e-3, one_cycle=True),
    )
}


def preset(name: str) -> Preset:
    if name not in PRESETS:
        raise ConfigError(
            got=f"preset '{name}'",
            expected=f"one of {', '.join(PRESETS)}",
            where="surrogate",
            next_step="Correct the name.",
        )
    return PRESETS[name]
