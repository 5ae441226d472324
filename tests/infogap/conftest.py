import os

import numpy as np
import pytest

# POT imports every tensor library it finds, which takes seconds; its linear program needs none of them.
for _backend in ("PYTORCH", "JAX", "TENSORFLOW", "CUPY"):
    os.environ.setdefault(f"POT_BACKEND_DISABLE_{_backend}", "1")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)
