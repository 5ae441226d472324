"""Fine-tuning: all weights of the surrogate, a few steps on recorded strikes, with the parameters kept."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TypeVar

import numpy as np
import torch

from rsr.common import one_thread
from rsr.learned.clash import Surrogate
from rsr.scenarios.built_in.strike import RecordedStrikes

from .paper import PaperSurrogate

AnySurrogate = TypeVar("AnySurrogate", Surrogate, PaperSurrogate)

PAPER_STEPS = 10
_RATE, _DECAY = 1e-3, 0.01
_CHOICES = (0, 3, 10, 30, 100)
_MOST_FOLDS = 10


def finetune(
    surrogate: AnySurrogate, recorded: RecordedStrikes, params: np.ndarray, steps: int = PAPER_STEPS
) -> AnySurrogate:
    """Take AdamW steps on recorded strikes, as the paper does; the given surrogate stays as it is."""
    return _path(surrogate, recorded, params, (steps,))[0]


def finetune_gated(surrogate: Surrogate, recorded: RecordedStrikes, params: np.ndarray) -> tuple[Surrogate, int]:
    """Stop where strikes that were left out are predicted best; no step at all is one of the choices."""
    folds = min(len(recorded), _MOST_FOLDS)
    rows = np.arange(len(recorded))
    errors = np.zeros(len(_CHOICES))
    for fold in range(folds):
        left_out = recorded.take(rows[fold::folds])
        rest = recorded.take(np.delete(rows, rows[fold::folds]))
        for index, tuned in enumerate(_path(surrogate, rest, params, _CHOICES)):
            missed = tuned.predict(left_out.strikes, params)[0] - left_out.after
            scaled = missed / left_out.strikes.speed_m_s[:, None] * [1, 1, surrogate.shape.gyration_m]
            errors[index] += (scaled**2).sum()
    steps = _CHOICES[int(errors.argmin())]
    return finetune(surrogate, recorded, params, steps), steps


def _path(
    surrogate: AnySurrogate, recorded: RecordedStrikes, params: np.ndarray, stops: tuple[int, ...]
) -> list[AnySurrogate]:
    """Surrogates after each of these numbers of steps, which ascend."""
    network = copy.deepcopy(surrogate.network).requires_grad_(True)
    values = torch.as_tensor(np.tile(params, (len(recorded), 1)), dtype=torch.float32)
    inputs = surrogate.inputs(surrogate.fixed_inputs(recorded.strikes), values)
    wanted = torch.as_tensor(surrogate.encode(recorded.strikes, recorded.after), dtype=torch.float32)
    optimiser = torch.optim.AdamW(network.parameters(), lr=_RATE, weight_decay=_DECAY)
    tuned, step = [], 0
    with one_thread():  # thousands of steps on ten rows: threads would only wait for one another
        for stop in stops:
            while step < stop:
                optimiser.zero_grad()
                (network(inputs)[:, :3] - wanted).square().mean().backward()
                optimiser.step()
                step += 1
            tuned.append(replace(surrogate, network=copy.deepcopy(network).requires_grad_(False)))
    return tuned
