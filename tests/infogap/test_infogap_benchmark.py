import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_benchmark_writes_one_flat_object(tmp_path):
    file = tmp_path / "infogap.json"
    command = [sys.executable, "benchmarks/infogap.py", "--json", str(file), "--quick"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    figures = json.loads(file.read_text())
    assert "speedup_over_emd2_n1000" in done.stdout
    assert all(isinstance(value, (int, float)) for value in figures.values())
    assert figures["max_relative_error_against_emd2"] < 1e-9
    assert figures["max_relative_error_float32_batch"] < 1e-4
    assert figures["speedup_over_emd2_n1000"] > 100
