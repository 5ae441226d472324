"""What a lab's operation survives and costs: fan-out on Dask, and a loop whose processes are killed at random.

    dask_efficiency             200 jobs of half a second on two local Dask workers: their time over the time taken,
                                the cluster's start included in `dask_efficiency_with_start`
    same_bytes_on_every_engine  threads, processes and Dask return the same
    faults_survived_fraction    shares of kills after which the loop ended with the bytes of an undisturbed run, a clean
                                `dvc status` and a cache in which every hash is right. Flow or server is killed at a
                                random moment of an iteration of toy steps; the loop is then started again
    orchestration_overhead      see benchmarks/orchestration.py --quick

With --quick 20 jobs and 4 kills. Where prefect-dask is not installed, the figures of Dask are -1.
"""

from __future__ import annotations

import importlib.util
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.request import urlopen

from _common import Figure, run

_PROJECT = Path(__file__).resolve().parents[1]
_HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(_PROJECT), str(_PROJECT / "tests")]
os.environ["PYTHONPATH"] = os.pathsep.join([str(_PROJECT), str(_PROJECT / "tests"), str(_HERE)])
_JOB_S = 0.5
_WORKERS = 2
_BATCH = 5
_PORT = 42871


def measure(quick: bool, kills: int) -> dict[str, Figure]:
    """Measure all."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["PREFECT_HOME"] = str(Path(folder) / "prefect")
        with _Server() as server:
            spread = _spread(20 if quick else 200)
            survived = _survived(Path(folder), server, 4 if quick else kills)
    return {**spread, **survived, "orchestration_overhead": _overhead()}


def wait(number: int) -> int:
    """A job of known length."""
    time.sleep(_JOB_S)
    return number


def _spread(jobs: int) -> dict[str, Figure]:
    from tasks.fan_out import Engine, fan_out

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
        engine = Engine("dask", _WORKERS, _BATCH, address=cluster.scheduler_address)
        fan_out("operations:wait", work[:_WORKERS], engine)  # the workers import Prefect
        warm_s = time.perf_counter()
        fan_out("operations:wait", work, engine)
        ended_s = time.perf_counter()
    efficiency, whole = ideal_s / (ended_s - warm_s), ideal_s / (ended_s - started_s)
    return {**figures, "dask_jobs": jobs, "dask_efficiency": efficiency, "dask_efficiency_with_start": whole}


def _survived(folder: Path, server: _Server, kills: int) -> dict[str, Figure]:
    """Kill flow or server at random moments, each time in a new campaign; then let the loop finish."""
    from toy.bare import find_faults, fingerprint, run_bare_loop

    reference = folder / "reference"
    run_bare_loop(reference, 1)
    expected = fingerprint(reference)
    began_s = time.perf_counter()
    _loop(folder / "undisturbed").wait()
    usual_s = time.perf_counter() - began_s
    chance = random.Random(0)
    outcomes = []
    for number in range(kills):
        root = folder / f"campaign-{number}"
        loop = _loop(root)
        time.sleep(chance.uniform(0.3, 1.0) * usual_s)
        (loop.kill if chance.random() < 0.5 else server.kill)()
        loop.wait()
        server.ensure()
        again = _loop(root).wait()
        outcomes.append(again == 0 and find_faults(root, 1) == [] and fingerprint(root) == expected)
    return {"faults": kills, "faults_survived_fraction": sum(outcomes) / len(outcomes)}


def _loop(root: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "toy", "loop", "--workspace", str(root), "--iterations", "1"]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


class _Server:
    """A Prefect server that can be killed and comes back."""

    def __enter__(self) -> _Server:
        os.environ["PREFECT_API_URL"] = f"http://127.0.0.1:{_PORT}/api"
        os.environ["PREFECT_SERVER_ANALYTICS_ENABLED"] = "false"
        self._start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def ensure(self) -> None:
        """Have it run, as a supervisor would."""
        if self._process.poll() is not None:
            self._start()

    def _start(self) -> None:
        command = [sys.executable, "-m", "prefect", "server", "start", "--port", str(_PORT)]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while True:
            try:
                with urlopen(f"http://127.0.0.1:{_PORT}/api/health", timeout=2):
                    return
            except OSError:
                time.sleep(0.3)


def _overhead() -> float:
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "figures.json"
        environment = {key: value for key, value in os.environ.items() if not key.startswith("PREFECT_")}
        command = [sys.executable, str(_HERE / "orchestration.py"), "--quick", "--json", str(target)]
        subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
        return float(json.loads(target.read_text())["orchestration_overhead"])


if __name__ == "__main__":
    run(measure, __doc__, kills=50)
