"""The recipes of the CLASH paper: `paper` as it states them, `normalised` with scales; and a net without simulation.

Inputs are in SI units in the block's frame, not in the contact frame: speed, direction of the impact point, angle, and
the four parameters as they are. A `PaperSurrogate` serves wherever `rsr.learned.clash.Surrogate` does.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from rsr.common import derive_seed, read_arrays, read_json, write_arrays, write_json
from rsr.learned.clash import (
    GROUND,
    Accuracy,
    BaseModel,
    IdentifiedImpact,
    Network,
    StrikePairs,
    Surrogate,
    best_start,
    judge,
    new_surrogate,
    parameter_losses,
    parted,
    reproducible,
    shape_card,
    shape_from,
    training_tensors,
    with_ground,
)
from rsr.scenarios.built_in.strike import PARAMETERS, Definition, RecordedStrikes, Shape, Strikes

STEPS = 1000
_BATCH, _RATE, _WEIGHT_DECAY = 1024, 1e-3, 0.01
_SCRATCH_STEPS = 1000
_IDENTIFICATION_STEPS = 1000
_PUSH_S = 0.01
RECIPES = {"paper": False, "normalised": True}
"""Name of a recipe, and whether inputs are standardised and angular velocities weighed by the radius of gyration."""


@dataclass(frozen=True)
class PaperSurrogate:
    """The network of the paper: three hidden layers of 128, ReLU.

    Args:
        scaled: see `RECIPES`.
    """

    shape: Shape
    network: Network
    definition: Definition
    scaled: bool

    def predict(self, strikes: Strikes, params: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Velocity after [N, 3] and push [N, 3] of N strikes with parameters [4] or [N, 4]."""
        with torch.no_grad():
            values = torch.as_tensor(np.broadcast_to(params, (len(strikes), 4)).astype(np.float32))
            outputs = self.network(self.inputs(self.fixed_inputs(strikes), values)).numpy().astype(float)
        return outputs[:, :3] / self._weights, outputs[:, 3:] / self._weights * _PUSH_S

    def fixed_inputs(self, strikes: Strikes) -> Tensor:
        """Inputs that do not depend on the parameters, [N, 3]."""
        place = np.arctan2(strikes.point_m[:, 1], strikes.point_m[:, 0])
        columns = np.column_stack([strikes.speed_m_s, place, strikes.angle_rad])
        return torch.as_tensor(columns, dtype=torch.float32)

    def inputs(self, fixed: Tensor, params: Tensor) -> Tensor:
        """Join inputs [..., N, 3] with parameters [..., N, 4]."""
        lead = torch.broadcast_shapes(fixed.shape[:-1], params.shape[:-1])
        return torch.cat([fixed.expand(*lead, -1), params.expand(*lead, -1)], dim=-1)

    def encode(self, strikes: Strikes, after: np.ndarray) -> np.ndarray:
        """Velocities [N, 3] as the network gives them."""
        return after * self._weights

    def encode_push(self, strikes: Strikes, moved: np.ndarray) -> np.ndarray:
        """Pushes [N, 3] as the network gives them."""
        return moved / _PUSH_S * self._weights

    @property
    def _weights(self) -> np.ndarray:
        return np.array([1.0, 1.0, self.shape.gyration_m if self.scaled else 1.0])


def new_paper_surrogate(shape: Shape, scaled: bool, definition: Definition | None = None) -> PaperSurrogate:
    """Make an untrained network; weights come from torch's generator."""
    network = Network(inputs=7, activation=nn.ReLU)
    return PaperSurrogate(shape, network, Definition() if definition is None else definition, scaled)


def distil_as_paper(
    shape: Shape, pairs: StrikePairs, recipe: str, steps: int = STEPS, seed: int = 0
) -> tuple[PaperSurrogate, Accuracy]:
    """Train by a recipe, 1,000 AdamW steps at a constant rate; judge on held-out pairs over Table I."""
    held_out, training = parted(pairs, seed)
    with reproducible(derive_seed(seed, "surrogate", recipe)):
        surrogate = new_paper_surrogate(shape, RECIPES[recipe])
        inputs, wanted = training_tensors(surrogate, training)
        if surrogate.scaled:
            surrogate.network.standardise(inputs, wanted)
        optimiser = torch.optim.AdamW(surrogate.network.parameters(), lr=_RATE, weight_decay=_WEIGHT_DECAY)
        for _ in range(steps):
            rows = torch.randint(0, len(inputs), (_BATCH,))
            errors = (surrogate.network(inputs[rows])[:, :3] - wanted[rows, :3]) / surrogate.network.output_std[:3]
            optimiser.zero_grad()
            errors.square().mean().backward()
            optimiser.step()
    surrogate.network.requires_grad_(False)
    return surrogate, judge(surrogate, held_out.take(held_out.table_one))


def save_paper_surrogate(folder: Path, surrogate: PaperSurrogate) -> None:
    write_arrays(folder / "weights.npz", {name: at.numpy() for name, at in surrogate.network.state_dict().items()})
    write_json(folder / "card.json", {"shape": shape_card(surrogate.shape), "scaled": surrogate.scaled})


def load_paper_surrogate(folder: Path) -> PaperSurrogate:
    card = read_json(folder / "card.json")
    surrogate = new_paper_surrogate(shape_from(card["shape"]), card["scaled"])
    weights = {name: torch.as_tensor(at) for name, at in read_arrays(folder / "weights.npz").items()}
    surrogate.network.load_state_dict(weights)
    surrogate.network.requires_grad_(False)
    return surrogate


def identify_as_paper(
    surrogate: PaperSurrogate, recorded: RecordedStrikes, ground_friction: float | None
) -> IdentifiedImpact:
    """Minimise eq. (3) as the paper states: AdamW on the parameters themselves, from the middle of their ranges."""
    ground = 0.3 if ground_friction is None else ground_friction
    low, high = (torch.tensor(bound, dtype=torch.float32) for bound in (PARAMETERS.lower, PARAMETERS.upper))
    start = [0.5, 0.5, 1.0, 1.0]
    start[GROUND] = ground
    values = torch.tensor([start]).requires_grad_(True)
    optimiser = torch.optim.AdamW([values], lr=_RATE, weight_decay=_WEIGHT_DECAY)
    loss = parameter_losses(surrogate, recorded)
    for _ in range(_IDENTIFICATION_STEPS):
        optimiser.zero_grad()
        loss(with_ground(values.clamp(low, high), ground)).sum().backward()
        optimiser.step()
    with torch.no_grad():
        ended = with_ground(values.clamp(low, high), ground)
        return best_start(ended.numpy().astype(float), loss(ended).numpy())


def network_base(surrogate: Surrogate | PaperSurrogate, params: np.ndarray) -> BaseModel:
    """Make a base model of any network with parameters [4]."""
    return lambda strikes: surrogate.predict(strikes, params)[0]


def untrained_base(recorded: RecordedStrikes, surrogate: Surrogate | PaperSurrogate) -> BaseModel:
    """Train an untrained network on the recorded strikes alone."""
    # Its inputs of parameters are constants here, so they carry nothing from simulation.
    nominal = np.tile(PARAMETERS.nominal, (len(recorded), 1))
    inputs = surrogate.inputs(surrogate.fixed_inputs(recorded.strikes), torch.as_tensor(nominal).float())
    wanted = torch.as_tensor(surrogate.encode(recorded.strikes, recorded.after), dtype=torch.float32)
    surrogate.network.standardise(inputs, torch.cat([wanted, wanted], dim=1))
    optimiser = torch.optim.AdamW(surrogate.network.parameters(), lr=_RATE, weight_decay=_WEIGHT_DECAY)
    for _ in range(_SCRATCH_STEPS):
        optimiser.zero_grad()
        (surrogate.network(inputs)[:, :3] - wanted).square().mean().backward()
        optimiser.step()
    return network_base(surrogate, PARAMETERS.nominal)


def untrained(recorded: RecordedStrikes, shape: Shape, seed: int) -> BaseModel:
    """The product's network without simulation."""
    with reproducible(derive_seed(seed, "from scratch")):
        return untrained_base(recorded, new_surrogate(shape))


def untrained_normalised(recorded: RecordedStrikes, shape: Shape, seed: int) -> BaseModel:
    """The paper's network without simulation, with scales."""
    with reproducible(derive_seed(seed, "from scratch")):
        return untrained_base(recorded, new_paper_surrogate(shape, scaled=True))
