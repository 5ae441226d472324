"""Adaptation: from a surrogate and a few recorded strikes to a model of this block on this table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rsr.clash.bases import surrogate_base
from rsr.clash.identification import Identified, identify
from rsr.clash.law import ImpactLaw, fit_law
from rsr.clash.prediction import Blended, blend
from rsr.clash.sliding import SlidingModel, fit_sliding
from rsr.clash.surrogate import Surrogate
from rsr.errors import CalibrationError
from rsr.scenarios.strike import RecordedStrikes, Shape, Strikes

_MINIMUM = 3


@dataclass(frozen=True)
class Adapted:
    """A surrogate with identified parameters, a law beside it, what they leave over, and how the block slides.

    Example:
        model = adapt(load_surrogate(folder), read_strikes(table, shape))
        velocities = model(strikes)
        mean, std = model.collision.intervals(strikes)

    Args:
        sliding: None where recordings do not say where the block came to rest.
    """

    surrogate: Surrogate
    identified: Identified
    law: ImpactLaw
    collision: Blended
    sliding: SlidingModel | None

    @property
    def shape(self) -> Shape:
        return self.surrogate.shape

    def __call__(self, strikes: Strikes) -> np.ndarray:
        """Velocity after, [N, 3]: m/s, m/s, rad/s, in the frame of the block at the impact."""
        return self.collision(strikes)


def adapt(surrogate: Surrogate, recorded: RecordedStrikes, seed: int = 0) -> Adapted:
    """Identify the parameters through the frozen surrogate, fit the law, then what they leave over."""
    if len(recorded) < _MINIMUM:
        raise CalibrationError(
            got=f"{len(recorded)} strikes",
            expected=f"at least {_MINIMUM}, better 10",
            where="adaptation",
            next_step="Record more strikes, at other places and speeds.",
        )
    sliding = fit_sliding(surrogate.shape, recorded)
    friction = None if sliding is None else sliding.friction
    identified = identify(surrogate, recorded, friction, seed)
    law = fit_law(surrogate.shape, recorded, friction, surrogate.definition.striker_mass_kg)
    collision = blend(surrogate.shape, (surrogate_base(surrogate, identified.values), law), recorded)
    return Adapted(surrogate, identified, law, collision, sliding)
