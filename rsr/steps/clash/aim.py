"""Plan single strikes to target poses in the adapted model."""

from __future__ import annotations

from rsr.clash import load_adapted
from rsr.clash.hybrid import HybridStrikes
from rsr.clash.learning import reproducible
from rsr.clash.planning import Plan, plan
from rsr.files import write_json
from rsr.progress import Advance
from rsr.randomness import derive_seed, generator
from rsr.scenarios.strike import sample_strikes
from rsr.steps.clash.base import clash_settings
from rsr.workspace import Workspace


def aim(workspace: Workspace, iteration: int, advance: Advance) -> None:
    """Write plan.json: for poses that the model says can be reached, the strike that reaches them best."""
    config = workspace.config(iteration)
    model = load_adapted(workspace.calibration_dir(iteration))
    rollouts, count = HybridStrikes(model), clash_settings(config).targets
    seed = derive_seed(config.seed, iteration, "aim")
    planned = []
    with reproducible(seed):  # thousands of small evaluations: threads would only wait for one another
        for index, target in enumerate(rollouts(sample_strikes(model.shape, count, generator(seed, "targets")))):
            found = plan(model.shape, rollouts, target, seed=derive_seed(seed, index))
            planned.append(_described(found, target.tolist()))
            advance((index + 1) / count, f"target {index + 1} of {count}")
    write_json(workspace.iteration_dir(iteration) / "plan.json", {"shape": model.shape.name, "plans": planned})


def _described(found: Plan, target: list[float]) -> dict[str, object]:
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
