"""What a lab's operation survives and costs: fan-out on Dask, kills and signals at random moments, two loops at once.

    dask_efficiency                200 jobs of half a second on two local Dask workers: their time over the time taken,
                                   the cluster's start included in `dask_efficiency_with_start`
    same_bytes_on_every_engine     threads, processes and Dask return the same
    kills_survived_fraction        share of kills after which the loop ended with the results of an undisturbed run, a
                                   clean `dvc status`, and every file and cache entry with the hash that was noted. Of a
                                   lab brought up by `rsr-serve`, in turn the flow, the worker, the server or all at
                                   once are killed at a random moment of an iteration; the nightly run then comes again.
                                   The steps are the real ones with small budgets, see tests/small_steps.py
    faults_survived_fraction       the same of the campaigns, in each of which several kills fell
    contentions_clear_fraction     share of tries in which, of two loops begun on one workspace within two seconds, one
                                   did the work and the other found it done or was refused clearly
    contentions_undamaged_fraction share of them after which the workspace was as one loop alone leaves it
    signals_worst_s                longest time from a signal until nothing was left of the loop, or of `rsr-serve`:
                                   Ctrl-C in a terminal, SIGTERM and SIGHUP, each at so many random moments of both
    signals_clean_fraction         share of signals that were answered with one sentence and 128 + the signal
    signals_resumed_fraction       share of campaigns, interrupted again and again, with an undisturbed one's results
    soak_time_growth               CPU time of an iteration, the last tenth of 200 with toy steps over the first tenth
    soak_memory_growth             memory of loop and server, likewise; also open handles, and what Prefect and DVC keep
    orchestration_overhead         see benchmarks/orchestration.py --quick

With --quick 20 jobs, 4 kills, 2 tries, 1 moment and a soak of 20 iterations. A signal takes some 20 s for the loop and
40 s for serve, so 20 moments last about an hour; a kill takes some 30 s. `--kills 0`, `--tries 0`, `--moments 0` and
`--soak 0` leave these parts out; `--keep FOLDER` lets an interrupted run go on with its kills. Where prefect-dask is
not installed, the figures of Dask are -1.
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
from _signals import end_by_signals
from _soak import soak as soak_loop
from _two_loops import contend

_HERE = Path(__file__).resolve().parent
_SOAK_S = 3600.0


def measure(quick: bool, kills: int, tries: int, moments: int, soak: int, keep: Path | None) -> dict[str, Figure]:
    """Measure all."""
    if quick:
        kills, tries, moments, soak = min(4, kills), min(2, tries), min(1, moments), min(20, soak)
    overhead = _overhead()  # first, what is quick: an error costs the least
    with tempfile.TemporaryDirectory() as folder:
        soaked = soak_loop(Path(folder), soak, _SOAK_S) if soak else {}
    with tempfile.TemporaryDirectory() as folder:
        signalled = end_by_signals(Path(folder), moments) if moments else {}
    with tempfile.TemporaryDirectory() as folder, served(Path(folder)) as lab:
        survived = survive(Path(folder), lab, kills, keep) if kills else {}
        contended = contend(Path(folder), tries) if tries else {}
        spread = _spread(20 if quick else 200)  # last: its Dask workers stay
    return {**spread, **survived, **contended, **signalled, **soaked, "orchestration_overhead": overhead}


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
    run(measure, __doc__, kills=100, tries=20, moments=20, soak=200, keep=None)
