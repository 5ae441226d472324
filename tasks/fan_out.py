"""The same work many times over, on threads, processes or a cluster: an existing engine does it, settings say which.

What is spread is a function by its "module:name" and a list of jobs, small dictionaries that carry whatever the work
depends on, seeds included. So the results, in the order of the jobs, do not depend on who did what and when. Work of
the library that can be spread (`rsr.spreading`) goes the same way, where the environment names an engine:

    RSR_ENGINE   threads, processes, dask or ray; without it, one job after another in the step's own process
    RSR_WORKERS  how many jobs at once (2)
    RSR_BATCH    jobs in one Prefect task; by default, some tasks a worker
    RSR_CLUSTER  address of a running Dask or Ray cluster
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, get_args

from prefect import flow, task
from prefect.cache_policies import NO_CACHE
from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings

from rsr.errors import ConfigError
from rsr.progress import Advance, ignore
from rsr.spreading import Job, in_turn, is_spread, using
from tasks.engines import runner

EngineName = Literal["threads", "processes", "dask", "ray"]
TASKS_A_WORKER = 8
"""Tasks that each worker is given by default: enough that none idles long at the end, few enough to cost little."""


@dataclass(frozen=True)
class Engine:
    """Who does the work.

    Args:
        workers: how many jobs at once.
        batch: jobs in one Prefect task. By default as many as give every worker `TASKS_A_WORKER` tasks.
        address: of a running Dask or Ray cluster; by default one is started on this machine.
    """

    name: EngineName = "threads"
    workers: int = 2
    batch: int | None = None
    address: str | None = None


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

    # Without heartbeats, by which a server tells dead runs from long ones: ending them takes a second each time.
    with temporary_settings({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}):
        return spread()


@contextmanager
def spread_as_configured(environment: Mapping[str, str] = os.environ) -> Iterator[None]:
    """Lend the library the engine that the environment names, if any."""
    engine = engine_of(environment)
    if engine is None or is_spread():
        yield
        return
    with using(lambda function, jobs, advance: fan_out(function, jobs, engine, advance)):
        yield


def engine_of(environment: Mapping[str, str]) -> Engine | None:
    """The engine that the environment names.

    Raises:
        ConfigError: it names none that there is, or what should be a number is none.
    """
    name = environment.get("RSR_ENGINE")
    if not name:
        return None
    if name not in get_args(EngineName):
        raise _wrong("RSR_ENGINE", name, f"one of {', '.join(get_args(EngineName))}")
    batch = _count(environment, "RSR_BATCH")
    return Engine(name, _count(environment, "RSR_WORKERS") or 2, batch, environment.get("RSR_CLUSTER") or None)  # type: ignore[arg-type]


def _batches(jobs: Sequence[Job], engine: Engine) -> list[list[Job]]:
    """Split evenly: no worker shall end with a batch less, or with a rest."""
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
    return in_turn(function, jobs, advance)


def _count(environment: Mapping[str, str], name: str) -> int | None:
    value = environment.get(name)
    if not value:
        return None
    if not value.isdecimal() or int(value) == 0:
        raise _wrong(name, value, "a whole number above zero")
    return int(value)


def _wrong(name: str, got: str, expected: str) -> ConfigError:
    return ConfigError(
        got=f"'{got}'", expected=expected, where=f"environment: {name}", next_step="Correct or unset it."
    )
