"""Whether three iterations of the loop close the gap for every built-in task, on stand-ins for reality.

For each NAME of push_cube, push_t, reach, swing_up and quadrotor, the worst of its stand-ins:

    NAME_gap_ratio           held-out gap before the first tuning over the one after the last; of two recordings, and
                             the last one's policy touches more, so there is more to miss
    NAME_gap_ratio_same      gap of the nominal simulator over the tuned one's, both on the last held-out episodes
    NAME_success_first       success on the stand-in of the policy that was trained in the nominal simulator
    NAME_success_last        success on the stand-in of the policy deployed in the last iteration
    NAME_success_sim_last    its success in the simulator that it was trained in
    NAME_minutes             wall time of the campaign
    demo_loop_seconds        wall time of `make demo`: push_cube on stand-in 1
    environment_speed_ratio  environment steps a second of 64 copies of push_cube in `TaskVecEnv` over those of as many
                             `TaskEnv` in SB3's DummyVecEnv, in turn in one process; see `environments.py`

Wall times are those of the machine as it is: they say something where nothing else runs on it.

and the same figures of each stand-in, by its seed. With --quick one stand-in and one iteration. A campaign that is
finished is not run again, where --workspaces names a folder to keep them in.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from _common import Figure, run
from environments import stepping_seconds

from rsr.common import read_json, write_json
from rsr.reports import read_rows
from rsr.workspace import Workspace

_TASKS = ("push_cube", "push_t", "reach", "swing_up", "quadrotor")
_ITERATIONS = 3
_SMALLEST = ("gap_ratio", "gap_ratio_same", "success_last", "success_sim_last")
"""Figures whose worst is their smallest; of the others it is the largest."""


def measure(quick: bool, seeds: int, tasks: str, workspaces: Path | None) -> dict[str, Figure]:
    """Close the loop on stand-ins 1, 2, ... of each task."""
    iterations, chosen = (1, [1]) if quick else (_ITERATIONS, list(range(1, seeds + 1)))
    found: dict[str, Figure] = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = (workspaces or Path(temporary)).resolve()
        for name in tasks.split(","):
            each = {seed: _campaign(folder / f"{name}-{seed}", name, seed, iterations) for seed in chosen}
            for figure in each[chosen[0]]:
                worst = min if figure in _SMALLEST else max
                found[f"{name}_{figure}"] = worst(figures[figure] for figures in each.values())
            for seed, figures in each.items():
                found |= {f"{name}_{seed}_{figure}": value for figure, value in figures.items()}
            if name == "push_cube":
                found["demo_loop_seconds"] = 60.0 * each[1]["minutes"]
    dummy_s, batched_s = stepping_seconds(steps=10 if quick else 50, rounds=3 if quick else 10)
    return found | {"environment_speed_ratio": dummy_s / batched_s}


def _campaign(root: Path, name: str, seed: int, iterations: int) -> dict[str, float]:
    """Figures of one campaign; how long it took is kept beside it."""
    clock = root.with_suffix(".json")
    if not clock.exists():
        began_s = time.monotonic()
        command = [sys.executable, "-m", "rsr_flows.rsr_loop", "--workspace", str(root), "--scenario", name]
        subprocess.run([*command, "--iterations", str(iterations), "--stand-in-seed", str(seed)], check=True)
        write_json(clock, {"minutes": (time.monotonic() - began_s) / 60.0})
    rows = read_rows(Workspace(root))
    first, last = rows[0], rows[-1]
    return {
        "gap_ratio": first["gap_before"] / last["gap_after"],
        "gap_ratio_same": last["gap_nominal"] / last["gap_after"],
        "success_first": first["success_reality"],
        "success_last": last["success_reality"],
        "success_sim_last": last["success_sim"],
        "minutes": read_json(clock)["minutes"],
    }


if __name__ == "__main__":
    run(measure, __doc__, seeds=3, tasks=",".join(_TASKS), workspaces=None)
