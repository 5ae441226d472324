"""The benchmarks run and write what they promise; their figures are judged where machines are quiet."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def figures_of(name: str, folder: Path, *options: str) -> dict[str, float]:
    file = folder / "figures.json"
    command = [sys.executable, f"benchmarks/{name}.py", "--json", str(file), "--quick", *options]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(file.read_text())


def test_environments(tmp_path):
    figures = figures_of("environments", tmp_path)
    assert all(isinstance(value, int | float) for value in figures.values())
    assert figures["vecenv_speedup_over_dummy"] > 1
    assert -1 < figures["infogap_overhead_of_ppo_update"] < 1
    assert figures["steps_per_second_vecenv"] > 0


def test_policy(tmp_path):
    figures = figures_of("policy", tmp_path, "--steps", "8192")
    assert figures["train_steps"] == 8192
    assert figures["seeds"] == 1
    assert 0 <= figures["push_cube_success_2cm"] <= figures["push_cube_success_3cm"] <= 1
    assert figures["push_cube_cpu_seconds"] > 0
