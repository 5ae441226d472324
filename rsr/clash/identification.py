"""Which parameters explain recorded strikes: gradient descent through the frozen surrogate, from many starts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from rsr.clash.learning import reproducible
from rsr.clash.surrogate import Surrogate
from rsr.randomness import derive_seed
from rsr.scenarios.strike import PARAMETERS, RecordedStrikes

_STARTS, _STEPS, _RATE = 16, 400, 0.03
_PAPER_STEPS, _PAPER_RATE, _PAPER_DECAY = 1000, 1e-3, 0.01
GROUND = PARAMETERS.names.index("ground_friction")


@dataclass(frozen=True)
class Identified:
    """Parameters that fit; others may fit as well, so look at what they predict rather than at them.

    Args:
        values: [4], in the order of `PARAMETERS`.
        loss: mean squared error in the surrogate's outputs.
        spread: [4], highest over lowest value among the starts that ended within a tenth of the best loss.
    """

    values: np.ndarray
    loss: float
    spread: np.ndarray


def identify(
    surrogate: Surrogate, recorded: RecordedStrikes, ground_friction: float | None = None, seed: int = 0
) -> Identified:
    """Fit in logarithmic coordinates within bounds, from sixteen starts at once.

    Args:
        ground_friction: keep this value, known from how blocks slid.
    """
    with reproducible(derive_seed(seed, "identify")):
        coordinates = (1.5 * torch.randn(_STARTS, 4)).requires_grad_(True)
        optimiser = torch.optim.Adam([coordinates], lr=_RATE)
        loss = _losses(surrogate, recorded)
        for _ in range(_STEPS):
            optimiser.zero_grad()
            loss(_bounded(coordinates, ground_friction)).sum().backward()
            optimiser.step()
        with torch.no_grad():
            values = _bounded(coordinates, ground_friction)
            losses = loss(values)
    return _best(values.numpy().astype(float), losses.numpy())


def identify_as_paper(surrogate: Surrogate, recorded: RecordedStrikes, ground_friction: float | None) -> Identified:
    """Fit as the paper states: AdamW on the parameters themselves, 1,000 steps of 0.001 from the middle."""
    ground = 0.3 if ground_friction is None else ground_friction
    low, high = (torch.tensor(bound, dtype=torch.float32) for bound in (PARAMETERS.lower, PARAMETERS.upper))
    values = torch.tensor([[0.5, ground, 1.0, 1.0]]).requires_grad_(True)
    optimiser = torch.optim.AdamW([values], lr=_PAPER_RATE, weight_decay=_PAPER_DECAY)
    loss = _losses(surrogate, recorded)
    for _ in range(_PAPER_STEPS):
        optimiser.zero_grad()
        loss(_with_ground(values.clamp(low, high), ground)).sum().backward()
        optimiser.step()
    with torch.no_grad():
        ended = _with_ground(values.clamp(low, high), ground)
        return _best(ended.numpy().astype(float), loss(ended).numpy())


def _losses(surrogate: Surrogate, recorded: RecordedStrikes):
    """Make the function from parameters [S, 4] to losses [S]."""
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
    return values if ground_friction is None else _with_ground(values, ground_friction)


def _with_ground(values: Tensor, ground_friction: float) -> Tensor:
    ground = PARAMETERS["ground_friction"]
    kept = float(np.clip(ground_friction, ground.lower, ground.upper))
    columns = list(values.unbind(-1))
    columns[GROUND] = torch.full_like(columns[GROUND], kept)
    return torch.stack(columns, dim=-1)


def _best(values: np.ndarray, losses: np.ndarray) -> Identified:
    best = int(losses.argmin())
    good = values[losses <= 1.1 * losses[best]]
    return Identified(values[best], float(losses[best]), good.max(axis=0) / good.min(axis=0))
