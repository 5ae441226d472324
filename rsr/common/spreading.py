"""Independent work, done here one job after another, or by whoever was chosen to do it: threads, processes, a cluster.

What is spread is a function by its "module:name" and a list of jobs that carry whatever the work depends on, seeds
included. So the results, in the order of the jobs, do not depend on who did what and when. This library knows no
engine; whoever has one (`rsr_tasks.fan_out`) lends it with `using`.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

from rsr.common.progress import Advance, ignore

Job = Mapping[str, Any]


class Spread(Protocol):
    """Call `function(**job)` for every job; return what they returned, in the order of the jobs."""

    def __call__(self, function: str, jobs: Sequence[Job], advance: Advance) -> list[Any]: ...


def in_turn(function: str, jobs: Sequence[Job], advance: Advance) -> list[Any]:
    """Do it here, one job after another."""
    call, results = load(function), []
    for number, job in enumerate(jobs, 1):
        results.append(call(**job))
        advance(number / len(jobs), f"{number} of {len(jobs)}")
    return results


_chosen: ContextVar[Spread] = ContextVar("spread", default=in_turn)


@contextmanager
def using(chosen: Spread) -> Iterator[None]:
    """Have the work of the block done this way."""
    token = _chosen.set(chosen)
    try:
        yield
    finally:
        _chosen.reset(token)


def is_spread() -> bool:
    """Whether somebody else does the work: then a job should not take all of this machine's cores."""
    return _chosen.get() is not in_turn


def spread(function: str, jobs: Sequence[Job], advance: Advance = ignore) -> list[Any]:
    """See `Spread`; done as chosen."""
    return _chosen.get()(function, jobs, advance)


def load(name: str) -> Any:
    """The function, or whatever else it may be, of this "module:name"."""
    module, attribute = name.split(":")
    return getattr(importlib.import_module(module), attribute)
