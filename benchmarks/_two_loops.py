"""Two loops begun on one workspace at about the same moment: one does the work, the other waits or is refused."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

from _common import Figure
from _served import PROJECT
from toy import TABLE_NAME
from toy.bare import find_faults, fingerprint, run_bare_loop


def contend(folder: Path, tries: int) -> dict[str, Figure]:
    """Begin two loops of toy steps so many times; returns how it went."""
    reference = folder / "alone"
    run_bare_loop(reference, 1)
    expected, chance = fingerprint(reference), random.Random(0)
    ends = [_one_try(folder / f"contended-{number}", chance.uniform(0.0, 2.0)) for number in range(tries)]
    return {
        "contentions": tries,
        "contentions_clear_fraction": sum(clear for _, clear in ends) / tries,
        "contentions_undamaged_fraction": sum(_undamaged(root, expected) for root, _ in ends) / tries,
    }


def _one_try(root: Path, apart_s: float) -> tuple[Path, bool]:
    """Returns the workspace, and whether one loop or both ended well, and the other was told clearly why not."""
    first = _begin(root)
    time.sleep(apart_s)
    second = _begin(root)
    ends = [(loop.communicate()[1], loop.returncode) for loop in (first, second)]
    done = [said for said, code in ends if code == 0]
    refused = [said for said, code in ends if code == 1]
    clear = all("a loop is running (process" in said and "Traceback" not in said for said in refused)
    return root, bool(done) and len(done) + len(refused) == len(ends) and clear


def _begin(root: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "loop_of", TABLE_NAME, "--workspace", str(root), "--iterations", "1"]
    return subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def _undamaged(root: Path, expected: dict[str, str]) -> bool:
    return find_faults(root, 1) == [] and fingerprint(root) == expected
