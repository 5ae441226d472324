"""A loop may be killed at any moment; the next one ends as if nothing had happened."""

from __future__ import annotations

import subprocess
import sys

import pytest

_POINTS = 8


@pytest.mark.slow
def test_killed_between_any_two_changes_to_the_disk(tmp_path):
    points = [f"{point}/{_POINTS}" for point in range(1, _POINTS + 1)]
    command = [sys.executable, "-m", "toy.kills", str(tmp_path), "1", *points]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("same result") == _POINTS
