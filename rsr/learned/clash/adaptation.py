"""Adaptation: from a few recorded strikes to a model of this block on this table.

Glitched strikes are left out, a law of rigid impact is fitted, and corrected by what it leaves over. Where a surrogate
is given, its parameters are identified through the frozen network (eq. (3) of the paper), it is corrected too, and both
are averaged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from rsr.common import CalibrationError, derive_seed
from rsr.learned.clash.frame import to_contact
from rsr.learned.clash.law import ImpactLaw, against_any_law, fit_from_rests, fit_law, missed_shares
from rsr.learned.clash.prediction import BaseModel, Blended, Trust, blend, correct, everywhere, surrogate_base
from rsr.learned.clash.rejection import contradicted
from rsr.learned.clash.sliding import SlidingModel, fit_sliding, velocities_known, with_velocities
from rsr.learned.clash.surrogate import Surrogate, reproducible
from rsr.scenarios.built_in.strike import PARAMETERS, Definition, RecordedStrikes, Shape, Strikes

GROUND = PARAMETERS.names.index("ground_friction")
_MINIMUM, _POSSIBLE = 3, 4
_STARTS, _STEPS, _RATE = 16, 400, 0.03


@dataclass(frozen=True)
class IdentifiedImpact:
    """Parameters that fit; others may fit as well, so look at what they predict rather than at them.

    Args:
        values: [4], in the order of `PARAMETERS`.
        loss: mean squared error in the surrogate's outputs.
        spread: [4], highest over lowest value among the starts that ended within a tenth of the best loss.
    """

    values: np.ndarray
    loss: float
    spread: np.ndarray


@dataclass(frozen=True)
class StruckBlock:
    """All that an adaptation has to know before any strike, where no surrogate says it."""

    shape: Shape
    definition: Definition = field(default_factory=Definition)


KnownBlock = Surrogate | StruckBlock


@dataclass(frozen=True)
class Adapted:
    """A law of rigid impact, perhaps a surrogate beside it, what they leave over, and how the block slides.

    Example:
        model = adapt(StruckBlock(shape), read_strikes(table, shape))
        velocities = model(strikes)
        mean, std = model.collision.intervals(strikes)

    Args:
        base: the surrogate, or what was struck.
        identified: parameters of the surrogate; None without one.
        sliding: None where recordings do not say where the block came to rest.
        rejected: rows of the recorded strikes that the others contradict; nothing was fitted to them.
    """

    base: KnownBlock
    identified: IdentifiedImpact | None
    law: ImpactLaw
    collision: Blended
    sliding: SlidingModel | None
    rejected: tuple[int, ...] = ()

    @property
    def shape(self) -> Shape:
        return self.base.shape

    def __call__(self, strikes: Strikes) -> np.ndarray:
        """Velocity after, [N, 3]: m/s, m/s, rad/s, in the frame of the block at the impact."""
        return self.collision(strikes)


def adapt(base: KnownBlock, recorded: RecordedStrikes, seed: int = 0) -> Adapted:
    """Reject glitches, fit the law, identify the parameters of a surrogate, then learn what is left over.

    Where velocities after were not recorded, those are taken from which the block slides to where it came to rest.
    """
    refuse_few(len(recorded), "strikes")
    shape, mass_kg = base.shape, base.definition.striker_mass_kg
    slide = None if velocities_known(recorded) else fit_from_rests(shape, recorded, mass_kg)
    recorded = with_velocities(recorded, slide)
    rejected = glitches(shape, recorded, mass_kg)
    kept = recorded.take(np.delete(np.arange(len(recorded)), rejected))
    sliding = slide or fit_sliding(shape, kept)
    friction = None if sliding is None else sliding.friction
    identified = identify(base, kept, friction, seed) if isinstance(base, Surrogate) else None
    law = fit_law(shape, kept, friction, mass_kg)
    bases, trusts = models_of(base, identified, law)
    return Adapted(base, identified, law, blend(shape, bases, kept, trusts), sliding, rejected)


def refuse_few(count: int, of: str) -> None:
    if count < _MINIMUM:
        raise CalibrationError(
            got=f"{count} {of}",
            expected=f"at least {_MINIMUM}, better 10",
            where="adaptation",
            next_step=f"Record more {of}, at other places and speeds.",
        )


def models_of(
    base: KnownBlock, identified: IdentifiedImpact | None, law: ImpactLaw
) -> tuple[tuple[BaseModel, ...], tuple[Trust, ...]]:
    """List the models that are corrected and averaged, and where each is trusted; the law is the last."""
    if not isinstance(base, Surrogate) or identified is None:
        return (law,), (everywhere,)
    return (surrogate_base(base, identified.values), law), (base.knows, everywhere)


def glitches(
    shape: Shape, recorded: RecordedStrikes, striker_mass_kg: float = Definition.striker_mass_kg
) -> tuple[int, ...]:
    """Find strikes that law and residual, fitted to the others, contradict."""

    def judged(fitted: np.ndarray, left_out: np.ndarray) -> np.ndarray:
        rest, others = recorded.take(fitted), recorded.take(left_out)
        # The law alone: it needs four numbers, and no surrogate has to be searched through once more.
        model = correct(shape, fit_law(shape, rest, striker_mass_kg=striker_mass_kg), rest)
        mean, std = model.intervals(others.strikes)
        return np.abs((to_contact(shape, others.strikes, others.after) - mean) / std).max(axis=1)

    impossible = against_any_law(shape, recorded, striker_mass_kg)
    if len(recorded) - impossible.sum() < _POSSIBLE:  # then the law is wrong for this contact, not most of its rows
        impossible[:] = False
    law = fit_law(shape, recorded.take(np.flatnonzero(~impossible)), striker_mass_kg=striker_mass_kg, bounded=True)
    return contradicted(missed_shares(law, recorded), judged, impossible)


# Which parameters explain recorded strikes: gradient descent through the frozen surrogate, from many starts.


def identify(
    surrogate: Surrogate, recorded: RecordedStrikes, ground_friction: float | None = None, seed: int = 0
) -> IdentifiedImpact:
    """Fit in logarithmic coordinates within bounds, from sixteen starts at once.

    Args:
        ground_friction: keep this value, known from how blocks slid.
    """
    with reproducible(derive_seed(seed, "identify")):
        # Standard deviation 1.5: through the sigmoid, starts spread about evenly over the logarithms of the ranges.
        coordinates = (1.5 * torch.randn(_STARTS, 4)).requires_grad_(True)
        optimiser = torch.optim.Adam([coordinates], lr=_RATE)
        loss = parameter_losses(surrogate, recorded)
        for _ in range(_STEPS):
            optimiser.zero_grad()
            # The sum leaves each start its own gradient, so one pass descends all sixteen.
            loss(_bounded(coordinates, ground_friction)).sum().backward()
            optimiser.step()
        with torch.no_grad():
            values = _bounded(coordinates, ground_friction)
            losses = loss(values)
    return best_start(values.numpy().astype(float), losses.numpy())


def parameter_losses(surrogate: Surrogate, recorded: RecordedStrikes) -> Callable[[Tensor], Tensor]:
    """Make the function from parameters [S, 4] to losses [S], eq. (3) for each."""
    fixed = surrogate.fixed_inputs(recorded.strikes)
    wanted = torch.as_tensor(surrogate.encode(recorded.strikes, recorded.after), dtype=torch.float32)
    for weight in surrogate.network.parameters():
        weight.requires_grad_(False)

    def losses(values: Tensor) -> Tensor:
        inputs = surrogate.inputs(fixed, values[:, None].expand(-1, len(fixed), -1))
        return (surrogate.network(inputs)[..., :3] - wanted).square().mean(dim=(1, 2))

    return losses


def _bounded(coordinates: Tensor, ground_friction: float | None) -> Tensor:
    low, high = (torch.tensor(np.log(bound), dtype=torch.float32) for bound in (PARAMETERS.lower, PARAMETERS.upper))
    values = torch.exp(low + torch.sigmoid(coordinates) * (high - low))
    return values if ground_friction is None else with_ground(values, ground_friction)


def with_ground(values: Tensor, ground_friction: float) -> Tensor:
    """Put a ground friction into parameters [S, 4], within its bounds."""
    ground = PARAMETERS["ground_friction"]
    kept = float(np.clip(ground_friction, ground.lower, ground.upper))
    columns = list(values.unbind(-1))
    columns[GROUND] = torch.full_like(columns[GROUND], kept)
    return torch.stack(columns, dim=-1)


def best_start(values: np.ndarray, losses: np.ndarray) -> IdentifiedImpact:
    """Take the best of S starts, with the spread of all that ended about as well."""
    best = int(losses.argmin())
    good = values[losses <= 1.1 * losses[best]]
    return IdentifiedImpact(values[best], float(losses[best]), good.max(axis=0) / good.min(axis=0))
