"""Spoilt recordings of every format: refused with a clear error or kept as far as they are whole, never a crash."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from foreign_files import SAMPLES
from fuzzing import MEMORY_BYTES

FUZZING = Path(__file__).with_name("fuzzing.py")
CHECKSUMMED = {"parquet", "npz", "hdf5_robomimic", "mcap_json", "lerobot_v3"}
"""Their samples carry checksums. In the others one digit that became another cannot be seen, however they are read."""
SAME = 1e-4


def spoil(folder: Path, count: int, seed: int) -> list[dict]:
    """Fuzz all formats in one process with a limit on its memory; returns its lines."""
    done = subprocess.run(
        [sys.executable, str(FUZZING), ",".join(SAMPLES), str(count), str(seed), str(folder)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(FUZZING.parent), os.environ["PYTHONPATH"]])},
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    last = lines[-1] if lines else "nothing"
    assert done.returncode == 0, f"exit code {done.returncode} after {last}\n{done.stderr[-3000:]}"
    assert done.stderr == ""
    return lines


def judge(lines: list[dict], count: int) -> None:
    *trials, last = lines
    assert last["peak_bytes"] < MEMORY_BYTES
    assert len(trials) == count * len(SAMPLES)
    # Some are whole enough to be kept, or nothing was tried.
    assert {trial["format"] for trial in trials if trial["outcome"] == "stored"} >= {"csv", "rosbag1", "mcap_json"}
    for trial in trials:
        where = f"{trial['format']} {trial['index']}: {trial['what']}: {trial['said']}"
        if trial["outcome"] == "refused":
            message = trial["said"][0]
            assert "got " in message, where
            assert "expected " in message, where
            assert "MemoryError" not in message, where
            continue
        silent, cut = not trial["said"], trial["what"].startswith("cut")
        if trial["format"] in CHECKSUMMED or (cut and silent):
            assert trial["far"] < SAME, where


def test_spoilt_files_never_crash_and_never_pass_for_whole(tmp_path: Path) -> None:
    judge(spoil(tmp_path, count=6, seed=2026), count=6)


@pytest.mark.slow
def test_a_hundred_spoilt_files_of_each_format(tmp_path: Path) -> None:
    judge(spoil(tmp_path, count=100, seed=0), count=100)
