"""Train the previous policy on in the tuned simulator, for the task and for what closes the gap."""

from __future__ import annotations

import numpy as np

from rsr.calibration import Calibration, draw_parameters, load_calibration
from rsr.config import RetrainConfig
from rsr.infogap import InfoGapReward
from rsr.policies.novelty import bonus_of
from rsr.policies.recipes import settings_to_go_on
from rsr.policies.training import load_state, train
from rsr.progress import Advance
from rsr.randomness import derive_seed, generator
from rsr.scenarios import Scenario, load_scenario, structured, task_of
from rsr.workspace import Workspace


def retrain(workspace: Workspace, iteration: int, advance: Advance) -> None:
    """Write policy/: the policy, what the next training goes on from, and the learning curve."""
    config = workspace.config(iteration)
    calibration = load_calibration(workspace.calibration_dir(iteration))
    scenario = structured(load_scenario(config.scenario), calibration.structure)
    reward = InfoGapReward.load(workspace.infogap_dir(iteration))
    state = load_state(workspace.policy_dir(iteration - 1))
    settings = settings_to_go_on(state, scenario, config.retrain.train_steps)
    seed = derive_seed(config.seed, iteration, "retrain")
    trained = train(
        scenario,
        simulators(scenario, calibration, config.retrain, settings.copies, seed),
        settings,
        seed,
        advance,
        state=state,
        bonus=bonus_of(reward, task_of(scenario)) if reward.weight > 0 else None,
        checkpoint=workspace.checkpoint_path(iteration),
    )
    trained.save(workspace.policy_dir(iteration))


def simulators(
    scenario: Scenario, calibration: Calibration, config: RetrainConfig, copies: int, seed: int
) -> np.ndarray:
    """Parameters to train in: the estimate [P], or one draw of the posterior a copy [copies, P], of the seed alone."""
    if config.randomise == "none":
        return calibration.vector()
    rng = generator(seed, "randomise")
    return draw_parameters(scenario, calibration, copies, rng, config.randomise_factor)
