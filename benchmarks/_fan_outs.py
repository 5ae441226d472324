"""Fan-outs of jobs of known length: each is a sleep, so what is above it is the machinery's, on a busy machine too."""

from __future__ import annotations

import json
import time

from rsr.common import generator

JOB_S = 0.5
WORKERS = 2


def wait(seconds: float, number: int = 0) -> int:
    """A job of known length."""
    time.sleep(seconds)
    return number


def draw(seed: int, count: int) -> list[float]:
    """A job with randomness of its own."""
    return generator(seed, "scaling").normal(size=count).tolist()


def seconds(name: str, jobs: int, job_s: float = JOB_S, workers: int = WORKERS, batch: int | None = None) -> float:
    """From the call of `rsr_tasks.fan_out.fan_out` on an engine to the last result.

    Args:
        batch: jobs in one Prefect task; by default what `fan_out` chooses.
    """
    from rsr_tasks.engine_settings import Engine
    from rsr_tasks.fan_out import fan_out

    work = [{"seconds": job_s, "number": number} for number in range(jobs)]
    begun = time.perf_counter()
    found = fan_out("_fan_outs:wait", work, Engine(name, workers, batch))  # type: ignore[arg-type]
    taken_s = time.perf_counter() - begun
    if found != list(range(jobs)):
        raise AssertionError(f"{name} returned something else")
    return taken_s


def efficiency(jobs: int, taken_s: float, workers: int = WORKERS) -> float:
    """The time that the jobs need on the workers, if nothing else takes any, over the time taken."""
    return jobs * JOB_S / workers / taken_s


def same_bytes(*engines: str) -> bool:
    """Whether all of them return what this process computes itself."""
    from rsr_tasks.engine_settings import Engine
    from rsr_tasks.fan_out import fan_out

    jobs = [{"seed": seed, "count": 100} for seed in range(6)]
    found = {json.dumps(fan_out("_fan_outs:draw", jobs, Engine(name))) for name in engines}  # type: ignore[arg-type]
    return found == {json.dumps([draw(**job) for job in jobs])}
