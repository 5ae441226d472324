"""Convex bodies at random places, for tests of contact detection."""

from __future__ import annotations

import numpy as np
import torch

from benchmarks.baselines.gnn_scenes import uniform_body
from rsr.learned.gnn.bodies import RigidBody, RigidWorld, box_mesh, hull_mesh
from rsr.learned.gnn.rigid import matrix, normalised


def random_body(rng: np.random.Generator, name: str = "body") -> RigidBody:
    """A box, or the hull of eight points, about 6 cm across."""
    box = rng.random() < 0.5
    mesh = box_mesh(rng.uniform(0.02, 0.05, 3)) if box else hull_mesh(rng.normal(size=(8, 3)) * 0.03)
    return uniform_body(name, mesh, float(rng.uniform(0.05, 0.3)))


def random_pair(rng: np.random.Generator, apart_m: float = 0.06) -> tuple[RigidWorld, torch.Tensor, torch.Tensor]:
    """Two bodies without a floor, their places [2, 3] and their orientations [2, 4], in float64."""
    world = RigidWorld((random_body(rng), random_body(rng)), floor=False)
    return world, torch.tensor(rng.uniform(-apart_m, apart_m, (2, 3))), random_turns(rng, 2)


def random_turns(rng: np.random.Generator, count: int) -> torch.Tensor:
    return normalised(torch.tensor(rng.normal(size=(count, 4))))


def as_poses(places: torch.Tensor, orientations: torch.Tensor) -> list[tuple[np.ndarray, np.ndarray]]:
    """Place and matrix of each body, as the reference detection takes them."""
    return list(zip(places.detach().numpy(), matrix(orientations).detach().numpy(), strict=True))
