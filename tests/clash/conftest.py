"""A small surrogate of the square block, trained once: 0.9 of simulated strikes within 10 %, in a few seconds."""

from pathlib import Path

import pytest

from rsr.learned.clash import Surrogate, distil, generate_pairs, load_pairs
from rsr.scenarios.built_in.strike import load_shape

PAIRS, STEPS = 4000, 700


@pytest.fixture(scope="session")
def square():
    return load_shape("square")


@pytest.fixture(scope="session")
def strikes_folder(square, tmp_path_factory) -> Path:
    return generate_pairs(square, tmp_path_factory.mktemp("clash") / "strikes", PAIRS, seed=3)


@pytest.fixture(scope="session")
def distilled(square, strikes_folder):
    return distil(square, load_pairs(strikes_folder), STEPS, seed=1)


@pytest.fixture(scope="session")
def surrogate(distilled) -> Surrogate:
    return distilled.surrogate
