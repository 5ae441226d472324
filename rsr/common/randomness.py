"""Randomness is an argument: every stage draws from (run seed, iteration, stage) and from nothing else."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np


def derive_seed(seed: int, *path: object) -> int:
    """Derive a 31-bit seed for one purpose, e.g. `derive_seed(config.seed, iteration, "retrain")`."""
    text = "/".join(str(part) for part in (seed, *path))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") >> 1


def generator(seed: int, *path: object) -> np.random.Generator:
    """Make the random generator of one purpose."""
    return np.random.default_rng(derive_seed(seed, *path))


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch work in one thread: sums of floats depend on how many share them, so equal bytes need one."""
    import torch  # most of what draws random numbers does without

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
