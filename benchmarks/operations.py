"""What a lab's operation survives and costs: fan-out on Dask, processes killed at random, two loops at once.

    dask_efficiency                200 jobs of half a second on two local Dask workers: their time over the time taken,
                                   the cluster's start included in `dask_efficiency_with_start`
    same_bytes_on_every_engine     threads, processes and Dask return the same
    faults_survived_fraction       share of kills after which the loop ended with the results of an undisturbed run, a
                                   clean `dvc status`, and every file and cache entry with the hash that was noted. Of a
                                   lab brought up by `flows.serve`, in turn the flow, the worker, the server or all at
                                   once are killed at a random moment of an iteration; the nightly run then comes again.
                                   The steps are the real ones with small budgets, see _small_steps.py
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
import time
from pathlib import Path

from _common import Figure, run
from _faults import survive
from _served import served
from _two_loops import contend

_HERE = Path(__file__).resolve().parent
_JOB_S = 0.5
_WORKERS = 2


def measure(quick: bool, kills: int, tries: int) -> dict[str, Figure]:
    """Measure all."""
    with tempfile.TemporaryDirectory() as folder, served(Path(folder)) as lab:
        spread = _spread(20 if quick else 200)
        survived = survive(Path(folder), lab, min(4, kills) if quick else kills)
        contended = contend(Path(folder), min(2, tries) if quick else tries)
    return {**spread, **survived, **contended, "orchestration_overhead": _overhead()}


def wait(number: int) -> int:
    """A job of known length."""
    time.sleep(_JOB_S)
    return number


def _spread(jobs: int) -> dict[str, Figure]:
    from tasks.engine_settings import Engine
    from tasks.fan_out import fan_out

    work = [{"number": number} for number in range(jobs)]
    names = ["threads", "processes"] + (["dask"] if importlib.util.find_spec("prefect_dask") else [])
    short = {name: fan_out("operations:wait", work[:6], Engine(name, _WORKERS)) for name in names}  # type: ignore
    figures: dict[str, Figure] = {"same_bytes_on_every_engine": len({json.dumps(each) for each in short.values()}) == 1}
    if "dask" not in names:
        return {**figures, "dask_efficiency": -1.0, "dask_efficiency_with_start": -1.0}
    from distributed import LocalCluster

    ideal_s = jobs * _JOB_S / _WORKERS
    started_s = time.perf_counter()
    with LocalCluster(n_workers=_WORKERS, threads_per_worker=1, dashboard_address=None) as cluster:
        engine = Engine("dask", _WORKERS, address=cluster.scheduler_address)
        fan_out("operations:wait", work[:_WORKERS], engine)  # the workers import Prefect
        warm_s = time.perf_counter()
        fan_out("operations:wait", work, engine)
        ended_s = time.perf_counter()
    efficiency, whole = ideal_s / (ended_s - warm_s), ideal_s / (ended_s - started_s)
    return {**figures, "dask_jobs": jobs, "dask_efficiency": efficiency, "dask_efficiency_with_start": whole}


def _overhead() -> float:
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "figures.json"
        environment = {key: value for key, value in os.environ.items() if not key.startswith("PREFECT_")}
        command = [sys.executable, str(_HERE / "orchestration.py"), "--quick", "--json", str(target)]
        subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
        return float(json.loads(target.read_text())["orchestration_overhead"])


if __name__ == "__main__":
    run(measure, __doc__, kills=50, tries=20)
