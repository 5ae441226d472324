"""State of a training as plain arrays: normalisers, optimisers and random generators, read and put back."""

from __future__ import annotations

import json
from typing import Any

import gymnasium
import numpy as np
import torch
from stable_baselines3.common.running_mean_std import RunningMeanStd

Snapshot = dict[str, np.ndarray]


def prefixed(prefix: str, arrays: Snapshot) -> Snapshot:
    return {f"{prefix}.{name}": array for name, array in arrays.items()}


def under(prefix: str, arrays: Snapshot) -> Snapshot:
    """Undo `prefixed`, leaving the others out."""
    return {name.removeprefix(f"{prefix}."): array for name, array in arrays.items() if name.startswith(f"{prefix}.")}


def weights(module: torch.nn.Module) -> Snapshot:
    """Every parameter, copied."""
    return {name: tensor.numpy().copy() for name, tensor in module.state_dict().items()}


def set_weights(module: torch.nn.Module, arrays: Snapshot) -> None:
    module.load_state_dict({name: torch.from_numpy(array) for name, array in arrays.items()})


def statistics(running: RunningMeanStd) -> Snapshot:
    return {"mean": np.array(running.mean), "variance": np.array(running.var), "count": np.array(running.count)}


def set_statistics(running: RunningMeanStd, values: Snapshot) -> None:
    running.mean, running.var, running.count = values["mean"], values["variance"], float(values["count"])


def optimiser_state(optimiser: torch.optim.Optimizer) -> Snapshot:
    """Adam's moments and step count of every parameter, copied, as "<parameter>.<name>"."""
    state = optimiser.state_dict()["state"]
    return {f"{index}.{name}": tensor.numpy().copy() for index, row in state.items() for name, tensor in row.items()}


def set_optimiser_state(optimiser: torch.optim.Optimizer, arrays: Snapshot) -> None:
    state: dict[int, dict[str, torch.Tensor]] = {}
    for key, array in arrays.items():
        index, name = key.split(".")
        state.setdefault(int(index), {})[name] = torch.from_numpy(array.copy())
    optimiser.load_state_dict({**optimiser.state_dict(), "state": state})


def generators(actions: gymnasium.Space[Any]) -> Snapshot:
    """The three generators that SB3 draws from: torch's, numpy's global one, and the action space's."""
    name, key, *position = np.random.get_state(legacy=True)  # noqa: NPY002
    return {
        "torch": torch.get_rng_state().numpy(),
        "numpy": np.asarray(key),
        "numpy_position": np.array(json.dumps([name, *position])),
        "actions": np.array(json.dumps(actions.np_random.bit_generator.state)),
    }


def set_generators(actions: gymnasium.Space[Any], arrays: Snapshot) -> None:
    torch.set_rng_state(torch.from_numpy(arrays["torch"]))
    name, *position = json.loads(str(arrays["numpy_position"]))
    np.random.set_state((name, arrays["numpy"], *position))  # noqa: NPY002
    actions.np_random.bit_generator.state = json.loads(str(arrays["actions"]))
