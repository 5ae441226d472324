"""Contact networks on disk: `network.json` says which, `network.npz` holds the weights. Equal weights, equal bytes."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from rsr.errors import CalibrationError, ConfigError
from rsr.files import DAMAGED, read_arrays, read_json, write_arrays, write_json
from rsr.gnn.contract import ContactNetwork
from rsr.gnn.fignet import FigNetwork, FigSettings
from rsr.gnn.impulse import ImpulseNetwork, ImpulseSettings
from rsr.randomness import derive_seed

VERSION = 1
KINDS = {"impulse": (ImpulseNetwork, ImpulseSettings), "fignet": (FigNetwork, FigSettings)}


def new_network(kind: str = "impulse", seed: int = 0, **settings: Any) -> ContactNetwork:
    """Make an untrained network; equal seeds give equal weights.

    Args:
        settings: of `ImpulseSettings` or `FigSettings`, such as `dt_s`.
    """
    if kind not in KINDS:
        raise ConfigError(
            got=f"network '{kind}'",
            expected=" or ".join(KINDS),
            where="contact networks",
            next_step="Correct --network.",
        )
    network, described = KINDS[kind]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(seed, "gnn", kind))
        return network(described(**settings))


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
        if card["version"] != VERSION:
            raise ValueError(f"version {card['version']}")
        network = new_network(card["kind"], **card["settings"])
        network.load_state_dict(weights)
    except (*DAMAGED, RuntimeError) as error:
        raise CalibrationError(
            got=str(error).splitlines()[0],
            expected="network.json and network.npz as `rsr gnn train` writes them",
            where=str(folder),
            next_step="Correct the folder, or run `rsr gnn train` again.",
        ) from error
    return network.requires_grad_(False)
