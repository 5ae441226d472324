"""A stored policy of strikes: observations of a segment in, the strike to do next out, in numpy alone."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from rsr.clash.generate import shape_card, shape_from
from rsr.clash.segment import SegmentTask
from rsr.errors import PolicyError
from rsr.files import DAMAGED, read_arrays, read_json, write_arrays, write_json

_ARRAYS, _CARD = "strike_policy.npz", "strike_policy.json"


@dataclass(frozen=True)
class StrikePolicy:
    """A network that chooses speed, place and angle of the next strike.

    Args:
        task: what it was trained for.
        layers: (weight [out, in], bias [out]) of each layer, float32; relu between them, tanh at the end.
        card: how it was trained.
    """

    task: SegmentTask
    layers: tuple[tuple[np.ndarray, np.ndarray], ...]
    card: dict[str, Any] = field(default_factory=dict)

    def act(self, observation: np.ndarray) -> np.ndarray:
        """Actions [N, 3] in -1..1 for observations [N, 9] of the task."""
        hidden = observation
        for weight, bias in self.layers[:-1]:
            hidden = np.maximum(hidden @ weight.T + bias, 0)
        weight, bias = self.layers[-1]
        return np.tanh(hidden @ weight.T + bias)

    def save(self, folder: Path) -> None:
        """Write arrays and a card; equal policies give equal bytes."""
        arrays = {}
        for index, (weight, bias) in enumerate(self.layers):
            arrays |= {f"weight{index}": weight, f"bias{index}": bias}
        write_arrays(folder / _ARRAYS, arrays)
        rules = {name: value for name, value in asdict(self.task).items() if name != "shape"}
        card = {"shape": shape_card(self.task.shape), "task": rules, "layers": len(self.layers)}
        write_json(folder / _CARD, self.card | card)

    @staticmethod
    def load(folder: Path) -> StrikePolicy:
        try:
            card, arrays = read_json(folder / _CARD), read_arrays(folder / _ARRAYS)
            layers = tuple((arrays[f"weight{index}"], arrays[f"bias{index}"]) for index in range(card["layers"]))
            task = SegmentTask(shape_from(card["shape"]), **card["task"])
        except (*DAMAGED, TypeError) as error:
            raise PolicyError(
                got=f"{type(error).__name__}: {error}",
                expected=f"{_ARRAYS} and {_CARD} of one policy",
                where=str(folder),
                next_step="Train it again with `rsr clash push`.",
            ) from error
        return StrikePolicy(task, layers, card)
