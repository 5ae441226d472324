"""Contact networks on disk: a finished one, and the curve and checkpoint of one in training.

`network.json` says which network it is, `network.npz` holds the weights. Equal weights give equal bytes.
"""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rsr.common import (
    DAMAGED,
    CalibrationError,
    derive_seed,
    read_arrays,
    read_json,
    write_arrays,
    write_json,
    write_text,
)
from rsr.learned.gnn.contact_network import ContactNetwork
from rsr.learned.gnn.impulse import ImpulseNetwork, ImpulseSettings

VERSION = 2


def new_network(seed: int = 0, **settings: Any) -> ContactNetwork:
    """Make an untrained network; equal seeds give equal weights.

    Args:
        settings: of `ImpulseSettings`, such as `dt_s`.
    """
    # Layers draw from torch's global generator: seeded here, and given back as it was.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(seed, "gnn", ImpulseNetwork.kind))
        return ImpulseNetwork(ImpulseSettings(**settings))


def save_network(network: ContactNetwork, folder: Path, evidence: dict[str, Any] | None = None) -> None:
    """Write a network; `evidence` (of JSON types) goes into its card."""
    folder = Path(folder)
    write_arrays(folder / "network.npz", {name: value.numpy() for name, value in network.state_dict().items()})
    card = {"version": VERSION, "kind": network.kind, "settings": asdict(network.settings), "evidence": evidence or {}}
    write_json(folder / "network.json", card)


def load_network(folder: Path) -> ContactNetwork:
    """Read what `save_network` wrote; the weights take no gradients until `requires_grad_()` asks for them."""
    folder = Path(folder)
    try:
        card = read_json(folder / "network.json")
        weights = {name: torch.as_tensor(value) for name, value in read_arrays(folder / "network.npz").items()}
        if (card["version"], card["kind"]) != (VERSION, ImpulseNetwork.kind):
            raise ValueError(f"a network '{card['kind']}' of version {card['version']}")
        network = new_network(**card["settings"])
        network.load_state_dict(weights)
    except (*DAMAGED, RuntimeError) as error:
        raise CalibrationError(
            got=str(error).splitlines()[0],
            expected="network.json and network.npz as `rsr calibrate --method gnn` writes them",
            where=str(folder),
            next_step="Correct the folder, or calibrate again.",
        ) from error
    # Rollouts of a stored network shall not build graphs unless someone asks.
    return network.requires_grad_(False)


_COLUMNS = "step,cpu_s,loss"


@dataclass
class TrainingRecord:
    """The state of a training, kept in a folder or, without one, in memory alone."""

    folder: Path | None
    key: str
    step: int = 0
    rows: list[list[float]] = field(default_factory=list)
    _losses: list[float] = field(default_factory=list)
    _cpu_s: float = 0.0
    _started: float = field(default_factory=time.process_time)

    @classmethod
    def opened(
        cls, folder: Path | None, described: dict[str, Any], network: ContactNetwork, optimiser: torch.optim.Optimizer
    ) -> TrainingRecord:
        """Begin, or go on from a checkpoint of the same training; one of another training is not used."""
        key = hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()
        record = cls(folder, key)
        if folder is None:
            return record
        try:
            arrays = read_arrays(record._checkpoint)
            # Other settings, seed or data: going on would mix two trainings.
            if str(arrays["key"]) != key:
                return record
            record.step, record._cpu_s = int(arrays["step"]), float(arrays["cpu_s"])
            record.rows = arrays["rows"].tolist()
        except DAMAGED:  # a checkpoint only saves time
            return record
        _restore(arrays, network, optimiser)
        return record

    @property
    def words(self) -> str:
        _, cpu_s, loss = self.rows[-1]
        return f"loss {loss:.4f}, {cpu_s:.0f} CPU-s"

    @property
    def cpu_s(self) -> float:
        """CPU seconds of this training, those before a kill included."""
        return self._cpu_s + time.process_time() - self._started

    def add(self, loss: float) -> None:
        self._losses.append(loss)

    def look(self, step: int, network: ContactNetwork, optimiser: torch.optim.Optimizer) -> None:
        """Add a row to the curve, and write curve and checkpoint."""
        self.step = step
        self.rows.append([step, self.cpu_s, float(np.mean(self._losses))])
        self._losses.clear()
        if self.folder is None:
            return
        lines = [_COLUMNS] + [",".join(f"{value:.6g}" for value in row) for row in self.rows]
        write_text(self.folder / "curve.csv", "\n".join(lines) + "\n")
        state = {"key": np.array(self.key), "step": np.array(step), "cpu_s": np.array(self.cpu_s)}
        write_arrays(self._checkpoint, state | {"rows": np.array(self.rows)} | _state(network, optimiser))

    def close(self) -> None:
        """The training is whole: its checkpoint is of no more use."""
        if self.folder is not None:
            self._checkpoint.unlink(missing_ok=True)

    @property
    def _checkpoint(self) -> Path:
        return (self.folder or Path()) / "checkpoint.npz"


_MOMENTS = ("step", "exp_avg", "exp_avg_sq")


def _state(network: ContactNetwork, optimiser: torch.optim.Optimizer) -> dict[str, np.ndarray]:
    arrays = {f"weight/{name}": value.detach().numpy() for name, value in network.state_dict().items()}
    # Adam's moments belong to a checkpoint: without them a resumed training takes other steps.
    for index, moments in optimiser.state_dict()["state"].items():
        arrays |= {f"{name}/{index}": moments[name].numpy() for name in _MOMENTS}
    return arrays


def _restore(arrays: dict[str, np.ndarray], network: ContactNetwork, optimiser: torch.optim.Optimizer) -> None:
    weights = {name: arrays[f"weight/{name}"] for name in network.state_dict()}
    network.load_state_dict({name: torch.as_tensor(value) for name, value in weights.items()})
    state = optimiser.state_dict()
    indices = [index for group in state["param_groups"] for index in group["params"]]
    moments = {
        index: {name: torch.as_tensor(arrays[f"{name}/{index}"]) for name in _MOMENTS}
        for index in indices
        if f"step/{index}" in arrays
    }
    optimiser.load_state_dict({**state, "state": moments})
