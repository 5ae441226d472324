"""Fine-tuning of the laws that a network is told, on a few recorded trajectories, by gradients through whole rollouts.

A few trajectories cannot teach thousands of weights, but they can say that bodies rub and bounce off each other
otherwise than they do on the floor, which one law for all contacts cannot. The error is Eq. (1) of "Few-Shot Neural
Differentiable Simulator" over all frames; how far the laws may go from the identified one is chosen by leaving out each
trajectory in turn, and not at all is among the choices.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from rsr.gnn.contract import rollout_scenes
from rsr.gnn.graph import scenes_of
from rsr.gnn.impulse import ImpulseNetwork
from rsr.gnn.laws import Laws
from rsr.gnn.rigid import conjugate, logarithm, normalised, product
from rsr.gnn.trajectories import GIVEN_FRAMES
from rsr.gnn.velocities import Steady
from rsr.progress import Advance, ignore
from rsr.randomness import one_thread

STRENGTHS = (0.3, 1.0, 3.0, 10.0)
"""Of the pull to the identified laws: what Eq. (1) has to fall for going one unit away."""
_TUNED = torch.tensor([True, False, False, False, False, False, True, True])
"""Friction, time constant and damping ratio. The others hardly differ in what a few trajectories show."""
_STEPS = 40
_RATE = 0.05
_TINY = 1e-12


@dataclass(frozen=True)
class TunedLaws:
    """What fine-tuning chose.

    Args:
        network: obeys the laws.
        strength: of the pull to the identified laws; None where they were kept.
        left_out: strength -> mean error of trajectories that were left out, None for the identified laws.
    """

    network: ImpulseNetwork
    laws: Laws
    strength: float | None
    left_out: dict[float | None, float]


def tune_laws(network: ImpulseNetwork, recorded: Sequence[Steady], advance: Advance = ignore) -> TunedLaws:
    """Fine-tune the laws that a network obeys."""
    count = len(recorded)
    folds = torch.ones(count + 1, count) - torch.eye(count + 1, count)
    shares = (folds / folds.sum(1, keepdim=True)).repeat(len(STRENGTHS), 1)
    strengths = torch.tensor(STRENGTHS).repeat_interleave(count + 1)
    free = torch.zeros(len(strengths), 2, len(_TUNED), requires_grad=True)
    task = _Task.of(network, recorded, len(strengths))
    optimiser = torch.optim.Adam([free], lr=_RATE)
    with one_thread():
        with torch.no_grad():
            before = task.errors(torch.zeros_like(free))[0]
        for step in range(_STEPS):
            for group in optimiser.param_groups:
                group["lr"] = _RATE * (1 - step / _STEPS)
            optimiser.zero_grad()
            loss = (task.errors(free) * shares).sum() + (strengths * free.square().sum((1, 2))).sum()
            loss.backward()
            optimiser.step()
            advance((step + 1) / _STEPS, f"loss {float(loss.detach()) / len(strengths):.3f}")
        with torch.no_grad():
            after = task.errors(free).reshape(len(STRENGTHS), count + 1, count)
    left_out: dict[float | None, float] = {None: float(before.mean())}
    left_out |= {s: float(rows[:count].diagonal().mean()) for s, rows in zip(STRENGTHS, after, strict=True)}
    chosen = min(left_out, key=lambda strength: left_out[strength])
    laws = network.laws.clone()
    if chosen is not None:
        laws += free.detach()[(STRENGTHS.index(chosen) + 1) * (count + 1) - 1] * _TUNED
    found = Laws.at(laws.double().numpy())
    return TunedLaws(network.obeying(found), found, chosen, left_out)


@dataclass(frozen=True)
class _Task:
    """All trajectories, simulated under V variants of the laws side by side."""

    network: ImpulseNetwork
    scenes: object
    start: Tensor
    truth: Tensor
    seen: Tensor
    sizes: Tensor
    frames: int
    count: int
    bodies: Tensor

    @classmethod
    def of(cls, network: ImpulseNetwork, recorded: Sequence[Steady], variants: int) -> _Task:
        trajectories = [each.trajectory for each in recorded]
        frames = max(len(each) for each in trajectories)
        filled = [_filled(each.poses, frames) for each in trajectories]
        seen = [~_filled(each.jumped, frames) & (np.arange(frames) < len(each.trajectory))[:, None] for each in recorded]
        poses = torch.as_tensor(np.concatenate(filled, axis=1), dtype=torch.float32)
        bodies = torch.tensor([len(each.world.bodies) for each in trajectories])
        return cls(
            network,
            scenes_of([each.world for each in trajectories]).repeated(variants),
            poses[:GIVEN_FRAMES].repeat(1, variants, 1),
            poses[GIVEN_FRAMES:],
            torch.as_tensor(np.concatenate(seen, axis=1))[GIVEN_FRAMES:],
            torch.as_tensor(np.concatenate([each.sizes_m for each in trajectories]), dtype=torch.float32),
            frames - GIVEN_FRAMES,
            len(trajectories),
            bodies,
        )

    def errors(self, free: Tensor) -> Tensor:
        """Eq. (1), [V, K], with laws that are off by `free` [V, 2, 8]."""
        variants = len(free)
        laws = (self.network.laws + free * _TUNED).repeat_interleave(int(self.bodies.sum()), 0)
        after = rollout_scenes(self.network, replace(self.scenes, laws=laws), self.start, self.frames)
        after = after.reshape(self.frames, variants, -1, 7)
        truth = self.truth[:, None].expand_as(after)
        distance = ((after[..., :3] - truth[..., :3]).square().sum(-1) + _TINY).sqrt() / self.sizes
        turn = logarithm(product(conjugate(truth[..., 3:]), normalised(after[..., 3:])))
        angle = (turn.square().sum(-1) + _TINY).sqrt()
        each = ((distance + angle) * self.seen[:, None]).sum(0)
        return torch.stack([part.sum(1) for part in each.split(self.bodies.tolist(), dim=1)], dim=1)


def _filled(rows: np.ndarray, frames: int) -> np.ndarray:
    return np.concatenate([rows, np.repeat(rows[-1:], frames - len(rows), axis=0)])
