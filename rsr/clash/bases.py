"""Models of impact that a residual may be put upon: functions from strikes to velocities after, [N, 3]."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from rsr.clash.learning import reproducible
from rsr.clash.presets import Preset
from rsr.clash.surrogate import Surrogate, new_surrogate
from rsr.randomness import derive_seed, generator
from rsr.scenarios.strike import PARAMETERS, RecordedStrikes, Shape, Strikes
from rsr.simulators.strikes import Collider

Base = Callable[[Strikes], np.ndarray]

_HIT_FRICTIONS = np.linspace(0.05, 1.0, 8)
_HIT_DAMPINGS = np.geomspace(0.1, 3.0, 8)
_GROUND_DAMPINGS = (0.1, 0.5, 1.0, 3.0)
_GROUND_FRICTIONS = (0.15, 0.3, 0.6)
_REFINEMENTS, _TRIALS = 3, 24


def surrogate_base(surrogate: Surrogate, params: np.ndarray) -> Base:
    return lambda strikes: surrogate.predict(strikes, params)[0]


def no_base(strikes: Strikes) -> np.ndarray:
    """Predict rest: what is left for a residual that stands alone."""
    return np.zeros((len(strikes), 3))


def mujoco_base(collide: Collider, params: np.ndarray) -> Base:
    return lambda strikes: collide(strikes, np.tile(params, (len(strikes), 1))).after


def grid_search(
    collide: Collider, recorded: RecordedStrikes, ground_friction: float | None = None, seed: int = 0
) -> np.ndarray:
    """Fit MuJoCo's parameters [4]: a grid over the ranges of Table I, then random trials about the best."""
    grounds = _GROUND_FRICTIONS if ground_friction is None else (ground_friction,)
    axes = np.meshgrid(_HIT_FRICTIONS, grounds, _HIT_DAMPINGS, _GROUND_DAMPINGS, indexing="ij")
    candidates = np.column_stack([axis.ravel() for axis in axes])
    best, least = _least(collide, recorded, candidates)
    rng = generator(seed, "grid")
    for turn in range(_REFINEMENTS):
        trials = best * np.exp(rng.normal(0, 0.25 / (turn + 1), (_TRIALS, 4)))
        if ground_friction is not None:
            trials[:, 1] = ground_friction
        found, error = _least(collide, recorded, np.clip(trials, PARAMETERS.lower, PARAMETERS.upper))
        if error < least:
            best, least = found, error
    return best


def _least(collide: Collider, recorded: RecordedStrikes, candidates: np.ndarray) -> tuple[np.ndarray, float]:
    count = len(recorded)
    rows = np.tile(np.arange(count), len(candidates))
    simulated = collide(recorded.strikes.take(rows), np.repeat(candidates, count, axis=0)).after
    missed = (simulated - recorded.after[rows]) * np.array([1.0, 1.0, collide.shape.gyration_m])
    errors = (missed**2).sum(axis=1).reshape(len(candidates), count).mean(axis=1)
    return candidates[errors.argmin()], float(errors.min())


def untrained_base(shape: Shape, recorded: RecordedStrikes, chosen: Preset, steps: int = 1000, seed: int = 0) -> Base:
    """Train a network on the recorded strikes alone, without any simulation before."""
    with reproducible(derive_seed(seed, "from scratch")):
        surrogate = new_surrogate(shape, chosen)
        nominal = np.tile(PARAMETERS.nominal, (len(recorded), 1))
        inputs = surrogate.inputs(surrogate.fixed_inputs(recorded.strikes), torch.as_tensor(nominal).float())
        wanted = torch.as_tensor(surrogate.encode(recorded.strikes, recorded.after), dtype=torch.float32)
        if chosen.scaled:
            surrogate.network.standardise(inputs, torch.cat([wanted, wanted], dim=1))
        optimiser = torch.optim.AdamW(surrogate.network.parameters(), lr=1e-3, weight_decay=0.01)
        for _ in range(steps):
            optimiser.zero_grad()
            (surrogate.network(inputs)[:, :3] - wanted).square().mean().backward()
            optimiser.step()
    return surrogate_base(surrogate, PARAMETERS.nominal)
