"""Randomness is an argument: every stage draws from (run seed, iteration, stage) and from nothing else."""

from __future__ import annotations

import hashlib

import numpy as np


def derive_seed(seed: int, *path: object) -> int:
    """Derive a 31-bit seed for one purpose, e.g. `derive_seed(config.seed, iteration, "retrain")`."""
    text = "/".join(str(part) for part in (seed, *path))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") >> 1


def generator(seed: int, *path: object) -> np.random.Generator:
    """Make the random generator of one purpose."""
    return np.random.default_rng(derive_seed(seed, *path))
