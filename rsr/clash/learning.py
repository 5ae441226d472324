"""Distillation: a surrogate learns simulated strikes, and is judged on some that it did not see."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from rsr.clash.generate import Pairs
from rsr.clash.metric import Accuracy, accuracy
from rsr.clash.presets import Preset
from rsr.clash.surrogate import Surrogate, new_surrogate
from rsr.progress import Advance, ignore
from rsr.randomness import derive_seed, generator, one_thread
from rsr.scenarios.strike import Definition, Shape

_HELD_OUT_SHARE, _HELD_OUT_MOST = 0.1, 5000
_PUSH_WEIGHT = 0.1


@dataclass(frozen=True)
class Distilled:
    """A surrogate and how well it predicts held-out strikes.

    Args:
        table_one: over the ranges of the paper's Table I.
        bouncy: over the lower, logarithmic damping ratios of the other half of the data.
    """

    surrogate: Surrogate
    table_one: Accuracy
    bouncy: Accuracy


def distil(
    shape: Shape,
    pairs: Pairs,
    chosen: Preset,
    seed: int = 0,
    advance: Advance = ignore,
    definition: Definition | None = None,
) -> Distilled:
    """Train on most pairs, judge on the others. The same seed gives the same weights.

    Args:
        definition: that the pairs were simulated by, where it is not the usual one.
    """
    order = generator(seed, "held out").permutation(len(pairs))
    held_out = min(int(_HELD_OUT_SHARE * len(pairs)), _HELD_OUT_MOST)
    unseen, seen = pairs.take(order[:held_out]), pairs.take(order[held_out:])
    with reproducible(derive_seed(seed, "surrogate")):
        surrogate = new_surrogate(shape, chosen, definition)
        _train(surrogate, seen, chosen, advance)
    judged = (judge(surrogate, unseen.take(unseen.table_one == flag)) for flag in (True, False))
    return Distilled(surrogate, *judged)


def judge(surrogate: Surrogate, pairs: Pairs) -> Accuracy:
    predicted, _ = surrogate.predict(pairs.strikes, pairs.params)
    return accuracy(surrogate.shape, predicted, pairs.after)


@contextmanager
def reproducible(seed: int) -> Iterator[None]:
    """Make torch deterministic for a while: one thread, its own random numbers."""
    with one_thread(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def _train(surrogate: Surrogate, pairs: Pairs, chosen: Preset, advance: Advance) -> None:
    inputs, wanted = _tensors(surrogate, pairs)
    network = surrogate.network
    if chosen.scaled:
        network.standardise(inputs, wanted)
    optimiser = torch.optim.AdamW(network.parameters(), lr=chosen.learning_rate, weight_decay=chosen.weight_decay)
    rate = None
    if chosen.one_cycle:
        rate = torch.optim.lr_scheduler.OneCycleLR(optimiser, chosen.learning_rate, total_steps=chosen.steps)
    weights = torch.tensor([1.0, 1.0, 1.0] + [_PUSH_WEIGHT] * 3)
    for step in range(chosen.steps):
        rows = torch.randint(0, len(inputs), (chosen.batch,))
        errors = (network(inputs[rows]) - wanted[rows]) / network.output_std
        loss = (errors.square() * weights).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if rate is not None:
            rate.step()
        if step % 100 == 99:
            advance((step + 1) / chosen.steps, f"loss {loss.item():.4f}")


def _tensors(surrogate: Surrogate, pairs: Pairs) -> tuple[Tensor, Tensor]:
    params = torch.as_tensor(pairs.params, dtype=torch.float32)
    inputs = surrogate.inputs(surrogate.fixed_inputs(pairs.strikes), params)
    velocities = surrogate.encode(pairs.strikes, pairs.after)
    pushes = surrogate.encode_push(pairs.strikes, pairs.moved)
    return inputs, torch.as_tensor(np.hstack([velocities, pushes]), dtype=torch.float32)
