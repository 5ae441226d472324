"""Learn how residuals of base models vary: the numbers in `rsr/learned/clash/residual.py`, from tuning stand-ins alone.

For every stand-in, shape and base model (surrogate, analytic law), fitted to ten strikes, what is left over on those
and on others is one draw of the process. The numbers that make the others most likely, given the ten, are found by
gradient, near the ones it begins with (a factor of e is one standard deviation). What was found is copied by hand.

    likelihood_before, likelihood_after   of a component of a strike, logarithm, given ten strikes, with the numbers as
                                          they are and as they were learnt
    <name>_<i>[_<j>]                      the numbers: `constant`, `linear`, ... of `Prior`
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import numpy as np
import torch
from _common import Figure, run
from torch import Tensor

from rsr.common import bar
from rsr.learned.clash import (
    MIRROR,
    PRIOR,
    STEPS,
    BaseModel,
    ObservedStrikes,
    ResidualPrior,
    Surrogate,
    distil,
    fit_law,
    fit_sliding,
    generate_pairs,
    identify,
    load_pairs,
    observe,
    surrogate_base,
    to_contact,
)
from rsr.realities import StrikeStandIn
from rsr.realities.strikes import TUNING_SEEDS
from rsr.scenarios.built_in.strike import SHAPES, RecordedStrikes, Shape, load_shape

FITTED, DRAWS, OTHERS = 10, 3, 16
RATE = 0.08
_FLIP = torch.tensor([-1.0, -1.0, -1.0, 1.0], dtype=torch.float64)
Numbers = dict[str, Tensor]
"""Logarithms of `Prior`, by name."""


def measure(quick: bool, steps: int, pairs: int) -> dict[str, Figure]:
    """Learn; `quick`: from two stand-ins and one shape."""
    shapes, seeds = (SHAPES[:1], TUNING_SEEDS[:2]) if quick else (SHAPES, TUNING_SEEDS)
    if quick:
        steps, pairs = 3, 2000
    torch.set_num_threads(1)
    draws: list[tuple[ObservedStrikes, np.ndarray]] = []
    for name in shapes:
        shape = load_shape(name)
        surrogate = distilled(shape, pairs, STEPS // 10 if quick else STEPS)
        for seed in seeds:
            draws += leftovers(shape, surrogate, seed)
    known = stacked(draws)
    numbers = {name: value.requires_grad_(True) for name, value in logarithms(PRIOR).items()}
    before = likelihood(numbers, *known).item()
    learn(numbers, known, steps)
    figures: dict[str, Figure] = {"likelihood_before": before, "likelihood_after": likelihood(numbers, *known).item()}
    for name, value in numbers.items():
        for place in np.ndindex(*value.shape):
            figures["_".join([name, *map(str, place)])] = float(value[place].exp())
    return figures


def distilled(shape: Shape, pairs: int, steps: int) -> Surrogate:
    with tempfile.TemporaryDirectory() as folder:
        known = load_pairs(generate_pairs(shape, Path(folder) / "strikes", pairs))
    return distil(shape, known, steps).surrogate


def leftovers(shape: Shape, surrogate: Surrogate, seed: int) -> Iterator[tuple[ObservedStrikes, np.ndarray]]:
    """Ten strikes and others, with what base models that were fitted to the ten leave over, [N, 3]."""
    recorded = StrikeStandIn(shape, seed).record(DRAWS * FITTED + 10 * OTHERS)
    for draw in range(DRAWS):
        few = recorded.take(slice(FITTED * draw, FITTED * (draw + 1)))
        rng = np.random.default_rng(1000 * seed + draw)
        others = rng.choice(np.arange(DRAWS * FITTED, len(recorded)), OTHERS, replace=False)
        rows = recorded.take(np.r_[np.arange(FITTED * draw, FITTED * (draw + 1)), others])
        for base in fitted_bases(shape, surrogate, few, seed):
            predicted, wanted = (to_contact(shape, rows.strikes, of) for of in (base(rows.strikes), rows.after))
            yield observe(shape, rows.strikes, predicted), wanted - predicted


def fitted_bases(shape: Shape, surrogate: Surrogate, few: RecordedStrikes, seed: int) -> tuple[BaseModel, BaseModel]:
    sliding = fit_sliding(shape, few)
    friction = None if sliding is None else sliding.friction
    identified = identify(surrogate, few, friction, seed)
    return surrogate_base(surrogate, identified.values), fit_law(shape, few, friction)


def stacked(draws: list[tuple[ObservedStrikes, np.ndarray]]) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Features [B, N, 4], base [B, N, 3], levers [B, N, 3, 6], speeds [B, N], residuals [B, N, 3]."""
    parts = [[getattr(at, name) for at, _ in draws] for name in ("features", "base", "levers", "speeds")]
    tensors = [torch.as_tensor(np.array(part)) for part in [*parts, [left for _, left in draws]]]
    return tensors[0], tensors[1], tensors[2], tensors[3], tensors[4]


def logarithms(prior: ResidualPrior) -> Numbers:
    return {at.name: torch.as_tensor(np.log(getattr(prior, at.name)), dtype=torch.float64) for at in fields(prior)}


def learn(numbers: Numbers, known: tuple[Tensor, ...], steps: int) -> None:
    """Climb from where the numbers are; far from there it becomes less likely, as a prior of its own."""
    start = {name: value.detach().clone() for name, value in numbers.items()}
    components = len(known[0]) * (known[0].shape[1] - FITTED) * 3
    optimiser = torch.optim.Adam(numbers.values(), lr=RATE)
    with bar("prior") as advance:
        for step in range(steps):
            optimiser.zero_grad()
            away = torch.stack([(numbers[name] - start[name]).square().sum() for name in numbers]).sum()
            loss = away / (2 * components) - likelihood(numbers, *known)
            loss.backward()
            optimiser.step()
            advance((step + 1) / steps, f"{-loss.item():.4f}")


def likelihood(
    numbers: Numbers, features: Tensor, base: Tensor, levers: Tensor, speeds: Tensor, left: Tensor
) -> Tensor:
    """Logarithm, of a component of the strikes that come after the first ten, given those; mean."""
    total = covariances(numbers, features, base, levers) + noises(numbers, base, levers, speeds)
    flat, few = left.flatten(1), 3 * FITTED
    gained = _log_density(total, flat) - _log_density(total[:, :few, :few], flat[:, :few])
    return gained.mean() / (flat.shape[1] - few)


def covariances(numbers: Numbers, features: Tensor, base: Tensor, levers: Tensor) -> Tensor:
    """`rsr.learned.clash.residual.covariance` for shapes with a mirror, [B, 3 N, 3 N], differentiable."""
    plain, flipped = (_smooth(numbers, features, features * flip) for flip in (torch.ones_like(_FLIP), _FLIP))
    parities = torch.as_tensor(MIRROR)
    total = torch.diag_embed((plain[..., 2:] + parities * flipped[..., 2:]) / np.sqrt(2)).permute(0, 1, 3, 2, 4)
    for lever in (0, 1):
        kernel = (plain[..., lever] + parities[lever] * flipped[..., lever]) / np.sqrt(2)
        scale = numbers["proportional"][lever].exp() * base[..., lever]
        total = total + _levered(levers[..., lever], kernel + scale[:, :, None] * scale[:, None])
    same = torch.ones(*features.shape[:2], features.shape[1], dtype=torch.float64)
    for lever, name in enumerate(("ground", "centre_m", "centre_m", "inertia"), start=2):
        total = total + _levered(levers[..., lever], (2 * numbers[name]).exp() * same)
    return total.flatten(3, 4).flatten(1, 2)


def noises(numbers: Numbers, base: Tensor, levers: Tensor, speeds: Tensor) -> Tensor:
    """The same for `noise_covariance`."""
    measured = (2 * numbers["noise"]).exp() * (1 + (0.3 / speeds) ** 2) / 2
    arms = levers[..., :2] * (numbers["scatter"].exp() * base[..., :2])[:, :, None]
    blocks = measured[..., None, None] * torch.eye(3, dtype=torch.float64) + arms @ arms.mT
    return torch.diag_embed(blocks.permute(0, 2, 3, 1)).permute(0, 3, 1, 4, 2).flatten(3, 4).flatten(1, 2)


def _levered(levers: Tensor, kernel: Tensor) -> Tensor:
    return levers[:, :, :, None, None] * kernel[:, :, None, :, None] * levers[:, None, None]


def _smooth(numbers: Numbers, a: Tensor, b: Tensor) -> Tensor:
    """Kernels [B, N, N, 3]."""
    constant, linear, local = ((2 * numbers[name]).exp() for name in ("constant", "linear", "local"))
    apart = (a[:, :, None, None] - b[:, None, :, None]) / numbers["lengths"].exp()
    return constant + (a[:, :, None] * b[:, None]) @ linear.mT + local * (-apart.square().sum(-1) / 2).exp()


def _log_density(covariance: Tensor, values: Tensor) -> Tensor:
    root = torch.linalg.cholesky(covariance)
    whitened = torch.linalg.solve_triangular(root, values[..., None], upper=False)[..., 0]
    return -whitened.square().sum(-1) / 2 - torch.diagonal(root, dim1=-2, dim2=-1).log().sum(-1)


if __name__ == "__main__":
    run(measure, __doc__, steps=45, pairs=40_000)
