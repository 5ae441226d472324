"""The benchmarks run and write what they promise; their figures are judged where machines are quiet."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def figures_of(name: str, folder: Path, *options: str) -> dict[str, float]:
    file = folder / "figures.json"
    command = [sys.executable, f"benchmarks/{name}.py", "--json", str(file), "--quick", *options]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(file.read_text())


@pytest.mark.slow
def test_environments(tmp_path):
    figures = figures_of("environments", tmp_path)
    assert all(isinstance(value, int | float) for value in figures.values())
    assert figures["vecenv_speedup_over_dummy"] > 1
    assert -1 < figures["infogap_overhead_of_ppo_update"] < 1
    assert figures["steps_per_second_vecenv"] > 0


@pytest.mark.slow
def test_policy(tmp_path):
    picture = tmp_path / "curves.png"
    figures = figures_of("policy", tmp_path, "--steps", "16384", "--figure", str(picture))
    assert figures["push_cube_seeds"] == figures["sac_seeds"] == figures["push_t_seeds"] == 1
    assert figures["push_cube_steps"] == figures["sac_steps"] == 16384
    assert 0 <= figures["push_cube_success_2cm"] <= figures["push_cube_success_3cm"] <= 1
    assert 0 <= figures["sac_success_2cm"] <= figures["sac_success_3cm"] <= 1
    assert 0 <= figures["push_t_success"] <= figures["push_t_success_3cm"] <= 1
    assert 0 < figures["push_cube_cpu_seconds"] < figures["sac_cpu_seconds"]
    assert figures["sac_cpu_seconds_lowest"] <= figures["sac_cpu_seconds"] <= figures["sac_cpu_seconds_highest"]
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_limits(tmp_path):
    """Paid for InfoGap alone, in 20,000 steps of each world; the benchmark's own length is 300,000."""
    figures = figures_of("limits", tmp_path)
    assert figures["violations"] == 0
    assert 0.1 < figures["max_tip_speed_m_s"] <= figures["tip_speed_limit_m_s"]
    assert figures["max_block_distance_m"] <= figures["workspace_radius_m"]
