"""A small workspace with made-up results, written by the real classes: nothing is simulated, fitted or trained."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from rsr.calibration import Calibration, Estimate, Evidence, Replays, save_calibration, start_calibration
from rsr.common.files import write_arrays, write_json
from rsr.common.randomness import generator
from rsr.config import LoopConfig, dump_config
from rsr.infogap import fit_infogap
from rsr.scenarios import Scenario, load_scenario, task_of
from rsr.scenarios.built_in.push_cube.task import SUCCESS_M
from rsr.scenarios.built_in.pushing.arm import CENTRE_M
from rsr.sessions import Card, Episode, Session, write_session
from rsr.workspace import Workspace

EPISODES = 12
HELD_OUT = tuple(range(4, EPISODES))
_SUCCESS = {1: (0.92, 0.25), 2: (0.83, 0.67), 3: (0.92, 0.83)}
_ERROR_M = (0.045, 0.020, 0.009, 0.006)
"""How wrong the made-up simulator of each iteration is."""


@dataclass(frozen=True)
class Bench:
    """What the made-up numbers are drawn from."""

    workspace: Workspace
    scenario: Scenario
    rng: np.random.Generator


def make_workspace(root: Path, iterations: int = 2) -> Workspace:
    """A workspace of finished iterations, their reports left out."""
    write_json(root / "iterations.json", {"chain": {}})
    dump_config(LoopConfig(), root / "params.yaml")
    bench = Bench(Workspace(root), load_scenario("push_cube"), generator(7, "sample workspace"))
    workspace = bench.workspace
    workspace.plan(0)
    save_calibration(start_calibration(bench.scenario), workspace.calibration_dir(0))
    _write_curve(bench, 0)
    for iteration in range(1, iterations + 1):
        workspace.plan(iteration)
        _fill(bench, iteration)
    return workspace


def _fill(bench: Bench, iteration: int) -> None:
    workspace = bench.workspace
    target = _around_centre(bench, EPISODES, 0.1)
    real = _block_paths(bench, target, _SUCCESS[iteration][1])
    write_session(workspace.data_dir, make_session(bench.scenario, f"session-{iteration:03d}", real, target, bench.rng))
    _write_calibration(bench, iteration, real)
    _write_infogap(bench, iteration)
    _write_curve(bench, iteration)
    _write_evaluation(bench, iteration, real, target)
    _write_receipts(workspace, iteration)


def make_session(
    scenario: Scenario, name: str, block: np.ndarray, target: np.ndarray, rng: np.random.Generator
) -> Session:
    """A recording whose block moves along `block` [n, T + 1, 3]; the arm hardly moves."""
    rows = block.shape[1]

    def values(index: int) -> dict[str, np.ndarray]:
        made = {channel.name: 0.01 * rng.normal(size=(rows, channel.width)) for channel in scenario.channels}
        made["block_position"] = block[index]
        made["block_orientation"] = np.tile([1.0, 0.0, 0.0, 0.0], (rows, 1))
        made["target_position"] = np.tile(target[index], (rows, 1))
        return made

    time_s = np.arange(rows) * scenario.control_dt_s
    card = Card(name, scenario.name, "stand_in", simulated=True, control_dt_s=scenario.control_dt_s)
    return Session(card, scenario.channels, tuple(Episode(i, time_s, values(i)) for i in range(len(block))))


def _around_centre(bench: Bench, count: int, half_width_m: float) -> np.ndarray:
    flat = CENTRE_M + bench.rng.uniform(-half_width_m, half_width_m, (count, 2))
    return np.concatenate([flat, np.full((count, 1), 0.025)], axis=1)


def _block_paths(bench: Bench, target: np.ndarray, success: float) -> np.ndarray:
    """Blocks pushed from random starts towards their targets; this share of them arrives."""
    rng, steps = bench.rng, bench.scenario.episode_steps
    start = _around_centre(bench, len(target), 0.08)
    off = rng.normal(size=(len(target), 3)) * [1, 1, 0]
    reach = np.where(np.arange(len(target)) < round(success * len(target)), 0.4 * SUCCESS_M, 2.5 * SUCCESS_M)
    end = target + off / np.linalg.norm(off, axis=1, keepdims=True) * reach[:, None]
    pace = 1 / (1 + np.exp(-(np.arange(steps + 1) - rng.uniform(20, 45, (len(target), 1))) / 6))
    pace = (pace - pace[:, :1]) / (pace[:, -1:] - pace[:, :1])
    bow = np.sin(np.pi * pace)[..., None] * rng.normal(0, 0.015, (len(target), 1, 3)) * [1, 1, 0]
    return start[:, None] + pace[..., None] * (end - start)[:, None] + bow


def _wrong(bench: Bench, paths: np.ndarray, error_m: float) -> np.ndarray:
    """What a simulator would predict that errs by about this much."""
    growth = np.linspace(0, 1.5, paths.shape[1])[:, None]
    drift = bench.rng.normal(0, error_m, (len(paths), 1, 3)) * [1, 1, 0]
    return paths + growth * drift


def _write_calibration(bench: Bench, iteration: int, real: np.ndarray) -> None:
    held = list(HELD_OUT)
    shown = real[held]
    before, after = (_wrong(bench, shown, _ERROR_M[number]) for number in (iteration - 1, iteration))
    gaps = [float(np.sqrt(np.mean(np.sum((path - shown) ** 2, axis=-1)))) for path in (before, after)]
    calibration = Calibration(
        scenario=bench.scenario.name,
        method="cmaes",
        estimates=_estimates(bench, iteration),
        covariance=np.diag(bench.scenario.space.prior_std**2) / (1 + 10 * iteration),
        status="converged" if iteration > 1 else "budget spent",
        evidence=Evidence(*gaps, "m", _channels(gaps), tuple(range(HELD_OUT[0])), HELD_OUT),
        trace=np.stack([np.arange(1, 15) * 4e5, 900 * np.exp(-np.arange(14) / 4) + 120], axis=1),
        warnings=("cube_mass and table_friction are correlated: record a free slide",),
        replays=Replays(np.array(held), shown, before, after, np.array([40, 80])),
    )
    save_calibration(calibration, bench.workspace.calibration_dir(iteration))


def _channels(gaps: list[float]) -> dict[str, tuple[float, float]]:
    return {"joint_position": (0.031, 0.006), "block_position": (gaps[0], gaps[1]), "block_orientation": (0.42, 0.2)}


def _estimates(bench: Bench, iteration: int) -> dict[str, Estimate]:
    space, verdicts = bench.scenario.space, ("identified", "weak", "not identifiable", "identified", "at bound")
    half = space.prior_std / (1 + 4 * iteration)
    centre = space.to_coordinates(space.nominal) + 0.6 * space.prior_std * np.linspace(-1, 1, len(space))
    values = np.clip(space.to_values(np.stack([centre - half, centre, centre + half])), space.lower, space.upper)
    return {
        parameter.name: Estimate(middle, low, high, parameter.unit, verdicts[index % len(verdicts)])
        for index, (parameter, low, middle, high) in enumerate(zip(space, *values.tolist(), strict=True))
    }


def _write_infogap(bench: Bench, iteration: int) -> None:
    real = bench.rng.normal(size=(80, 6))
    first, before, after = (
        real + _ERROR_M[k] * 20 * bench.rng.normal(size=real.shape) for k in (0, iteration - 1, iteration)
    )
    reward = fit_infogap(real, before, after, 0.05, 0.3, rng=bench.rng, simulated_first=first)
    reward.save(bench.workspace.infogap_dir(iteration))


def _write_curve(bench: Bench, iteration: int) -> None:
    steps = 8192.0 * np.arange(1, 25)
    success = 0.9 - (0.85 if iteration == 0 else 0.3) * np.exp(-np.arange(24) / 6) + 0.02 * bench.rng.normal(size=24)
    curve = [
        {"steps": float(step), "mean_return": float(-90 + 60 * share), "success": float(share)}
        for step, share in zip(steps, success.clip(0, 1), strict=True)
    ]
    write_json(bench.workspace.policy_dir(iteration) / "curve.json", curve)


def _write_evaluation(bench: Bench, iteration: int, real: np.ndarray, target: np.ndarray) -> None:
    shares = (*_SUCCESS[iteration], 0.92)
    simulated, tuned = (_wrong(bench, real, _ERROR_M[number]) for number in (iteration - 1, iteration))
    paths = {
        "real": real,
        "simulated": simulated,
        "tuned": tuned,
        "retrained": _block_paths(bench, target, shares[2]),
    }
    arrays = {name: values for run in paths for name, values in _compared(bench, run, paths[run], target).items()}
    write_arrays(bench.workspace.evaluation_dir(iteration) / "rollouts.npz", arrays)
    estimates = _estimates(bench, iteration)
    metrics = {
        "iteration": iteration,
        "seed": 0,
        "episodes": EPISODES,
        "kl_x": 2.1 / 6 ** (iteration - 1),
        "kl_y": 1.4 / 5 ** (iteration - 1),
        "gap_before": _ERROR_M[iteration - 1],
        "gap_after": _ERROR_M[iteration],
        "success_sim": shares[0],
        "success_reality": shares[1],
        "success_sim_retrained": shares[2],
        "distance_error_sim": 0.012,
        "distance_error_reality": 2 * _ERROR_M[iteration - 1],
        "distance_error_sim_retrained": 0.012,
        "units": {"gap": "m", "x": "m", "y": "m", "distance": "m"},
        "channel_gaps": {"block_position": {"before": _ERROR_M[iteration - 1], "after": _ERROR_M[iteration]}},
        "coverage": 0.41,
        "params": {name: estimate.value for name, estimate in estimates.items()},
        "verdicts": {name: estimate.verdict for name, estimate in estimates.items()},
        "calibration_status": "converged",
        "infogap_kl": 1.9 / 3 ** (iteration - 1),
        "infogap_floor": 0.06,
        "infogap_weight": 0.1 / 3 ** (iteration - 1),
        "eq3_mean": 0.004,
    }
    write_json(bench.workspace.metrics_path(iteration), metrics)


def _compared(bench: Bench, run: str, paths: np.ndarray, target: np.ndarray) -> dict[str, np.ndarray]:
    """What `rsr.pipelines.loop.evaluate` keeps of episodes whose block moves along `paths`."""
    task = task_of(bench.scenario)
    channels = {"block_position": paths, "target_position": np.broadcast_to(target[:, None], paths.shape)}
    figures = {f"{run}.figure.{figure.name}": figure.compute(channels) for figure in task.figures}
    last = {name: values[:, -1] for name, values in channels.items()}
    return {**figures, f"{run}.plane": task.plane.compute(channels), f"{run}.success": task.succeeded(last)}


def _write_receipts(workspace: Workspace, iteration: int) -> None:
    """Receipts as `rsr.pipelines.leave_receipt` writes them, with hashes and times made up."""
    for minute, step in enumerate(("collect", "tune", "infogap", "retrain", "evaluate")):
        receipt = {
            "step": step,
            "iteration": iteration,
            "inputs": {asdict(workspace.chain()[iteration])["session"]: f"{minute:064x}"},
            "outputs": {f"iterations/{iteration:03d}/{step}": f"{minute + 99:064x}"},
            "settings": {"scenario": "push_cube", "seed": 0},
            "seed": 0,
            "code": "ba6c170",
            "versions": {"python": "3.11.9", "mujoco": "3.17.0", "numpy": "2.3.4"},
            "started_at": f"2026-01-02T03:{minute:02d}:05+00:00",
            "duration_s": 12.345 * (minute + 1),
            "verdict": "converged" if step == "tune" else "finished",
        }
        write_json(workspace.receipts_dir(iteration) / f"{step}.json", receipt)
