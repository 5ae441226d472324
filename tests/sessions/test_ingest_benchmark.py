"""The benchmark of ingesting runs, and the bag it makes comes back as it was written."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_benchmark_writes_one_flat_object(tmp_path):
    file = tmp_path / "ingest.json"
    command = [sys.executable, "benchmarks/ingest.py", "--json", str(file), "--quick"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    figures = json.loads(file.read_text())
    assert all(isinstance(value, (int, float)) for value in figures.values())
    assert figures["gigabytes"] > 0.05
    assert figures["largest_error_rad"] < 1e-9
    assert figures["peak_memory_mb"] < 1000
    assert figures["speed_ratio_over_bare_reader"] > 0
