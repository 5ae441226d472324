"""A stored, deterministic policy: observation in, six joint displacements out, in numpy alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from rsr.errors import PolicyError
from rsr.files import DAMAGED, read_arrays, read_json, write_arrays, write_json
from rsr.policies import tool_plane
from rsr.scenarios import task_named

_ARRAYS = "policy.npz"
_CARD = "policy.json"
_ACTIVATIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {"tanh": np.tanh, "relu": lambda x: np.maximum(x, 0.0)}


@dataclass(frozen=True)
class Normaliser:
    """Observation scaling learnt during training: clip((x - mean) / sqrt(variance + 1e-8), +-limit)."""

    mean: np.ndarray
    variance: np.ndarray
    limit: float

    def __call__(self, observation: np.ndarray) -> np.ndarray:
        scaled = (observation - self.mean) / np.sqrt(self.variance + 1e-8)
        return np.clip(scaled, -self.limit, self.limit)


@dataclass(frozen=True)
class Policy:
    """A network that chooses the fingertip's velocity, and the analytic head that makes displacements of it.

    Args:
        layers: (weight [out, in], bias [out]) of each layer, float32.
        activation: between the layers, "tanh" or "relu".
        squashed: whether tanh brings the last layer into -1..1, as SAC's actor does it; a clip otherwise.
    """

    scenario: str
    normaliser: Normaliser
    layers: tuple[tuple[np.ndarray, np.ndarray], ...]
    card: dict[str, object] = field(default_factory=dict)
    activation: str = "tanh"
    squashed: bool = False

    def act(self, observation: np.ndarray) -> np.ndarray:
        """Displacements in -1..1, [B, 6], for observations [B, n] of the scenario's task."""
        return tool_plane.act(task_named(self.scenario), observation, self.velocity(observation))

    def velocity(self, observation: np.ndarray) -> np.ndarray:
        """Fingertip velocities [B, 2] in units of `tool_plane.SPEED_M_S`, clipped to -1..1."""
        task = task_named(self.scenario)
        if observation.shape[-1] != task.observation_size:
            raise PolicyError(
                got=f"observations of width {observation.shape[-1]}",
                expected=f"{task.observation_size} values ({', '.join(term.name for term in task.terms)})",
                where=f"policy for {self.scenario}",
                next_step=f"Build observations with rsr.scenarios.{self.scenario}.task.observation.",
            )
        hidden = self.normaliser(observation).astype(np.float32)
        for weight, bias in self.layers[:-1]:
            hidden = _ACTIVATIONS[self.activation](hidden @ weight.T + bias)
        weight, bias = self.layers[-1]
        output = hidden @ weight.T + bias
        return np.tanh(output) if self.squashed else np.clip(output, -1.0, 1.0)

    def save(self, folder: Path) -> None:
        arrays = {"mean": self.normaliser.mean, "variance": self.normaliser.variance}
        for i, (weight, bias) in enumerate(self.layers):
            arrays[f"weight{i}"], arrays[f"bias{i}"] = weight, bias
        write_arrays(folder / _ARRAYS, arrays)
        card = {
            "scenario": self.scenario,
            "limit": self.normaliser.limit,
            "layers": len(self.layers),
            "activation": self.activation,
            "squashed": self.squashed,
        }
        write_json(folder / _CARD, {**self.card, **card})

    @staticmethod
    def load(folder: Path) -> Policy:
        try:
            card = read_json(folder / _CARD)
            arrays = read_arrays(folder / _ARRAYS)
            layers = tuple((arrays[f"weight{i}"], arrays[f"bias{i}"]) for i in range(card["layers"]))
            normaliser = Normaliser(arrays["mean"], arrays["variance"], card["limit"])
            # Policies of earlier versions do not say it: tanh networks with a clip, all of them.
            activation, squashed = card.get("activation", "tanh"), card.get("squashed", False)
            _ACTIVATIONS[activation]
        except DAMAGED as error:
            raise PolicyError(
                got=f"{type(error).__name__}: {error}",
                expected=f"{_ARRAYS} and {_CARD} of one policy",
                where=str(folder),
                next_step="Restore the folder with `dvc checkout`, or make it again with `dvc repro`.",
            ) from error
        return Policy(card["scenario"], normaliser, layers, card, activation, squashed)
