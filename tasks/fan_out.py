"""The same work many times over, on threads, processes or a cluster: an existing engine does it, settings say which.

What is spread is a function by its "module:name" and a list of jobs, small dictionaries that carry whatever the work
depends on, seeds included. So the results, in the order of the jobs, do not depend on who did what and when.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from prefect import flow, task
from prefect.cache_policies import NO_CACHE
from prefect.task_runners import ProcessPoolTaskRunner, TaskRunner, ThreadPoolTaskRunner

from rsr.errors import ConfigError

Job = Mapping[str, Any]
EngineName = Literal["threads", "processes", "dask", "ray"]


@dataclass(frozen=True)
class Engine:
    """Who does the work.

    Args:
        workers: how many jobs at once.
        batch: jobs in one Prefect task. A task costs some hundredths of a second on threads and some tenths on Dask:
            where jobs are short, give it several.
        address: of a running Dask or Ray cluster; by default one is started on this machine.
    """

    name: EngineName = "threads"
    workers: int = 2
    batch: int = 1
    address: str | None = None


def fan_out(function: str, jobs: Sequence[Job], engine: Engine) -> list[Any]:
    """Call `function(**job)` for every job; returns what they returned, in the order of the jobs.

    Raises:
        ConfigError: there is no such engine, or what it needs is not installed.
    """
    batches = [list(jobs[first : first + engine.batch]) for first in range(0, len(jobs), engine.batch)]
    spread = _spread.with_options(task_runner=_runner(engine))
    return [result for results in spread(function, batches) for result in results]


@flow(name="fan-out", persist_result=False)
def _spread(function: str, batches: list[list[Job]]) -> list[list[Any]]:
    return [future.result() for future in [_batch.submit(function, batch) for batch in batches]]


@task(name="batch", cache_policy=NO_CACHE, persist_result=False)
def _batch(function: str, batch: list[Job]) -> list[Any]:
    module, name = function.split(":")
    call = getattr(importlib.import_module(module), name)
    return [call(**job) for job in batch]


def _runner(engine: Engine) -> TaskRunner[Any]:
    makers = {"threads": _threads, "processes": _processes, "dask": _dask, "ray": _ray}
    if engine.name not in makers:
        raise ConfigError(
            got=f"engine '{engine.name}'",
            expected=f"one of {', '.join(makers)}",
            where="fan-out",
            next_step="Correct the name.",
        )
    return makers[engine.name](engine)


def _threads(engine: Engine) -> TaskRunner[Any]:
    return ThreadPoolTaskRunner(max_workers=engine.workers)


def _processes(engine: Engine) -> TaskRunner[Any]:
    return ProcessPoolTaskRunner(max_workers=engine.workers)


def _dask(engine: Engine) -> TaskRunner[Any]:
    try:
        from prefect_dask import DaskTaskRunner
    except ImportError as error:
        raise _not_installed("dask") from error
    if engine.address:
        return DaskTaskRunner(address=engine.address)
    local = {"n_workers": engine.workers, "threads_per_worker": 1, "dashboard_address": None}
    return DaskTaskRunner(cluster_kwargs=local)


def _ray(engine: Engine) -> TaskRunner[Any]:
    try:
        from prefect_ray import RayTaskRunner
    except ImportError as error:
        raise _not_installed("ray") from error
    return RayTaskRunner(address=engine.address, init_kwargs=None if engine.address else {"num_cpus": engine.workers})


def _not_installed(name: str) -> ConfigError:
    return ConfigError(
        got=f"no prefect-{name} in this environment",
        expected=f"it, for the engine '{name}'",
        where="fan-out",
        next_step="pip install --constraint constraints.txt 'rsr[scale]', or choose threads or processes.",
    )
