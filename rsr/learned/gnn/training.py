"""Training of contact networks, and fine-tuning on recordings. Equal seeds give equal bytes, also after a kill."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from rsr.common import Advance, CalibrationError, ConfigError, generator, ignore, one_thread
from rsr.learned.gnn.contact_network import ContactNetwork
from rsr.learned.gnn.graph import Scenes
from rsr.learned.gnn.rigid import matrix
from rsr.learned.gnn.simulator import check_frame_time
from rsr.learned.gnn.storage import TrainingRecord, new_network, save_network
from rsr.learned.gnn.training_windows import TrainingWindows, disturbed, windows_of
from rsr.learned.gnn.trajectories import Trajectory

_WARM_UP = 100
# How often in a training the curve gets a row, and a checkpoint is written.
_LOOKS = 20


@dataclass(frozen=True)
class TrainingSettings:
    """Settings of a training.

    Args:
        steps: of Adam, over windows of one predicted frame first, then of `unroll`.
        batch: windows a step while they are short; long ones are `batch / 2`.
        rate: highest learning rate; warms up for a hundred steps, and falls as a cosine.
        unroll: predicted frames of a long window.
        long_from: share of the steps after which windows are long.
        noise_m: disturbance of the states that windows start from.
        scale_m_s: errors of a vertex's velocity beyond this count linearly.
    """

    steps: int = 3000
    batch: int = 128
    rate: float = 2e-3
    unroll: int = 8
    long_from: float = 0.5
    noise_m: float = 5e-5
    scale_m_s: float = 0.015

    def unroll_at(self, step: int) -> int:
        return self.unroll if step >= self.long_from * self.steps else 1

    def __post_init__(self) -> None:
        if min(self.steps, self.batch, self.unroll) < 1 or not self.rate > 0 or self.noise_m < 0:
            raise ConfigError(
                got=f"steps {self.steps}, batch {self.batch}, unroll {self.unroll}, rate {self.rate:g}",
                expected="at least one of each, and a positive rate",
                where="training of a contact network",
                next_step="Correct the settings.",
            )

    def rate_at(self, step: int) -> float:
        # Cosine from the full rate to a hundredth of it.
        falling = 0.5 * (1 + np.cos(np.pi * step / self.steps))
        return float(self.rate * min(1, (step + 1) / _WARM_UP) * (0.01 + 0.99 * falling))


def train_network(
    trajectories: Sequence[Trajectory],
    settings: TrainingSettings | None = None,
    seed: int = 0,
    advance: Advance = ignore,
    *,
    network: ContactNetwork | None = None,
    folder: Path | None = None,
) -> ContactNetwork:
    """Train a network on trajectories of one frame time.

    Args:
        network: an untrained one of another architecture; by default a new `impulse`.
        folder: where the network, its curve, and checkpoints go. A training that was killed goes on from the last
            checkpoint there, with the same result.
    """
    settings = settings or TrainingSettings()
    windows = windows_of(trajectories, settings.unroll)
    network = network or new_network(seed, dt_s=windows.dt_s)
    return _trained(network, windows, settings, seed, advance, folder)


def fine_tune(
    network: ContactNetwork,
    trajectories: Sequence[Trajectory],
    settings: TrainingSettings,
    seed: int = 0,
    advance: Advance = ignore,
) -> ContactNetwork:
    """Go on training a copy of a network, by another teacher or by recordings; the network itself stays as it is."""
    windows = windows_of(trajectories, settings.unroll)
    check_frame_time(network, windows.dt_s, "fine-tuning of a contact network")
    return _trained(copy.deepcopy(network), windows, settings, seed, advance)


def _trained(
    network: ContactNetwork,
    windows: TrainingWindows,
    settings: TrainingSettings,
    seed: int,
    advance: Advance,
    folder: Path | None = None,
) -> ContactNetwork:
    network.requires_grad_(True)
    optimiser = torch.optim.Adam(network.parameters(), lr=settings.rate)
    described = {"settings": asdict(settings), "seed": seed, "data": windows.fingerprint, "from": _fingerprint(network)}
    with one_thread():
        record = TrainingRecord.opened(folder, described, network, optimiser)
        # A checkpoint and a row of the curve come together, so that a resumed curve has no gap.
        every = max(1, settings.steps // _LOOKS)
        for step in range(record.step, settings.steps):
            loss = _step(network, optimiser, windows, settings, seed, step)
            record.add(loss)
            if (step + 1) % every == 0:
                record.look(step + 1, network, optimiser)
                advance((step + 1) / settings.steps, record.words)
    network.requires_grad_(False)
    if folder is not None:
        save_network(network, folder, {"training": described, "trajectories": len(windows.lengths)})
        record.close()
    return network


def _fingerprint(network: ContactNetwork) -> str:
    weights = (value.numpy().tobytes() for value in network.state_dict().values())
    return hashlib.sha256(b"".join(weights)).hexdigest()


def _step(
    network: ContactNetwork,
    optimiser: torch.optim.Optimizer,
    windows: TrainingWindows,
    settings: TrainingSettings,
    seed: int,
    step: int,
) -> float:
    """One step of Adam. All that is random in it comes from its number, so a training can go on from any step."""
    # A generator a step instead of one for all: nothing has to be stored of it.
    rng = generator(seed, "gnn", "train", step)
    unroll = settings.unroll_at(step)
    # Long windows cost `unroll` times as much a step.
    count = settings.batch if unroll == 1 else max(1, settings.batch // 2)
    chosen = windows.draw(rng, count, unroll)
    scenes, state, after = windows.window(*chosen, unroll, None if network.equivariant else rng)
    state = disturbed(state, rng, settings.noise_m, windows.dt_s)
    loss = torch.zeros(())
    for index in range(unroll):
        state = network(scenes, state)
        apart = corners(scenes, state.poses) - corners(scenes, after[index])
        # Errors add up along a window, like a random walk's.
        scaled = apart / (windows.dt_s * settings.scale_m_s * (index + 1) ** 0.5)
        loss = loss + _huber(scaled, scenes.real) / unroll
    for group in optimiser.param_groups:
        group["lr"] = settings.rate_at(step)
    optimiser.zero_grad()
    loss.backward()
    # Gradients through several impacts have rare, huge values.
    norm = torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
    if not torch.isfinite(norm):
        raise CalibrationError(
            got=f"a gradient that is not finite in step {step}",
            expected="finite gradients",
            where="training of a contact network",
            next_step="Look for trajectories that jump; or lower the learning rate.",
        )
    optimiser.step()
    return float(loss.detach())


def corners(scenes: Scenes, poses: Tensor) -> Tensor:
    """Vertices of all bodies in the world's frame, [N, V, 3]."""
    return poses[:, None, :3] + scenes.vertices_m @ matrix(poses[:, 3:]).mT


def _huber(errors: Tensor, real: Tensor) -> Tensor:
    """Mean over bodies of the mean over their vertices."""
    each = torch.nn.functional.huber_loss(errors, torch.zeros_like(errors), reduction="none").mean(2)
    # A body of many vertices counts as much as a cube.
    return ((each * real).sum(1) / real.sum(1)).mean()
