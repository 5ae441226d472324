"""Begin a campaign: policy 0, trained in the nominal simulator, and what is believed of the parameters before data."""

from __future__ import annotations

from rsr.calibration import save_calibration, start_calibration
from rsr.policies.recipes import settings_from_scratch
from rsr.policies.training import train
from rsr.progress import Advance
from rsr.randomness import derive_seed
from rsr.scenarios import load_scenario
from rsr.workspace import Workspace


def start(workspace: Workspace, iteration: int, advance: Advance) -> None:
    """Write policy/ and calibration/ of iteration 0."""
    config = workspace.config(iteration)
    scenario = load_scenario(config.scenario)
    save_calibration(start_calibration(scenario), workspace.calibration_dir(iteration))
    settings = settings_from_scratch(config.start.algorithm, scenario, config.start.train_steps)
    trained = train(
        scenario,
        scenario.space.nominal,
        settings,
        derive_seed(config.seed, iteration, "start"),
        advance,
        checkpoint=workspace.checkpoint_path(iteration),
    )
    trained.save(workspace.policy_dir(iteration))
