"""Stages after a recording: adapt the surrogate to all strikes so far, and plan single strikes to target poses."""

from __future__ import annotations

from rsr.calibration import load_calibration, next_prior
from rsr.files import write_json
from rsr.learned.clash import load_adapted, load_surrogate, reproducible
from rsr.learned.clash.planning import HybridStrikes, StrikePlan, plan
from rsr.pipelines.clash.base import clash_settings, surrogate_dir
from rsr.pipelines.clash.calibration import adapt_to
from rsr.progress import Advance
from rsr.randomness import derive_seed, generator
from rsr.scenarios import load_scenario
from rsr.scenarios.built_in.strike import sample_strikes
from rsr.sessions import read_session
from rsr.workspace import Workspace


def adapt(workspace: Workspace, iteration: int, advance: Advance) -> None:
    """Write calibration/: identified parameters, the residual, how the block slides, and the evidence for them."""
    config = workspace.config(iteration)
    scenario = load_scenario(config.scenario)
    previous = workspace.calibration_dir(iteration - 1)
    adapt_to(
        scenario,
        (read_session(workspace.session_dir(iteration)),),
        load_surrogate(surrogate_dir(workspace)),
        next_prior(scenario, load_calibration(previous)),
        config.tune.fit_episodes,
        derive_seed(config.seed, iteration, "adapt"),
        workspace.calibration_dir(iteration),
        previous,
    )
    advance(1.0, "adapted")


def aim(workspace: Workspace, iteration: int, advance: Advance) -> None:
    """Write plan.json: for poses that the model says can be reached, the strike that reaches them best."""
    config = workspace.config(iteration)
    model = load_adapted(workspace.calibration_dir(iteration))
    rollouts, count = HybridStrikes(model), clash_settings(config).targets
    seed = derive_seed(config.seed, iteration, "aim")
    planned = []
    # Targets are rests of random strikes in the model itself, so each of them can be reached.
    with reproducible(seed):  # thousands of small evaluations: threads would only wait for one another
        for index, target in enumerate(rollouts(sample_strikes(model.shape, count, generator(seed, "targets")))):
            found = plan(model.shape, rollouts, target, seed=derive_seed(seed, index))
            planned.append(_described(found, target.tolist()))
            advance((index + 1) / count, f"target {index + 1} of {count}")
    write_json(workspace.iteration_dir(iteration) / "plan.json", {"shape": model.shape.name, "plans": planned})


def _described(found: StrikePlan, target: list[float]) -> dict[str, object]:
    strike = found.strike
    return {
        "target": target,
        "expected": found.expected.tolist(),
        "cost": found.cost,
        "speed_m_s": float(strike.speed_m_s[0]),
        "angle_rad": float(strike.angle_rad[0]),
        "point_m": strike.point_m[0].tolist(),
        "normal": strike.normal[0].tolist(),
    }
