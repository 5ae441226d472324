"""What a lab's operation survives and costs: fan-out on Dask, processes killed at random, two loops at once.

    dask_efficiency                200 jobs of half a second on two local Dask workers: their time over the time taken,
                                   the cluster's start included in `dask_efficiency_with_start`
    same_bytes_on_every_engine     threads, processes and Dask return the same
    faults_survived_fraction       share of kills after which the loop ended with the results of an undisturbed run, a
                                   clean `dvc status`, and every file and cache entry with the hash that was noted. Of a
                                   lab brought up by `flows.serve`, in turn the flow, the worker, the server or all at
                                   once are killed at a random moment of an iteration; the nightly run then comes again.
                                   The steps are the real ones with small budgets, see tests/small_steps.py
    contentions_clear_fraction     share of tries in which, of two loops begun on one workspace within two seconds, one
                                   did the work and the other found it done or was refused clearly
    contentions_undamaged_fraction share of them after which the workspace was as one loop alone leaves it
    orchestration_overhead         see benchmarks/orchestration.py --quick

With --quick 20 jobs, 4 kills and 2 tries. Where prefect-dask is not installed, the figures of Dask are -1.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from _common import Figure, run
from _fan_outs import WORKERS, efficiency, same_bytes, seconds
from _faults import survive
from _served import served
from _two_loops import contend

_HERE = Path(__file__).resolve().parent


def measure(quick: bool, kills: int, tries: int) -> dict[str, Figure]:
    """Measure all."""
    with tempfile.TemporaryDirectory() as folder, served(Path(folder)) as lab:
        survived = survive(Path(folder), lab, min(4, kills) if quick else kills)
        contended = contend(Path(folder), min(2, tries) if quick else tries)
        spread = _spread(20 if quick else 200)  # last: its Dask workers stay
    return {**spread, **survived, **contended, "orchestration_overhead": _overhead()}


def _spread(jobs: int) -> dict[str, Figure]:
    if importlib.util.find_spec("prefect_dask") is None:
        same = same_bytes("threads", "processes")
        return {"dask_efficiency": -1.0, "dask_efficiency_with_start": -1.0, "same_bytes_on_every_engine": same}
    start_s = seconds("dask", WORKERS, job_s=0.0)  # the cluster's, and the workers import Prefect
    taken_s = seconds("dask", jobs)
    return {
        "dask_jobs": jobs,
        "dask_efficiency": efficiency(jobs, taken_s),
        "dask_efficiency_with_start": efficiency(jobs, start_s + taken_s),
        "same_bytes_on_every_engine": same_bytes("threads", "processes", "dask"),
    }


def _overhead() -> float:
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "figures.json"
        environment = {key: value for key, value in os.environ.items() if not key.startswith("PREFECT_")}
        command = [sys.executable, str(_HERE / "orchestration.py"), "--quick", "--json", str(target)]
        subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
        return float(json.loads(target.read_text())["orchestration_overhead"])


if __name__ == "__main__":
    run(measure, __doc__, kills=50, tries=20)
