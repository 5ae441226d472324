"""The surrogate of MuJoCo's impacts: strikes and parameters in, velocities after out; and its distillation.

f_theta of the paper's eq. (2), differentiable in the parameters. Inputs and outputs are of the contact frame.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn

from rsr.common import Advance, ConfigError, derive_seed, generator, ignore, one_thread, rotated
from rsr.learned.clash.frame import MIRROR, Accuracy, Geometry, accuracy, from_contact, geometry_of, to_contact
from rsr.learned.clash.generate import StrikePairs
from rsr.scenarios.built_in.strike import Definition, Shape, Strikes

OUTPUTS = 6
"""Velocity after, and how far the block was pushed while they touched: three numbers each."""
STEPS = 8000
_WIDTH, _DEPTH = 128, 3
_BATCH, _PEAK_RATE, _WEIGHT_DECAY = 1024, 5e-3, 0.01
_CONSTANT = 1e-3
_ROOM_SHARE, _ROOM = 0.1, 0.1  # beyond the training: of its range, or of an input of about one; a face is 6 degrees off
_NORMAL_STD_RAD, _POINT_STD_M = np.radians(0.5), 0.0005
_PUSH_S = 0.01
_PUSH_WEIGHT = 0.1
_HELD_OUT_SHARE, _HELD_OUT_MOST = 0.1, 5000


class Network(nn.Module):
    """A multilayer perceptron between standardised inputs and outputs."""

    def __init__(self, inputs: int, activation: type[nn.Module] = nn.SiLU) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for before, after in pairwise([inputs] + [_WIDTH] * _DEPTH):
            layers += [nn.Linear(before, after), activation()]
        self.layers = nn.Sequential(*layers, nn.Linear(_WIDTH, OUTPUTS))
        for name, count in (("input", inputs), ("output", OUTPUTS)):
            self.register_buffer(f"{name}_mean", torch.zeros(count))
            self.register_buffer(f"{name}_std", torch.ones(count))
        for name, bound in (("low", -torch.inf), ("high", torch.inf)):
            self.register_buffer(f"input_{name}", torch.full((inputs,), bound))

    def forward(self, inputs: Tensor) -> Tensor:
        return self.layers((inputs - self.input_mean) / self.input_std) * self.output_std + self.output_mean

    def standardise(self, inputs: Tensor, outputs: Tensor) -> None:
        """Set the scales from training data."""
        self.input_mean, std = inputs.mean(0), inputs.std(0)
        # On a flat face some inputs never vary (facing, depth). Divided by infinity they are zero whatever was
        # measured: the network cannot have learnt what a normal that is one degree off would do.
        self.input_std = torch.where(std < _CONSTANT, torch.full_like(std, torch.inf), std)
        low, high = inputs.min(0).values, inputs.max(0).values
        room = torch.clamp(_ROOM_SHARE * (high - low), min=_ROOM)
        self.input_low, self.input_high = low - room, high + room
        self.output_mean = outputs.mean(0)
        # One scale for the velocities and one for the push: their components are of one kind and one unit.
        spread = outputs.std(0)
        self.output_std = torch.cat([part.square().mean().sqrt().expand(3) for part in (spread[:3], spread[3:])])


@dataclass(frozen=True)
class Surrogate:
    """A network, the shape that it knows, and the striker in the strikes that it learnt from."""

    shape: Shape
    network: Network
    definition: Definition

    def predict(self, strikes: Strikes, params: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Velocity after [N, 3] and push [N, 3] of N strikes with parameters [4] or [N, 4]."""
        # A second thread costs more than it saves on a network of this size, many times more on a busy machine.
        with one_thread(), torch.no_grad():
            values = torch.as_tensor(np.broadcast_to(params, (len(strikes), 4)).astype(np.float32))
            outputs = self.network(self.inputs(self.fixed_inputs(strikes), values)).numpy().astype(float)
        return self.decode(strikes, outputs[:, :3]), self.decode(strikes, outputs[:, 3:]) * _PUSH_S

    def at(self, params: np.ndarray) -> Callable[[Strikes], np.ndarray]:
        """Make the function from strikes to velocities after [N, 3], with parameters [4] and the weights of now.

        In numpy, since planners ask for one strike at a time, where torch takes longer to begin than to compute.
        """
        network, described = self.network, _parameter_columns(torch.as_tensor(params, dtype=torch.float32)).numpy()
        layers = [layer for layer in network.layers if isinstance(layer, nn.Linear)]
        weights = [(layer.weight.detach().numpy().T, layer.bias.detach().numpy()) for layer in layers]
        (first, bias), *others = weights
        # What the parameters and the scales of the inputs do to the first layer is the same for every strike.
        mean, std = network.input_mean.numpy(), network.input_std.numpy()
        count = len(mean) - len(described)
        scaled = first[:count] / std[:count, None]
        begin = bias + (described - mean[count:]) / std[count:] @ first[count:] - mean[:count] @ scaled
        out_mean, out_std = network.output_mean.numpy()[:3], network.output_std.numpy()[:3]

        def after(strikes: Strikes) -> np.ndarray:
            geometry, flipped = self._canonical(strikes)
            values = np.column_stack(_contact_columns(geometry)).astype(np.float32) @ scaled + begin
            for weight, offset in others:
                values = values * (0.5 + 0.5 * np.tanh(0.5 * values)) @ weight + offset  # SiLU
            shares = (values[:, :3] * out_std + out_mean).astype(float)
            return from_contact(self.shape, strikes, shares * np.where(flipped[:, None], MIRROR, 1.0))

        return after

    def knows(self, strikes: Strikes) -> np.ndarray:
        """Find the strikes [N] within the ranges of the training: speed, angle, place and direction of the face."""
        fixed, network = self.fixed_inputs(strikes), self.network
        count = fixed.shape[1]
        return ((fixed >= network.input_low[:count]) & (fixed <= network.input_high[:count])).all(dim=1).numpy()

    def fixed_inputs(self, strikes: Strikes) -> Tensor:
        """Inputs that do not depend on the parameters, [N, F]."""
        columns = _contact_columns(self._canonical(strikes)[0])
        return torch.as_tensor(np.column_stack(columns), dtype=torch.float32)

    def inputs(self, fixed: Tensor, params: Tensor) -> Tensor:
        """Join inputs [..., N, F] with those of parameters [..., N, 4]; differentiable in the parameters."""
        described = _parameter_columns(params)
        lead = torch.broadcast_shapes(fixed.shape[:-1], described.shape[:-1])
        return torch.cat([fixed.expand(*lead, -1), described.expand(*lead, -1)], dim=-1)

    def encode(self, strikes: Strikes, after: np.ndarray) -> np.ndarray:
        """Velocities [N, 3] as the network gives them."""
        return to_contact(self.shape, strikes, after) * self._signs(strikes)

    def decode(self, strikes: Strikes, outputs: np.ndarray) -> np.ndarray:
        return from_contact(self.shape, strikes, outputs * self._signs(strikes))

    def encode_push(self, strikes: Strikes, moved: np.ndarray) -> np.ndarray:
        """Pushes [N, 3] as the network gives them: like velocities, over a hundredth of a second."""
        return self.encode(strikes, moved / _PUSH_S)

    def _signs(self, strikes: Strikes) -> np.ndarray:
        return np.where(self._canonical(strikes)[1][:, None], MIRROR, 1.0)

    def _canonical(self, strikes: Strikes) -> tuple[Geometry, np.ndarray]:
        """Of a strike and its mirror image, the one left of the centre of mass; and which rows were mirrored."""
        geometry = geometry_of(self.shape, strikes)
        flipped = (geometry.across < 0) & (self.shape.axis_rad is not None)
        return geometry.mirrored(flipped), flipped


def new_surrogate(shape: Shape, definition: Definition | None = None) -> Surrogate:
    """Make an untrained surrogate; weights come from torch's generator."""
    return Surrogate(shape, Network(inputs=14), Definition() if definition is None else definition)


def _contact_columns(geometry: Geometry) -> list[np.ndarray]:
    facing, angle, speed = geometry.facing_rad, geometry.angle_rad, geometry.speed_m_s
    places = [geometry.across, geometry.along, np.sin(facing), np.cos(facing)]
    # tan(angle) is the slip over the approach, which Coulomb's law compares with friction. The share of the speed that
    # ground friction takes during the contact goes with 1 / speed.
    return [*places, np.sin(angle), np.tan(angle), speed, 1 / speed]


def _parameter_columns(params: Tensor) -> Tensor:
    hit_friction, ground_friction, hit_damping, ground_damping = params.unbind(-1)
    # A damping ratio acts on the rebound nearly as exp(-2 zeta) does, and hardly at all above one.
    rebound = torch.exp(-2 * hit_damping)
    columns = [hit_friction, ground_friction, hit_damping.log(), ground_damping.log(), rebound]
    return torch.stack([*columns, hit_damping / (1 + hit_damping)], dim=-1)


# Distillation: simulated strikes are learnt, and the surrogate is judged on some that were held out.


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
    pairs: StrikePairs,
    steps: int = STEPS,
    seed: int = 0,
    advance: Advance = ignore,
    definition: Definition | None = None,
) -> Distilled:
    """Train on most pairs, judge on the others. The same seed gives the same weights.

    Args:
        steps: of training.
        definition: that the pairs were simulated by, where it is not the usual one.
    """
    if steps < 1:
        raise ConfigError(
            got=f"{steps} steps of training",
            expected="at least 1; the default is 8,000",
            where="distilling a surrogate",
            next_step="Leave the number out, or ask for more.",
        )
    held_out, training = parted(pairs, seed)
    with reproducible(derive_seed(seed, "surrogate")):
        surrogate = new_surrogate(shape, definition)
        _train(surrogate, training, steps, advance)
    judged = (judge(surrogate, held_out.take(held_out.table_one == flag)) for flag in (True, False))
    return Distilled(surrogate, *judged)


def parted(pairs: StrikePairs, seed: int) -> tuple[StrikePairs, StrikePairs]:
    """Draw pairs to hold out, a tenth; and those to train on."""
    order = generator(seed, "held out").permutation(len(pairs))
    count = min(int(_HELD_OUT_SHARE * len(pairs)), _HELD_OUT_MOST)
    return pairs.take(order[:count]), pairs.take(order[count:])


def judge(surrogate: Surrogate, pairs: StrikePairs) -> Accuracy:
    predicted, _ = surrogate.predict(pairs.strikes, pairs.params)
    return accuracy(surrogate.shape, predicted, pairs.after)


@contextmanager
def reproducible(seed: int) -> Iterator[None]:
    """Make torch deterministic for a while: one thread, its own random numbers."""
    with one_thread(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def _train(surrogate: Surrogate, pairs: StrikePairs, steps: int, advance: Advance) -> None:
    network = surrogate.network
    network.standardise(*training_tensors(surrogate, pairs))
    # Recorded normals and points err: a network that has only seen exact ones takes them at their word.
    inputs, wanted = training_tensors(surrogate, replace(pairs, strikes=_jittered(pairs.strikes)))
    optimiser = torch.optim.AdamW(network.parameters(), lr=_PEAK_RATE, weight_decay=_WEIGHT_DECAY)
    rate = torch.optim.lr_scheduler.OneCycleLR(optimiser, _PEAK_RATE, total_steps=steps)
    # The push is a by-product: learning it must not cost accuracy of the velocity.
    weights = torch.tensor([1.0, 1.0, 1.0] + [_PUSH_WEIGHT] * 3)
    for step in range(steps):
        rows = torch.randint(0, len(inputs), (_BATCH,))
        errors = (network(inputs[rows]) - wanted[rows]) / network.output_std
        loss = (errors.square() * weights).mean()  # eq. (2)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        rate.step()
        if step % 100 == 99:
            advance((step + 1) / steps, f"loss {loss.item():.4f}")


def _jittered(strikes: Strikes) -> Strikes:
    """Strikes with normals and points as motion capture sees them; by torch's generator."""
    turned = _NORMAL_STD_RAD * torch.randn(len(strikes)).numpy()
    moved = _POINT_STD_M * torch.randn(len(strikes), 2).numpy()
    normal, angle = rotated(strikes.normal, turned), strikes.angle_rad - turned
    return Strikes(strikes.speed_m_s, angle, strikes.point_m + moved, normal)


def training_tensors(surrogate: Surrogate, pairs: StrikePairs) -> tuple[Tensor, Tensor]:
    """Inputs [N, F] and outputs [N, 6] of simulated strikes, as the network has them."""
    params = torch.as_tensor(pairs.params, dtype=torch.float32)
    inputs = surrogate.inputs(surrogate.fixed_inputs(pairs.strikes), params)
    velocities = surrogate.encode(pairs.strikes, pairs.after)
    pushes = surrogate.encode_push(pairs.strikes, pairs.moved)
    return inputs, torch.as_tensor(np.hstack([velocities, pushes]), dtype=torch.float32)
