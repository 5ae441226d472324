"""A campaign of the toy loop, done once for all tests of the bookkeeping."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from toy.bare import run_bare_loop


@pytest.fixture(scope="session")
def _original(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("campaign") / "workspace"
    run_bare_loop(root, 2)
    return root


@pytest.fixture
def finished_loop(_original, tmp_path) -> Path:
    """Two iterations, done; a copy for each test."""
    return Path(shutil.copytree(_original, tmp_path / "finished"))
