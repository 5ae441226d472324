"""The same work many times over, on threads, processes or a cluster: an existing engine does it, settings say which.

What is spread is a function by its "module:name" and a list of jobs, small dictionaries that carry whatever the work
depends on, seeds included. So the results, in the order of the jobs, do not depend on who did what and when.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from prefect import flow, task
from prefect.cache_policies import NO_CACHE
from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings

from rsr.progress import Advance, ignore
from rsr.spreading import Job, in_turn, using
from tasks.engine_settings import TASKS_A_WORKER, Engine
from tasks.engines import runner


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
    """As `in_turn`, yet not it: so `is_spread` tells a job that others run beside it."""
    return in_turn(function, jobs, advance)
