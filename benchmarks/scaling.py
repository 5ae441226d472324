"""What spreading work costs, and where it stops paying: fan-outs of jobs of known length, and a model fitted to them.

A job is a sleep: it takes its time on any machine, busy or not, so that what is above it is the machinery's. Server and
Dask's workers run before the clock starts; `*_start_s` says what that took. A time is that of
`rsr_tasks.fan_out.fan_out`, from the call to the last result.

    dask_efficiency                   200 jobs of half a second on two Dask workers: their time over the time taken, in
                                      as many Prefect tasks as `fan_out` makes of them by itself
    dask_efficiency_one_job_a_task    the same with 200 Prefect tasks
    dask_efficiency_4_workers         the first on four Dask workers
    dask_efficiency_50_workers_6_s    of 50 workers, each with eight tasks of six seconds: by the model alone
    ENGINE_fixed_s                    t0: what a fan-out costs however few its jobs
    ENGINE_serial_s_a_task            s: what a task costs in the one flow and the one server, however many workers
    ENGINE_worker_s_a_task            a: what a worker loses on a task
    ENGINE_most_workers_SECONDS_s     (w + a) / s: beyond so many, workers wait for the flow, with tasks of w seconds

The model is T(n, W, w) = t0 + max(n s, n (w + a) / W) for n tasks of w seconds on W workers. Runs without work give t0
and s (with two Dask workers no less than a / 2: there s is an upper bound), runs with one worker give a. `model_error`
compares it with the three runs of 200 jobs, which it has not seen, `model_error_4_workers` with that on four workers.
With --quick fewer jobs. --figure FILE draws the model.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.request import urlopen

import numpy as np
from _common import Figure, run
from _fan_outs import JOB_S, WORKERS, efficiency, same_bytes, seconds

_PROJECT = Path(__file__).resolve().parents[1]
_HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(_PROJECT)]
os.environ["PYTHONPATH"] = os.pathsep.join([str(_PROJECT), str(_HERE)])
_PORT = 42877
_PROBE_S = 0.1
_LENGTHS_S = (0.5, 6.0, 60.0)
_MORE = 4
"""Workers of a run that the model, fitted on one and two, has to foretell."""


@dataclass(frozen=True)
class Model:
    """T(n, W, w) = t0 + max(n s, n (w + a) / W); see above."""

    fixed_s: float
    serial_s: float
    worker_s: float

    def seconds(self, tasks: int, workers: int, work_s: float) -> float:
        return self.fixed_s + max(tasks * self.serial_s, tasks * (work_s + self.worker_s) / workers)

    def most_workers(self, work_s: float) -> float:
        return (work_s + self.worker_s) / self.serial_s


def measure(quick: bool, figure: Path | None) -> dict[str, Figure]:
    """Measure all."""
    with _served() as server_s:
        figures: dict[str, Figure] = {"server_start_s": server_s, "load_average": os.getloadavg()[0]}
        models = {}
        for name in ("threads", "dask"):
            models[name], told = _fitted(name, quick)
            figures |= told
        figures |= _goal(20 if quick else 200, models["dask"])
        figures["same_bytes_on_every_engine"] = same_bytes("threads", "processes", "dask")
    if figure is not None:
        _draw(models, figure)
    return figures


def _goal(jobs: int, model: Model) -> dict[str, Figure]:
    """The fan-out that the project promises, and how well the model foretells it."""
    by_itself, one_each = seconds("dask", jobs), seconds("dask", jobs, batch=1)
    seconds("dask", _MORE, 0.0, _MORE, 1)  # starts their cluster
    on_more = seconds("dask", jobs, workers=_MORE)
    runs = [(by_itself, WORKERS, 8 * WORKERS), (one_each, WORKERS, jobs), (on_more, _MORE, 8 * _MORE)]
    errors = [abs(model.seconds(n, w, jobs * JOB_S / n) / taken_s - 1) for taken_s, w, n in runs]
    return {
        "dask_jobs": jobs,
        "dask_efficiency": efficiency(jobs, by_itself),
        "dask_efficiency_one_job_a_task": efficiency(jobs, one_each),
        "dask_efficiency_4_workers": efficiency(jobs, on_more, _MORE),
        "dask_efficiency_50_workers_6_s": 8 * 6.0 / model.seconds(8 * 50, 50, 6.0),
        "model_error": max(errors),
        "model_error_4_workers": errors[-1],
    }


def _fitted(name: str, quick: bool) -> tuple[Model, dict[str, Figure]]:
    """Fit the model to runs without work on many workers, and to runs on one worker."""
    few, many, alone = (4, 16, 6) if quick else (10, 60, 20)
    wide = 8 if name == "threads" else WORKERS
    begun = time.perf_counter()
    seconds(name, wide, 0.0, wide, 1)  # imports, and Dask's cluster
    started_s = time.perf_counter() - begun
    idle = [min(seconds(name, count, 0.0, wide, 1) for _ in range(1 if quick else 2)) for count in (few, many)]
    slope = max((idle[1] - idle[0]) / (many - few), 1e-4)
    fixed_s = max(idle[0] - few * slope, 0.0)
    seconds(name, 1, 0.0, 1, 1)
    busy_s = seconds(name, alone, _PROBE_S, 1, 1)
    worker_s = max((busy_s - fixed_s) / alone - _PROBE_S, 0.0)
    model = Model(fixed_s, slope, worker_s)
    told: dict[str, Figure] = {
        f"{name}_start_s": started_s,
        f"{name}_fixed_s": fixed_s,
        f"{name}_serial_s_a_task": slope,
        f"{name}_worker_s_a_task": worker_s,
    }
    return model, told | {f"{name}_most_workers_{length:g}_s": model.most_workers(length) for length in _LENGTHS_S}


@contextmanager
def _served() -> Iterator[float]:
    """A Prefect server of our own; yields what its start took."""
    with tempfile.TemporaryDirectory() as home:
        os.environ |= {"PREFECT_HOME": home, "PREFECT_API_URL": f"http://127.0.0.1:{_PORT}/api"}
        os.environ |= {"PREFECT_SERVER_ANALYTICS_ENABLED": "false", "PREFECT_LOGGING_LEVEL": "WARNING"}
        begun = time.perf_counter()
        command = [sys.executable, "-m", "prefect", "server", "start", "--port", str(_PORT)]
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            while not _answers(server):
                time.sleep(0.2)
            yield time.perf_counter() - begun
        finally:
            server.terminate()
            server.wait()


def _answers(server: subprocess.Popen[bytes]) -> bool:
    if server.poll() is not None:
        raise RuntimeError(f"the server ended with code {server.returncode}; is port {_PORT} taken?")
    try:
        with urlopen(f"http://127.0.0.1:{_PORT}/api/health", timeout=2):
            return True
    except OSError:
        return False


def _draw(models: dict[str, Model], path: Path) -> None:
    """Efficiency over workers, for tasks of three lengths, where there is work for a hundred tasks a worker."""
    from matplotlib.figure import Figure as Page

    page = Page(figsize=(9, 3), layout="constrained")
    workers = np.unique(np.round(np.geomspace(1, 1000, 200)).astype(int))
    for axes, (name, model) in zip(page.subplots(1, 2, sharey=True), models.items(), strict=True):
        for length_s in _LENGTHS_S:
            efficiency = [100 * length_s / model.seconds(100 * count, count, length_s) for count in workers]
            axes.semilogx(workers, np.array(efficiency) * 100, label=f"tasks of {length_s:g} s")
        axes.set(title=name, xlabel="workers", ylim=(0, 105))
        axes.grid(alpha=0.3)
    page.axes[0].set_ylabel("efficiency, %")
    page.legend(*page.axes[0].get_legend_handles_labels(), loc="outside right center")
    page.savefig(path, dpi=120)


if __name__ == "__main__":
    run(measure, __doc__, figure=None)
