"""What InfoGap buys: the loop with and without its reward, on several stand-ins for reality, at equal real data.

Both arms start from one policy 0 and share everything but `infogap.kappa` (its default against 0); they can differ from
the second session on. The defaults were chosen on stand-ins 1 to 3; those judged here are others. Per iteration k, as
means over the stand-ins, with `with_` or `without_` before them and `_k` behind:

    kl_x, kl_y                    between simulated and recorded trajectories under the deployed policy (Table I)
    error_x_mm, error_y_mm        mean distance of the two, per axis (Fig. 4)
    turn_error_rad                held-out error of the block's orientation before this iteration's tuning (Fig. 5)
    success                       on the stand-in, of the deployed policy: in this session and two more
    parameter_error               root mean square over the parameters of estimate minus truth, in standard deviations
                                  of the scenario's prior
    information                   log det of a session's Fisher information, at the stand-in's true parameters: mean of
                                  this session and two more

and what the reward changes, with against without, mean and 95 % interval over the stand-ins:

    information_gain_nats         per session, of those from the second on
    parameter_error_change        at the end; below zero: the reward helps
    success_change                per session, of those from the second on

A session of 96 episodes scatters by some two nats and four points, as ten of its 768 windows can hold a quarter of what
it tells. So each deployed policy records two more, for this comparison alone: no loop sees them. Only here, after the
loops have ended, is the stand-ins' truth looked at. With --quick one stand-in, two iterations and short trainings.
BENCHMARK_WORKSPACES names a folder to keep campaigns and figures in: those that are finished are not made again.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from _common import Figure, kept, run
from _information import fisher_information, log_determinant
from matplotlib.axes import Axes
from scipy import stats

from rsr.calibration import load_calibration
from rsr.common import derive_seed, ignore, read_arrays, read_json, write_bytes
from rsr.config import LoopConfig, dump_config, parse_config
from rsr.policies import Policy, recorded
from rsr.realities import CollectionPlan, StandIn
from rsr.realities._truth import draw_truth
from rsr.reports._drawing import render
from rsr.scenarios import Scenario, load_scenario
from rsr.sessions import Session, read_session
from rsr.workspace import Workspace
from rsr_tasks.loop import run_bare_loop

_NAME = "benchmarks/exploration.py"
ARMS = {"with": LoopConfig().infogap.kappa, "without": 0.0}
FURTHER_SESSIONS = 2
SHORT: dict[str, Any] = {"start": {"train_steps": 20_000}, "retrain": {"train_steps": 10_000}}
DRAWN = {
    "kl_x": "KL, x",
    "kl_y": "KL, y",
    "error_x_mm": "error x, mm",
    "error_y_mm": "error y, mm",
    "turn_error_rad": "orientation error, rad",
    "success": "success on the stand-in",
    "parameter_error": "parameter error, prior std",
    "information": "log det information",
}


def measure(quick: bool, first: int, stand_ins: int, iterations: int, figure: Path | None) -> dict[str, Figure]:
    """Run all campaigns and compare the arms; the stand-ins' seeds count up from `first`."""
    if quick:
        stand_ins, iterations = 1, 2
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(os.environ.get("BENCHMARK_WORKSPACES", temporary))
        rows: dict[str, list[list[dict[str, Figure]]]] = {arm: [] for arm in ARMS}
        for seed in range(first, first + stand_ins):  # both arms of one before the next: a run cut short has pairs
            for arm in ARMS:
                rows[arm].append(_rows(folder, arm, seed, iterations, quick))
    seen = {arm: _stacked(each) for arm, each in rows.items()}
    if figure is not None:
        write_bytes(figure, _picture(seen))
    return _means(seen) | _changes(seen)


def _rows(folder: Path, arm: str, seed: int, iterations: int, quick: bool) -> list[dict[str, Figure]]:
    config = parse_config(
        {**(SHORT if quick else {}), "reality": {"seed": seed}, "infogap": {"kappa": ARMS[arm]}}, _NAME
    )
    root = folder / f"{arm}-{seed}"
    if not root.exists():
        shutil.copytree(_started(folder, quick), root, symlinks=True)
        dump_config(config, root / "params.yaml")
    run_bare_loop(root, iterations)
    workspace = Workspace(root)
    return [
        kept(folder / "figures", f"{root.name}-{k}", lambda k=k: _figures(workspace, config, k))
        for k in range(1, iterations + 1)
    ]


def _started(folder: Path, quick: bool) -> Path:
    """A campaign that has trained policy 0 and nothing else, which all others begin as copies of."""
    root = folder / "start"
    run_bare_loop(root, 0, config=parse_config(SHORT if quick else {}, _NAME))
    return root


def _figures(workspace: Workspace, config: LoopConfig, iteration: int) -> dict[str, float]:
    scenario = load_scenario(config.scenario)
    truth = scenario.space.vector(draw_truth(config.reality.seed, scenario).parameters)
    metrics = read_json(workspace.metrics_path(iteration))
    rolled = read_arrays(workspace.evaluation_dir(iteration) / "rollouts.npz")
    apart_mm = {
        name: 1e3 * np.abs(rolled[f"real.figure.{name}"] - rolled[f"simulated.figure.{name}"]).mean() for name in "xy"
    }
    found = load_calibration(workspace.calibration_dir(iteration)).vector()
    off = (scenario.space.to_coordinates(found) - scenario.space.to_coordinates(truth)) / scenario.space.prior_std
    recording = read_session(workspace.session_dir(iteration))
    sessions = [recording, *_further_sessions(workspace, config, scenario, iteration)]
    told = [log_determinant(fisher_information(scenario, session, truth)) for session in sessions]
    return {
        "kl_x": metrics["kl_x"],
        "kl_y": metrics["kl_y"],
        "error_x_mm": apart_mm["x"],
        "error_y_mm": apart_mm["y"],
        "turn_error_rad": metrics["channel_gaps"]["block_orientation"]["before"],
        "success": float(np.mean([recorded(scenario, session).success.mean() for session in sessions])),
        "parameter_error": float(np.sqrt(np.mean(off**2))),
        "information": float(np.mean(told)),
    }


def _further_sessions(workspace: Workspace, config: LoopConfig, scenario: Scenario, iteration: int) -> list[Session]:
    """What the policy deployed in this iteration would also have recorded, from other starts."""
    seed, episodes = config.reality.seed, config.reality.episodes
    policy = Policy.load(workspace.policy_dir(iteration - 1))
    plans = [
        CollectionPlan("further", episodes, derive_seed(seed, iteration, "benchmark", number))
        for number in range(FURTHER_SESSIONS)
    ]
    return [StandIn(scenario, seed).collect(policy, plan, ignore) for plan in plans]


def _stacked(campaigns: list[list[dict[str, Figure]]]) -> dict[str, np.ndarray]:
    return {name: np.array([[row[name] for row in rows] for rows in campaigns]) for name in DRAWN}


def _means(seen: dict[str, dict[str, np.ndarray]]) -> dict[str, Figure]:
    return {
        f"{arm}_{name}_{k}": float(mean)
        for arm, figures in seen.items()
        for name, values in figures.items()
        for k, mean in enumerate(values.mean(axis=0), 1)
    }


def _changes(seen: dict[str, dict[str, np.ndarray]]) -> dict[str, Figure]:
    change = {name: seen["with"][name] - seen["without"][name] for name in DRAWN}
    return {
        **_interval("information_gain_nats", change["information"][:, 1:].mean(axis=1)),
        **_interval("parameter_error_change", change["parameter_error"][:, -1]),
        **_interval("success_change", change["success"][:, 1:].mean(axis=1)),
    }


def _interval(name: str, values: np.ndarray) -> dict[str, Figure]:
    """Mean over the stand-ins and the ends of its 95 % interval; no interval of a single one."""
    mean = float(values.mean())
    if len(values) == 1:
        return {name: mean}
    half = float(stats.t.ppf(0.975, len(values) - 1) * stats.sem(values))
    return {name: mean, f"{name}_lower": mean - half, f"{name}_upper": mean + half}


def _picture(seen: dict[str, dict[str, np.ndarray]]) -> bytes:
    def compose(figure: Any) -> None:
        figure.suptitle("The loop with and without InfoGap: mean over the stand-ins, and each of them")
        for axes, (name, words) in zip(figure.subplots(2, 4).flat, DRAWN.items(), strict=True):
            _panel(axes, {arm: figures[name] for arm, figures in seen.items()}, words)

    return render(compose, (12.0, 5.6), "png")


def _panel(axes: Axes, values: dict[str, np.ndarray], words: str) -> None:
    for (arm, each), colour in zip(values.items(), ("#1f6f8b", "#c26a2d"), strict=True):
        count = np.arange(1, each.shape[1] + 1)
        axes.plot(count, each.T, color=colour, alpha=0.25, linewidth=0.8)
        axes.plot(count, each.mean(axis=0), color=colour, marker="o", label=f"{arm} InfoGap")
    axes.set(title=words, xlabel="iteration", xticks=count)
    axes.title.set_fontsize(9)
    if words == DRAWN["kl_x"]:
        axes.legend(fontsize=7)


if __name__ == "__main__":
    run(measure, __doc__, first=9, stand_ins=5, iterations=4, figure=None)
