"""The same work many times over, on threads, processes or a cluster: an existing engine does it, settings say which.

What is spread is a function by its "module:name" and a list of jobs, small dictionaries that carry whatever the work
depends on, seeds included. So the results, in the order of the jobs, do not depend on who did what and when.
"""

from __future__ import annotations

import atexit
import logging
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import Any

from prefect import flow, task
from prefect.cache_policies import NO_CACHE
from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings
from prefect.task_runners import ProcessPoolTaskRunner, TaskRunner, ThreadPoolTaskRunner

from rsr.common import Advance, ConfigError, Job, check_choice, ignore, in_turn, using
from rsr_tasks.engine_settings import TASKS_A_WORKER, Engine


def fan_out(function: str, jobs: Sequence[Job], engine: Engine, advance: Advance = ignore) -> list[Any]:
    """Call `function(**job)` for every job; returns what they returned, in the order of the jobs.

    Raises:
        ConfigError: there is no such engine, or what it needs is not installed.
    """
    batches = _batches(jobs, engine)

    # Without parameters: a server keeps those, and shows them, whatever a job carries.
    @flow(name="fan-out", task_runner=runner(engine.name, engine.workers, engine.address), persist_result=False)
    def spread() -> list[Any]:
        results: list[Any] = []
        for future in [_batch.submit(function, _Sealed(batch)) for batch in batches]:
            results += future.result()
            advance(len(results) / len(jobs), f"{len(results)} of {len(jobs)}")
        return results

    # Without heartbeats, by which a server distinguishes dead runs from long ones: ending them takes a second.
    with temporary_settings({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}):
        return spread()


def _batches(jobs: Sequence[Job], engine: Engine) -> list[list[Job]]:
    """Split evenly: no worker gets a batch less, or a rest."""
    wanted = engine.workers * TASKS_A_WORKER if engine.batch is None else -(-len(jobs) // engine.batch)
    count = min(len(jobs), wanted)
    edges = [round(part * len(jobs) / count) for part in range(count + 1)] if count else []
    return [list(jobs[first:last]) for first, last in pairwise(edges)]


@task(name="batch", cache_policy=NO_CACHE, persist_result=False)
def _batch(function: str, batch: _Sealed) -> list[Any]:
    with using(_within):  # what a job does is not spread again
        return in_turn(function, batch.jobs, ignore)


class _Sealed:
    """Jobs on their way: Prefect and Dask look for futures in every list, dictionary and dataclass that they carry."""

    def __init__(self, jobs: list[Job]) -> None:
        self.jobs = jobs


def _within(function: str, jobs: Sequence[Job], advance: Advance) -> list[Any]:
    """As `in_turn`, yet not it: so `is_spread` is true in a job that others run beside."""
    return in_turn(function, jobs, advance)


# Prefect's task runners by the names of our settings. A local Dask cluster is started once a process and kept.


def runner(name: str, workers: int, address: str | None) -> TaskRunner[Any]:
    """Make the task runner.

    Args:
        workers: how many tasks at once; of a running cluster, its own number counts.

    Raises:
        ConfigError: there is no engine of this name, or what it needs is not installed.
    """
    makers = {"threads": _threads, "processes": _processes, "dask": _dask}
    check_choice(name, makers, got=f"engine '{name}'", where="fan-out", next_step="Correct the name.")
    return makers[name](workers, address)


def _threads(workers: int, address: str | None) -> TaskRunner[Any]:
    return ThreadPoolTaskRunner(max_workers=workers)


def _processes(workers: int, address: str | None) -> TaskRunner[Any]:
    return ProcessPoolTaskRunner(max_workers=workers)


def _dask(workers: int, address: str | None) -> TaskRunner[Any]:
    try:
        from prefect_dask import DaskTaskRunner
    except ImportError as error:
        raise _not_installed("dask") from error
    return DaskTaskRunner(address=address or local_dask(workers))


@cache
def local_dask(workers: int) -> str:
    """Address of a Dask cluster on this machine, which ends with this process."""
    from distributed import LocalCluster

    # Its HTTP server takes any free port of this machine alone: a second cluster would find the usual one taken.
    cluster = LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address="127.0.0.1:0")
    atexit.register(_close, cluster)
    return cluster.scheduler_address


def _close(cluster: Any) -> None:
    """End a cluster together with this process, when nobody reads its farewells any more."""
    logging.disable(logging.WARNING)
    cluster.close()


def _not_installed(name: str) -> ConfigError:
    return ConfigError(
        got=f"no prefect-{name} in this environment",
        expected=f"it, for the engine '{name}'",
        where="fan-out",
        next_step="pip install --constraint constraints.txt 'rsr[scale]', or choose threads or processes.",
    )
