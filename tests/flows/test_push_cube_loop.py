"""The real steps, smaller, killed with SIGKILL in the middle of each in turn."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.slow
def test_killed_in_every_real_step_it_ends_with_the_same_results(tmp_path):
    command = [sys.executable, "-m", "tests.push_kills", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    steps = ("start", "collect", "tune", "infogap", "retrain", "evaluate", "report")
    assert [line for line in done.stdout.splitlines() if line.endswith("killed")] == [f"{s}: killed" for s in steps]
