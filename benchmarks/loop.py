"""What three iterations of the loop achieve on several stand-ins for reality.

    kl_x_fall_least, kl_y_fall_least    smallest ratio of the KL per axis in the first iteration to the last one's
    gap_fall_least                      smallest ratio of the first held-out gap before tuning to the last one after it
    success_first_most                  highest success on a stand-in of the policy trained in the nominal simulator
    success_last_least                  lowest success on a stand-in of the policy deployed in the last iteration
    success_difference_most             largest difference of success in simulation and on the stand-in, at the end

and the same figures of each stand-in, by its seed. With --quick one stand-in and one iteration. A workspace that is
finished is not run again: BENCHMARK_WORKSPACES names a folder to keep them in.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from _common import Figure, run

from rsr.reports import read_rows
from rsr.workspace import Workspace

_PROJECT = Path(__file__).resolve().parents[1]
_ITERATIONS = 3


def measure(quick: bool, seeds: int) -> dict[str, Figure]:
    """Close the loop on stand-ins 1, 2, ... and compare first and last iteration."""
    iterations, chosen = (1, [1]) if quick else (_ITERATIONS, list(range(1, seeds + 1)))
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(os.environ.get("BENCHMARK_WORKSPACES", temporary))
        each = {seed: _figures(_loop(folder / f"stand-in-{seed}", seed, iterations)) for seed in chosen}
    worst: dict[str, Figure] = {
        f"{name}_least": min(float(figures[name]) for figures in each.values())
        for name in ("kl_x_fall", "kl_y_fall", "gap_fall", "success_last")
    }
    worst["success_first_most"] = max(float(figures["success_first"]) for figures in each.values())
    worst["success_difference_most"] = max(abs(float(figures["success_difference"])) for figures in each.values())
    return worst | {
        f"stand_in_{seed}_{name}": value for seed, figures in each.items() for name, value in figures.items()
    }


def _loop(root: Path, seed: int, iterations: int) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "rsr_flows.rsr_loop", "--workspace", str(root), "--iterations", str(iterations)]
    subprocess.run([*command, "--scenario", "push_cube", "--stand-in-seed", str(seed)], cwd=_PROJECT, check=True)
    return read_rows(Workspace(root))


def _figures(rows: list[dict[str, Any]]) -> dict[str, Figure]:
    first, last = rows[0], rows[-1]
    return {
        "kl_x_fall": first["kl_x"] / last["kl_x"],
        "kl_y_fall": first["kl_y"] / last["kl_y"],
        "gap_fall": first["gap_before"] / last["gap_after"],
        "success_first": first["success_reality"],
        "success_last": last["success_reality"],
        "success_difference": last["success_sim"] - last["success_reality"],
    }


if __name__ == "__main__":
    run(measure, __doc__, seeds=3)
