"""The same work on different engines: the same results, in the order of the jobs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from toy import TABLE_NAME
from toy.bare import fingerprint, run_bare_loop

from rsr.config import LoopConfig, RealityConfig
from rsr.errors import ConfigError
from rsr.randomness import generator
from tasks.fan_out import Engine, fan_out

JOBS = [{"seed": seed, "count": 3} for seed in range(7)]


def draw(seed: int, count: int) -> list[float]:
    """What a job does here: randomness that is its own."""
    if seed < 0:
        raise ValueError("toy")
    return generator(seed, "fan-out").normal(size=count).tolist()


EXPECTED = [draw(**job) for job in JOBS]


@pytest.mark.parametrize(
    "engine",
    [
        Engine("threads"),
        Engine("threads", workers=1, batch=3),
        pytest.param(Engine("processes", batch=4), marks=pytest.mark.slow),
        pytest.param(Engine("dask", batch=2), marks=pytest.mark.slow),
    ],
    ids=lambda engine: f"{engine.name}-{engine.workers}-{engine.batch}",
)
def test_every_engine_gives_the_same_bytes_in_the_order_of_the_jobs(prefect_server, engine):
    if engine.name == "dask":
        pytest.importorskip("prefect_dask", reason="the extra [scale] is not installed")
    found = fan_out("tests.tasks.test_fan_out:draw", JOBS, engine)
    assert json.dumps(found) == json.dumps(EXPECTED)


def test_a_failing_job_is_told(prefect_server):
    with pytest.raises(ValueError, match="toy"):
        fan_out("tests.tasks.test_fan_out:draw", [*JOBS, {"seed": -1, "count": 1}], Engine())


def test_an_unknown_engine_is_refused():
    with pytest.raises(ConfigError, match="got engine 'abacus'; expected one of threads, processes, dask, ray"):
        fan_out("tests.tasks.test_fan_out:draw", JOBS, Engine("abacus"))  # type: ignore[arg-type]


def test_several_campaigns_side_by_side_are_what_each_is_alone(prefect_server, tmp_path):
    from flows.benchmark import benchmark

    rows = benchmark(str(tmp_path / "many"), twin_seeds=[1, 2], iterations=1, engine="processes", table=TABLE_NAME)
    assert set(rows) == {"twin-1", "twin-2"}
    for seed in (1, 2):
        alone = tmp_path / f"alone-{seed}"
        run_bare_loop(alone, 1, config=LoopConfig(reality=RealityConfig(seed=seed)))
        assert fingerprint(alone) == fingerprint(tmp_path / "many" / f"twin-{seed}")
        assert Path(tmp_path / "many" / f"twin-{seed}" / "iterations/001/report.html").exists()
