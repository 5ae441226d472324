from __future__ import annotations

from pathlib import Path

import pytest
from sample_workspace import make_workspace

from rsr.workspace import Workspace


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Two finished iterations; do not write to it."""
    return make_workspace(tmp_path_factory.mktemp("finished"))


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """One finished iteration, to be damaged."""
    return make_workspace(tmp_path, iterations=1)
