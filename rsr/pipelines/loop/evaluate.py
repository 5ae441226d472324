"""Measure the iteration: divergence and success of the deployed policy, the gap, and what training made of it."""

from __future__ import annotations

import numpy as np

from rsr.calibration import Calibration, channel_rms, load_calibration, replay
from rsr.common import Advance, generator, write_arrays, write_json
from rsr.config import EvaluateConfig
from rsr.infogap import InfoGapReward, kl_axis
from rsr.policies import Policy, Rollouts, recorded, run, starts_of, visits
from rsr.scenarios import Scenario, load_scenario, structured
from rsr.sessions import Session, read_session
from rsr.simulators import MujocoSimulator, correct_sensors
from rsr.workspace import Workspace


def evaluate(workspace: Workspace, iteration: int, advance: Advance) -> None:
    """Write evaluation/metrics.json and evaluation/rollouts.npz.

    The deployed policy is the predecessor's. It runs once more in the simulator it was trained in, from the recorded
    starts towards the recorded targets, so that the two differ by physics alone. Each start is simulated several times
    under other sensor noise, which lowers the variance of the simulated success; trajectories are those of the first.
    Where a gap cut a recorded episode short, the simulated ones end at the same row: success and divergence compare
    equal times.
    """
    config = workspace.config(iteration)
    scenario = load_scenario(config.scenario)
    session = read_session(workspace.session_dir(iteration))
    before = load_calibration(workspace.calibration_dir(iteration - 1))
    after = load_calibration(workspace.calibration_dir(iteration))
    deployed = Policy.load(workspace.policy_dir(iteration - 1), scenario)
    trained = Policy.load(workspace.policy_dir(iteration), scenario)
    real = recorded(scenario, session)
    once = starts_of(scenario, session)
    starts = once.repeated(config.evaluate.repeats)
    rows = np.tile(real.rows, config.evaluate.repeats)
    steps = int(real.rows.max()) - 1
    seed = (config.seed, iteration, "evaluate")
    past, present = structured(scenario, before.structure), structured(scenario, after.structure)
    simulated = run(past, before.vector(), deployed, starts, generator(*seed, "before"), steps).ended_after(rows)
    advance(0.3, "deployed policy in its own simulator")
    # Only drawn, never counted: once is enough.
    tuned = run(present, after.vector(), deployed, once, generator(*seed, "after"), steps).ended_after(real.rows)
    advance(0.6, "deployed policy in the tuned simulator")
    onward = run(present, after.vector(), trained, starts, generator(*seed, "onward"), steps).ended_after(rows)
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
        **_missing(reality=real, sim=simulated, sim_retrained=onward),
        **_coverage(real),
        **_tuning(after),
        "gap_nominal": _nominal_gap(scenario, session, after),
        **_infogap(InfoGapReward.load(workspace.infogap_dir(iteration))),
        "units": {"gap": after.evidence.gap_unit} | {figure.key: figure.unit for figure in real.task.figures},
    }
    write_json(workspace.metrics_path(iteration), document)


def evaluate_gap(workspace: Workspace, iteration: int, advance: Advance) -> None:
    """Write evaluation/metrics.json where there is no policy: what tuning did to the gap on held-out episodes."""
    after = load_calibration(workspace.calibration_dir(iteration))
    document = {
        "iteration": iteration,
        "seed": workspace.config(iteration).seed,
        "episodes": len(read_session(workspace.session_dir(iteration)).episodes),
        **_tuning(after),
        "units": {"gap": after.evidence.gap_unit},
    }
    write_json(workspace.metrics_path(iteration), document)


def _divergence(scenario: Scenario, config: EvaluateConfig, real: Rollouts, simulated: Rollouts) -> dict[str, float]:
    """KL between recorded and simulated trajectories of each figure that is an axis (Table I)."""
    length = int(real.rows.max())
    times = np.linspace(0, length - 1, config.kl_times + 1).round().astype(int)[1:]
    recorded_, simulated_ = real.figures(), simulated.first(len(real)).figures()
    noise = scenario.channel_noise
    return {
        f"kl_{figure.key}": kl_axis(
            recorded_[figure.name][:, times], simulated_[figure.name][:, times], noise=noise[figure.channel]
        )
        for figure in real.task.figures
        if figure.axis
    }


def _missing(**compared: Rollouts) -> dict[str, float]:
    """Mean size, at the end, of each figure that decides about success."""
    return {
        f"{figure.key}_error_{name}": float(np.abs(figure.compute(rollouts.last)).mean())
        for name, rollouts in compared.items()
        for figure in rollouts.task.figures
        if figure.tolerance is not None
    }


def _tuning(calibration: Calibration) -> dict[str, object]:
    channels = {name: {"before": both[0], "after": both[1]} for name, both in calibration.evidence.channels.items()}
    return {
        "gap_before": calibration.evidence.gap_before,
        "gap_after": calibration.evidence.gap_after,
        "channel_gaps": channels,
        "params": {name: estimate.value for name, estimate in calibration.estimates.items()},
        "verdicts": {name: estimate.verdict for name, estimate in calibration.estimates.items()},
        "calibration_status": calibration.status,
    }


def _nominal_gap(scenario: Scenario, session: Session, after: Calibration) -> float:
    """Gap of the nominal simulator on the very episodes that the tuned one is judged on.

    Gaps of different iterations are of different recordings: a better policy touches more, so there is more to miss.
    """
    episodes = [session.episodes[index] for index in after.evidence.held_out]
    nominal = scenario.space.nominal
    with MujocoSimulator(scenario) as simulator:
        corrected = correct_sensors(scenario, simulator, episodes, nominal)
        replayed = replay(scenario, simulator, corrected, nominal)
    return channel_rms(scenario, corrected, replayed)[scenario.gap_channel]


def _infogap(reward: InfoGapReward) -> dict[str, float]:
    return {
        "infogap_kl": reward.kl,
        "infogap_floor": reward.kl_floor,
        "infogap_weight": reward.weight,
        "eq3_mean": reward.eq3_mean,
    }


def _coverage(real: Rollouts) -> dict[str, float]:
    """Share of the cells of the task's plane that were visited."""
    found = visits(real)
    return {} if found is None else {"coverage": np.count_nonzero(found[0]) / found[0].size}


def _arrays(real: Rollouts, *repeated: Rollouts) -> dict[str, np.ndarray]:
    """Figures [episodes, times], the plane's points, and success, of each that is compared; the report draws them."""
    named = zip(("real", "simulated", "tuned", "retrained"), (real, *repeated), strict=True)
    arrays: dict[str, np.ndarray] = {}
    for name, rollouts in named:
        kept = rollouts.first(len(real))
        figures = {f"{name}.figure.{figure}": values for figure, values in kept.figures().items()}
        plane = {} if kept.task.plane is None else {f"{name}.plane": kept.task.plane.compute(kept.channels)}
        arrays |= {**figures, **plane, f"{name}.success": kept.success}
    return arrays
