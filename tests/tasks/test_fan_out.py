"""The same work on different engines: the same results, in the order of the jobs."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path

import numpy as np
import pytest
from toy import TABLE_NAME
from toy.bare import fingerprint, run_bare_loop

from rsr.calibration import start_prior
from rsr.calibration.problem.loss import Loss, losses_of, parts_of
from rsr.calibration.problem.windows import choose, cut
from rsr.calibration.uncertainty.bootstrap import refit_resample, refits
from rsr.common.errors import ConfigError
from rsr.common.files import sha256
from rsr.common.progress import ignore
from rsr.common.randomness import generator
from rsr.common.spreading import is_spread, spread
from rsr.config import LoopConfig, RealityConfig
from rsr.learned.clash import generate_pairs
from rsr.scenarios.built_in.strike import load_shape
from rsr.simulators import MujocoSimulator
from rsr_tasks.engine_settings import Engine, engine_of, spread_as_configured
from rsr_tasks.fan_out import fan_out
from tests.calibration.recordings import recording
from tests.push_samples import push_cube

JOBS = [{"seed": seed, "count": 3} for seed in range(7)]
DRAW = "tests.tasks.test_fan_out:draw"
ENGINES = [
    Engine("threads"),
    Engine("threads", workers=1, batch=3),
    pytest.param(Engine("processes", batch=4), marks=pytest.mark.slow),
    pytest.param(Engine("dask", batch=2), marks=pytest.mark.slow),
]


def draw(seed: int, count: int) -> list[float]:
    """A job with randomness of its own."""
    if seed < 0:
        raise ValueError("toy")
    return generator(seed, "fan-out").normal(size=count).tolist()


def nested(count: int) -> tuple[list[list[float]], bool]:
    return spread(DRAW, JOBS[:count]), is_spread()


EXPECTED = [draw(**job) for job in JOBS]


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: f"{engine.name}-{engine.workers}-{engine.batch}")
def test_every_engine_gives_the_same_bytes_in_the_order_of_the_jobs(prefect_server, engine):
    seen = []
    found = fan_out(DRAW, JOBS, engine, lambda share, words="": seen.append(share))
    assert json.dumps(found) == json.dumps(EXPECTED)
    assert seen == sorted(seen)
    assert seen[-1] == 1.0


def test_no_jobs_are_no_work(prefect_server):
    assert fan_out(DRAW, [], Engine()) == []


def test_a_failing_job_is_told(prefect_server):
    with pytest.raises(ValueError, match="toy"):
        fan_out(DRAW, [*JOBS, {"seed": -1, "count": 1}], Engine())


def test_an_unknown_engine_is_refused():
    with pytest.raises(ConfigError, match="got engine 'abacus'; expected one of threads, processes, dask"):
        fan_out(DRAW, JOBS, Engine("abacus"))  # type: ignore[arg-type]


@pytest.mark.slow
def test_several_campaigns_side_by_side_are_what_each_is_alone(prefect_server, tmp_path):
    from rsr_flows.benchmark import benchmark

    rows = benchmark(str(tmp_path / "many"), stand_in_seeds=[1, 2], iterations=1, engine="processes", table=TABLE_NAME)
    assert set(rows) == {"stand-in-1", "stand-in-2"}
    for seed in (1, 2):
        alone = tmp_path / f"alone-{seed}"
        run_bare_loop(alone, 1, config=LoopConfig(reality=RealityConfig(seed=seed)))
        assert fingerprint(alone) == fingerprint(tmp_path / "many" / f"stand-in-{seed}")
        assert Path(tmp_path / "many" / f"stand-in-{seed}" / "iterations/001/report.html").exists()


class TestAsConfigured:
    def test_the_environment_names_the_engine(self):
        assert engine_of({}) is None
        named = {"RSR_ENGINE": "dask", "RSR_WORKERS": "8", "RSR_BATCH": "5", "RSR_CLUSTER": "tcp://lab:8786"}
        assert engine_of(named) == Engine("dask", 8, 5, "tcp://lab:8786")
        assert engine_of({"RSR_ENGINE": "threads"}) == Engine("threads", 2)

    def test_what_it_cannot_mean_is_refused(self):
        with pytest.raises(ConfigError, match="RSR_ENGINE: got 'abacus'; expected one of threads, processes, dask"):
            engine_of({"RSR_ENGINE": "abacus"})
        with pytest.raises(ConfigError, match="RSR_WORKERS: got 'two'; expected a whole number above zero"):
            engine_of({"RSR_ENGINE": "dask", "RSR_WORKERS": "two"})

    def test_what_a_job_spreads_stays_in_the_job(self, prefect_server):
        with spread_as_configured({"RSR_ENGINE": "threads"}):
            found = spread("tests.tasks.test_fan_out:nested", [{"count": 2}, {"count": 3}])
        assert found == [(EXPECTED[:2], True), (EXPECTED[:3], True)]
        assert not is_spread()


@pytest.fixture(scope="module")
def loss():
    scenario = push_cube()
    windows = choose(scenario, cut(scenario, recording().episodes, 6, 4), 4, np.random.default_rng(0))
    with MujocoSimulator(scenario) as simulator:
        yield Loss(scenario, simulator, windows, start_prior(scenario))


def _population(loss: Loss) -> bytes:
    points = np.clip(np.random.default_rng(1).normal(size=(6, len(loss.prior.mean))), *loss.bounds.T)
    return losses_of(loss, points).tobytes()


SHARED = [
    pytest.param("threads", id="threads"),
    pytest.param("processes", marks=pytest.mark.slow),
    pytest.param("dask", marks=pytest.mark.slow),
]


@pytest.mark.parametrize("name", SHARED)
def test_a_population_strikes_and_refits_have_the_same_bytes_wherever_they_are_computed(
    prefect_server, loss, tmp_path, name, monkeypatch
):
    monkeypatch.setattr("rsr.learned.clash.generate.SHARD", 100)
    square, point = load_shape("square"), loss.first
    here = _population(loss)
    generate_pairs(square, tmp_path / "here", 250)
    refitted = refits(loss, point, 2, 0, ignore)
    with spread_as_configured({**os.environ, "RSR_ENGINE": name}):
        assert _population(loss) == here
        generate_pairs(square, tmp_path / "there", 250)
        assert refits(loss, point, 2, 0, ignore).tobytes() == refitted.tobytes()
    assert sha256(tmp_path / "there") == sha256(tmp_path / "here")
    shutil.rmtree(tmp_path / "there")


def refit_or_die(mark: str, **job) -> np.ndarray:
    """A refit; the first to come here takes its worker along, as a machine does that loses power."""
    try:
        Path(mark).touch(exist_ok=False)
    except FileExistsError:
        return refit_resample(**job)
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


@pytest.mark.slow
@pytest.mark.timeout(900)  # five starts of Python with Prefect, on two cores
def test_refits_on_dask_outlive_a_killed_worker(prefect_server, loss, tmp_path):
    rng, indices, mark = np.random.default_rng(0), np.unique(loss.windows.episode), tmp_path / "killed"
    jobs = [
        {
            "parts": parts_of(loss),
            "point": loss.first,
            "prior_shift": 0.1 * rng.normal(size=len(loss.first)),
            "episodes": rng.choice(indices, len(indices)),
            "seed": seed,
        }
        for seed in range(8)
    ]
    in_turn = [refit_resample(**job) for job in jobs]
    dying = [{**job, "mark": str(mark)} for job in jobs]
    spread_out = fan_out("tests.tasks.test_fan_out:refit_or_die", dying, Engine("dask", workers=4, batch=1))
    assert mark.exists()
    assert np.array(spread_out).tobytes() == np.array(in_turn).tobytes()
