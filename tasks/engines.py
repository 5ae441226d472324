"""Prefect's task runners by the names of our settings. A local Dask cluster is started once a process and kept."""

from __future__ import annotations

import atexit
import logging
from functools import cache
from typing import Any

from prefect.task_runners import ProcessPoolTaskRunner, TaskRunner, ThreadPoolTaskRunner

from rsr.errors import ConfigError


def runner(name: str, workers: int, address: str | None) -> TaskRunner[Any]:
    """Make the task runner.

    Args:
        workers: how many tasks at once; of a running cluster, its own number counts.

    Raises:
        ConfigError: there is no engine of this name, or what it needs is not installed.
    """
    makers = {"threads": _threads, "processes": _processes, "dask": _dask, "ray": _ray}
    if name not in makers:
        raise ConfigError(
            got=f"engine '{name}'",
            expected=f"one of {', '.join(makers)}",
            where="fan-out",
            next_step="Correct the name.",
        )
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

    cluster = LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None)
    atexit.register(_close, cluster)
    return cluster.scheduler_address


def _close(cluster: Any) -> None:
    """End a cluster together with this process, when nobody reads its farewells any more."""
    logging.disable(logging.WARNING)
    cluster.close()


def _ray(workers: int, address: str | None) -> TaskRunner[Any]:
    try:
        from prefect_ray import RayTaskRunner
    except ImportError as error:
        raise _not_installed("ray") from error
    return RayTaskRunner(address=address, init_kwargs=None if address else {"num_cpus": workers})


def _not_installed(name: str) -> ConfigError:
    return ConfigError(
        got=f"no prefect-{name} in this environment",
        expected=f"it, for the engine '{name}'",
        where="fan-out",
        next_step="pip install --constraint constraints.txt 'rsr[scale]', or choose threads or processes.",
    )
