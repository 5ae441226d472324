"""Measure the iteration: divergence and success of the deployed policy, the gap, and what training made of it."""

from __future__ import annotations

import numpy as np

from rsr.calibration import Calibration, load_calibration
from rsr.config import EvaluateConfig
from rsr.files import write_arrays, write_json
from rsr.infogap import InfoGapReward, kl_axis
from rsr.policies import Policy
from rsr.policies.rollouts import Rollouts, recorded, run, starts_of
from rsr.progress import Advance
from rsr.randomness import generator
from rsr.scenarios import Scenario, load_scenario, structured
from rsr.scenarios.pushing.arm import CENTRE_M
from rsr.sessions import read_session
from rsr.workspace import Workspace


def evaluate(workspace: Workspace, iteration: int, advance: Advance) -> None:
    """Write evaluation/metrics.json and evaluation/rollouts.npz.

    The deployed policy is the predecessor's. It runs once more in the simulator it was trained in, from the recorded
    starts towards the recorded targets, so that the two differ by physics alone. Each start is simulated several times
    under other sensor noise, which makes the simulated success a steadier figure; trajectories are those of the first.
    """
    config = workspace.config(iteration)
    scenario = load_scenario(config.scenario)
    session = read_session(workspace.session_dir(iteration))
    before = load_calibration(workspace.calibration_dir(iteration - 1))
    after = load_calibration(workspace.calibration_dir(iteration))
    deployed = Policy.load(workspace.policy_dir(iteration - 1))
    trained = Policy.load(workspace.policy_dir(iteration))
    real = recorded(session)
    starts = starts_of(scenario, session).repeated(config.evaluate.repeats)
    seed = (config.seed, iteration, "evaluate")
    simulated = run(
        structured(scenario, before.structure), before.vector(), deployed, starts, generator(*seed, "before")
    )
    advance(0.3, "deployed policy in its own simulator")
    present = structured(scenario, after.structure)
    tuned = run(present, after.vector(), deployed, starts, generator(*seed, "after"))
    advance(0.6, "deployed policy in the tuned simulator")
    onward = run(present, after.vector(), trained, starts, generator(*seed, "onward"))
    advance(0.9, "retrained policy in the tuned simulator")
    write_arrays(workspace.evaluation_dir(iteration) / "rollouts.npz", _arrays(real, simulated, tuned, onward))
    document = {
        "iteration": iteration,
        "seed": config.seed,
        "episodes": len(session.episodes),
        **_divergence(scenario, config.evaluate, real, simulated),
        "success_sim": float(simulated.success.mean()),
        "success_reality": float(real.success.mean()),
        "success_sim_retrained": float(onward.success.mean()),
        **_yaw_errors(reality=real, sim=simulated, sim_retrained=onward),
        "coverage": _coverage(real, config.evaluate),
        **_tuning(after),
        **_infogap(InfoGapReward.load(workspace.infogap_dir(iteration))),
    }
    write_json(workspace.metrics_path(iteration), document)


def _divergence(scenario: Scenario, config: EvaluateConfig, real: Rollouts, simulated: Rollouts) -> dict[str, float]:
    """KL per axis between the block's recorded and simulated trajectories, relative to the target (Table I)."""
    times = np.linspace(0, scenario.episode_steps, config.kl_times + 1).round().astype(int)[1:]
    offsets = [_offsets(rollouts, times) for rollouts in (real, simulated.first(len(real)))]
    noise = {observed.channel.name: observed.noise for observed in scenario.observed}
    stated = {"x": noise["block_position"], "y": noise["block_position"], "yaw": noise["block_orientation"]}
    return {f"kl_{axis}": kl_axis(offsets[0][axis], offsets[1][axis], noise=stated[axis]) for axis in offsets[0]}


def _offsets(rollouts: Rollouts, times: np.ndarray) -> dict[str, np.ndarray]:
    """The block relative to its target at these times, [episodes, times] each; the yaw where the task is about it."""
    block, target = rollouts.block[:, times], rollouts.target[:, None]
    offsets = {axis: (block - target)[..., column] for column, axis in enumerate("xy")}
    yaw = rollouts.task.yaw_error_rad(block, target)
    return offsets if yaw is None else {**offsets, "yaw": yaw}


def _yaw_errors(**seen: Rollouts) -> dict[str, float]:
    """Mean turn, in rad, by which the block ends off its target; nothing where the task is not about it."""
    missing = {name: rollouts.final_yaw_error_rad() for name, rollouts in seen.items()}
    return {f"yaw_error_{name}": float(np.abs(yaw).mean()) for name, yaw in missing.items() if yaw is not None}


def _tuning(calibration: Calibration) -> dict[str, object]:
    turn_before, turn_after = calibration.evidence.channels["block_orientation"]
    return {
        "gap_before": calibration.evidence.gap_before,
        "gap_after": calibration.evidence.gap_after,
        "orientation_gap_before": turn_before,
        "orientation_gap_after": turn_after,
        "params": {name: estimate.value for name, estimate in calibration.estimates.items()},
        "verdicts": {name: estimate.verdict for name, estimate in calibration.estimates.items()},
        "calibration_status": calibration.status,
    }


def _infogap(reward: InfoGapReward) -> dict[str, float]:
    return {
        "infogap_kl": reward.kl,
        "infogap_floor": reward.kl_floor,
        "infogap_weight": reward.weight,
        "eq3_mean": reward.eq3_mean,
    }


def _coverage(real: Rollouts, config: EvaluateConfig) -> float:
    """Share of the workspace's cells that the block visited."""
    half, cell = config.coverage_half_m, config.coverage_cell_m
    side = round(2 * half / cell)
    cells = np.floor((real.block[..., :2] - CENTRE_M + half) / cell).astype(int).reshape(-1, 2)
    inside = cells[((cells >= 0) & (cells < side)).all(axis=1)]
    return len(np.unique(inside, axis=0)) / side**2


def _arrays(real: Rollouts, *repeated: Rollouts) -> dict[str, np.ndarray]:
    simulated, tuned, onward = (rollouts.first(len(real)) for rollouts in repeated)
    return {
        "target": real.target,
        "real_block": real.block,
        "simulated_block": simulated.block,
        "tuned_block": tuned.block,
        "retrained_block": onward.block,
        "real_success": real.success,
        "simulated_success": simulated.success,
        "retrained_success": onward.success,
    }
