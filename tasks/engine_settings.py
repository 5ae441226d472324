"""Who does work that can be spread (`rsr.common.spreading`), as the environment says; Prefect only where it is needed.

RSR_ENGINE   threads, processes or dask; without it, one job after another in the step's own process
RSR_WORKERS  how many jobs at once (2)
RSR_BATCH    jobs in one Prefect task; by default, some tasks a worker
RSR_CLUSTER  address of a running Dask cluster
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, get_args

from rsr.common import ConfigError, is_spread, using

EngineName = Literal["threads", "processes", "dask"]
TASKS_A_WORKER = 8
"""Tasks that each worker is given by default: enough that none idles long at the end, few enough to cost little."""


@dataclass(frozen=True)
class Engine:
    """Who does the work.

    Args:
        workers: how many jobs at once.
        batch: jobs in one Prefect task. By default as many as give every worker `TASKS_A_WORKER` tasks.
        address: of a running Dask cluster; by default one is started on this machine.
    """

    name: EngineName = "threads"
    workers: int = 2
    batch: int | None = None
    address: str | None = None


@contextmanager
def spread_as_configured(environment: Mapping[str, str] = os.environ) -> Iterator[None]:
    """Lend the library the engine that the environment names, if any."""
    engine = engine_of(environment)
    if engine is None or is_spread():
        yield
        return
    from rsr_tasks.fan_out import fan_out  # here: it takes a second to load Prefect

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
