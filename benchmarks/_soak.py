"""Many iterations of the toy loop in one workspace, by one `rsr-loop`, watched from outside: what grows."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from pathlib import Path

import numpy as np
import psutil
from _common import Figure
from _served import PROJECT  # first: it lets its children find what is in tests/

_LOOK_EVERY_S = 0.1


@dataclass(frozen=True)
class _Sample:
    """Of loop and embedded server together, after an iteration."""

    cpu_s: float
    wall_s: float
    memory_bytes: int
    handles: int
    prefect_bytes: int
    state_bytes: int
    cache_bytes: int


def soak(folder: Path, iterations: int, most_s: float) -> dict[str, Figure]:
    """Go round so many times, or as often as fits in so many seconds; ratios are of the last tenth to the first.

    Time is CPU time, that of git included, which other work on the machine disturbs little.
    """
    samples = list(_samples(folder, iterations, most_s))
    table = np.array([astuple(sample) for sample in samples])
    spent, kept, count = np.diff(table[:, :2], axis=0), table[1:, 2:], len(samples) - 1
    tenth = max(1, count // 10)
    cpu, wall = spent[-tenth:].mean(0) / spent[:tenth].mean(0)
    memory, handles = kept[-tenth:, :2].mean(0) / kept[:tenth, :2].mean(0)
    prefect, state, cache = (kept[-1, 2:] - kept[0, 2:]) / 1e3 / (count - 1)
    return {
        "soak_iterations": count,
        "soak_time_growth": cpu,
        "soak_wall_growth": wall,
        "soak_cpu_s_first": spent[:tenth, 0].mean(),
        "soak_cpu_s_last": spent[-tenth:, 0].mean(),
        "soak_memory_growth": memory,
        "soak_memory_mb": kept[-1, 0] / 1e6,
        "soak_handles_growth": handles,
        "soak_prefect_kb_an_iteration": prefect,
        "soak_dvc_state_kb_an_iteration": state,
        "soak_dvc_cache_kb_an_iteration": cache,
    }


def _samples(folder: Path, iterations: int, most_s: float) -> Iterator[_Sample]:
    """One after the first iteration, from which the next are counted, and one after each other."""
    root, state = folder / "soak", folder / "soak-state"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    command = [sys.executable, "-m", "loop_of", "toy:TABLE", "--scenario", "push_cube"]
    command += ["--workspace", str(root), "--iterations", str(iterations)]
    log = (folder / "soak.log").open("w")
    loop = psutil.Popen(
        command,
        cwd=PROJECT,
        env={**environment, "DVC_SITE_CACHE_DIR": str(state)},
        stdout=log,
        stderr=subprocess.STDOUT,
    )
    began_s = time.monotonic()
    try:
        for iteration in range(1, iterations + 1):
            while not (root / f".git/refs/tags/iter/{iteration:03d}").exists():
                if loop.poll() is not None or time.monotonic() - began_s > most_s:
                    return
                time.sleep(_LOOK_EVERY_S)
            yield _sample(loop, root, state)
    finally:
        if loop.poll() is None:
            loop.send_signal(signal.SIGINT)
        loop.wait()
        log.close()


def _sample(loop: psutil.Process, root: Path, state: Path) -> _Sample:
    cpu_s, memory_bytes, handles = 0.0, 0, 0
    for process in [loop, *loop.children(recursive=True)]:
        try:
            cpu_s += sum(process.cpu_times()[:4]) if "uvicorn" not in process.cmdline() else 0.0
            memory_bytes += process.memory_info().rss
            handles += process.num_fds()
        except psutil.Error:  # a git that ended meanwhile
            continue
    sizes = map(_size, (root / ".prefect", state, root / ".dvc" / "cache"))
    return _Sample(cpu_s, time.monotonic(), memory_bytes, handles, *sizes)


def _size(folder: Path) -> int:
    return sum(_file_size(path) for path in folder.rglob("*"))


def _file_size(path: Path) -> int:
    try:
        found = path.lstat()
    except FileNotFoundError:  # a database's journal, gone since it was listed
        return 0
    return found.st_size if stat.S_ISREG(found.st_mode) else 0


if __name__ == "__main__":
    import tempfile

    from _common import run

    def _measure(quick: bool, iterations: int, seconds: int) -> dict[str, Figure]:
        with tempfile.TemporaryDirectory() as folder:
            return soak(Path(folder), 20 if quick else iterations, seconds)

    run(_measure, __doc__, iterations=200, seconds=600)
