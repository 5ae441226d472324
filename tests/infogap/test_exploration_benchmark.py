import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_loop_runs_with_and_without_the_reward(tmp_path):
    figures, picture = tmp_path / "figures.json", tmp_path / "picture.png"
    command = [sys.executable, "benchmarks/exploration.py", "--quick", "--json", str(figures), "--figure", str(picture)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "BENCHMARK_WORKSPACES": str(tmp_path)}
    subprocess.run(command, cwd=ROOT, env=environment, check=True, timeout=1200)
    found = json.loads(figures.read_text())
    assert found["with_kl_x_1"] == found["without_kl_x_1"]  # the first session is of the same policy
    assert found["with_information_2"] != found["without_information_2"]
    assert picture.read_bytes().startswith(b"\x89PNG")
