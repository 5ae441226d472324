"""The surrogate: strikes and parameters in, velocities after out. Differentiable in the parameters."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn

from rsr.clash.frame import MIRROR, Geometry, from_contact, geometry_of, to_contact
from rsr.clash.presets import Preset
from rsr.scenarios.strike import Definition, Shape, Strikes

_ACTIVATIONS = {"relu": nn.ReLU, "silu": nn.SiLU}
OUTPUTS = 6
"""Velocity after, and how far the block was pushed while they touched: three numbers each."""


class Network(nn.Module):
    """A multilayer perceptron between standardised inputs and outputs."""

    def __init__(self, inputs: int, chosen: Preset) -> None:
        super().__init__()
        widths = [inputs] + [chosen.width] * chosen.depth
        layers: list[nn.Module] = []
        for before, after in pairwise(widths):
            layers += [nn.Linear(before, after), _ACTIVATIONS[chosen.activation]()]
        self.layers = nn.Sequential(*layers, nn.Linear(widths[-1], OUTPUTS))
        for name, count in (("input", inputs), ("output", OUTPUTS)):
            self.register_buffer(f"{name}_mean", torch.zeros(count))
            self.register_buffer(f"{name}_std", torch.ones(count))

    def forward(self, inputs: Tensor) -> Tensor:
        return self.layers((inputs - self.input_mean) / self.input_std) * self.output_std + self.output_mean

    def standardise(self, inputs: Tensor, outputs: Tensor) -> None:
        """Set the scales from training data."""
        self.input_mean, self.input_std = inputs.mean(0), inputs.std(0).clamp_min(1e-3)
        self.output_mean = outputs.mean(0)
        # One scale for the velocities and one for the push: their components are of one kind and one unit.
        spread = outputs.std(0)
        self.output_std = torch.cat([part.square().mean().sqrt().expand(3) for part in (spread[:3], spread[3:])])


@dataclass(frozen=True)
class Surrogate:
    """A network, the shape it knows, how it sees strikes, and what struck in those that it learnt from."""

    shape: Shape
    preset: Preset
    network: Network
    definition: Definition

    def predict(self, strikes: Strikes, params: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Velocity after [N, 3] and push [N, 3] of N strikes with parameters [4] or [N, 4]."""
        with torch.no_grad():
            values = torch.as_tensor(np.broadcast_to(params, (len(strikes), 4)).astype(np.float32))
            outputs = self.network(self.inputs(self.fixed_inputs(strikes), values)).numpy().astype(float)
        return self.decode(strikes, outputs[:, :3]), self._decode_push(strikes, outputs[:, 3:])

    def fixed_inputs(self, strikes: Strikes) -> Tensor:
        """Inputs that do not depend on the parameters, [N, F]."""
        if self.preset.frame == "body":
            place = np.arctan2(strikes.point_m[:, 1], strikes.point_m[:, 0])
            columns = [strikes.speed_m_s, place, strikes.angle_rad]
        else:
            columns = _contact_columns(self._canonical(strikes)[0])
        return torch.as_tensor(np.column_stack(columns), dtype=torch.float32)

    def inputs(self, fixed: Tensor, params: Tensor) -> Tensor:
        """Join inputs [..., N, F] with those of parameters [..., N, 4]; differentiable in the parameters."""
        described = params if self.preset.frame == "body" else _parameter_columns(params)
        lead = torch.broadcast_shapes(fixed.shape[:-1], described.shape[:-1])
        return torch.cat([fixed.expand(*lead, -1), described.expand(*lead, -1)], dim=-1)

    def encode(self, strikes: Strikes, after: np.ndarray) -> np.ndarray:
        """Velocities [N, 3] as the network gives them."""
        if self.preset.frame == "body":
            return after * self._weights()
        return to_contact(self.shape, strikes, after) * self._signs(strikes)

    def decode(self, strikes: Strikes, outputs: np.ndarray) -> np.ndarray:
        if self.preset.frame == "body":
            return outputs / self._weights()
        return from_contact(self.shape, strikes, outputs * self._signs(strikes))

    def encode_push(self, strikes: Strikes, moved: np.ndarray) -> np.ndarray:
        """Pushes [N, 3] as the network gives them: like velocities, over a hundredth of a second."""
        return self.encode(strikes, moved / _PUSH_S)

    def _decode_push(self, strikes: Strikes, outputs: np.ndarray) -> np.ndarray:
        return self.decode(strikes, outputs) * _PUSH_S

    def _weights(self) -> np.ndarray:
        return np.array([1.0, 1.0, self.shape.gyration_m if self.preset.scaled else 1.0])

    def _signs(self, strikes: Strikes) -> np.ndarray:
        return np.where(self._canonical(strikes)[1][:, None], MIRROR, 1.0)

    def _canonical(self, strikes: Strikes) -> tuple[Geometry, np.ndarray]:
        """Of a strike and its mirror image, the one left of the centre of mass; and which rows were mirrored."""
        geometry = geometry_of(self.shape, strikes)
        flipped = (geometry.across < 0) & (self.shape.axis_rad is not None)
        return geometry.mirrored(flipped), flipped


_PUSH_S = 0.01


def new_surrogate(shape: Shape, chosen: Preset, definition: Definition | None = None) -> Surrogate:
    """Make an untrained surrogate; weights come from torch's generator."""
    parameters = 4 if chosen.frame == "body" else 6
    network = Network((3 if chosen.frame == "body" else 8) + parameters, chosen)
    return Surrogate(shape, chosen, network, Definition() if definition is None else definition)


def _contact_columns(geometry: Geometry) -> list[np.ndarray]:
    facing, angle, speed = geometry.facing_rad, geometry.angle_rad, geometry.speed_m_s
    places = [geometry.across, geometry.along, np.sin(facing), np.cos(facing)]
    return [*places, np.sin(angle), np.tan(angle), speed, 1 / speed]


def _parameter_columns(params: Tensor) -> Tensor:
    hit_friction, ground_friction, hit_damping, ground_damping = params.unbind(-1)
    rebound = torch.exp(-2 * hit_damping)
    columns = [hit_friction, ground_friction, hit_damping.log(), ground_damping.log(), rebound]
    return torch.stack([*columns, hit_damping / (1 + hit_damping)], dim=-1)
