"""Policies that nobody trained, small enough to write down."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from rsr.policies import Normaliser, Policy
from rsr.scenarios import load_scenario, task_of


def random_policy(
    scenario: str = "push_cube", activation: str = "tanh", squashed: bool = False, seed: int = 0
) -> Policy:
    """Two hidden layers of random weights: SAC's actor has relu and a squashed output, PPO's tanh and a clip."""
    rng = np.random.default_rng(seed)
    sizes = (task_of(load_scenario(scenario)).observation_size, 64, 64, 2)
    layers = tuple(
        (rng.normal(size=(out, into)).astype(np.float32) / np.sqrt(into), rng.normal(size=out).astype(np.float32))
        for into, out in pairwise(sizes)
    )
    normaliser = Normaliser(rng.normal(0, 0.1, sizes[0]), rng.uniform(0.1, 1.0, sizes[0]), 5.0)
    return Policy(task_of(load_scenario(scenario)), normaliser, layers, {}, activation, squashed)


def pushing_policy() -> Policy:
    """One linear layer that drives the fingertip through a point beside the cube, so that it pushes."""
    task = task_of(load_scenario("push_cube"))
    weight = np.zeros((2, task.observation_size), np.float32)
    weight[[0, 1], task.columns("fingertip on the way")] = -10.0
    bias = np.array([0.0, 0.1], np.float32)
    normaliser = Normaliser(np.zeros(task.observation_size), np.ones(task.observation_size), 100.0)
    return Policy(task, normaliser, ((weight, bias),))
