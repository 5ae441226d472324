"""Stages of the loop: policy 0 and the prior; tuning; retraining; the report."""

from __future__ import annotations

import numpy as np

from rsr.calibration import (
    Calibration,
    draw_parameters,
    load_calibration,
    next_prior,
    save_calibration,
    start_calibration,
)
from rsr.common import Advance, derive_seed, generator, write_text
from rsr.config import RetrainConfig
from rsr.environments import bonus_of
from rsr.infogap import InfoGapReward
from rsr.pipelines import tune_into
from rsr.policies import load_state, settings_from_scratch, settings_to_go_on, train
from rsr.reports import render_report
from rsr.scenarios import Scenario, load_scenario, structured
from rsr.sessions import read_session
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


def prior(workspace: Workspace, iteration: int, advance: Advance) -> None:
    """Write calibration/ of iteration 0 alone: the parameters before any recording; there is no policy to train."""
    scenario = load_scenario(workspace.config(iteration).scenario)
    save_calibration(start_calibration(scenario), workspace.calibration_dir(iteration))


# Fit the simulator's parameters to the iteration's session.


def tune(workspace: Workspace, iteration: int, advance: Advance) -> None:
    """Write calibration/: theta_k, with earlier sessions as its prior, judged on held-out episodes. Eq. (2)."""
    config = workspace.config(iteration)
    scenario = load_scenario(config.scenario)
    session = read_session(workspace.session_dir(iteration))
    previous = workspace.calibration_dir(iteration - 1)
    prior = next_prior(scenario, load_calibration(previous))
    seed = derive_seed(config.seed, iteration, "tune")
    base = workspace.root / ".rsr" / "base"
    tune_into(workspace.calibration_dir(iteration), scenario, (session,), prior, config, seed, advance, base, previous)


# Train the previous policy on in the tuned simulator, for the task and for what closes the gap.


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
        bonus=bonus_of(reward) if reward.weight > 0 else None,
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


# Write the iteration's HTML page.


def report(workspace: Workspace, iteration: int, advance: Advance) -> None:
    """Write report.html: what this iteration found, beside the iterations before it."""
    write_text(workspace.report_path(iteration), render_report(workspace, iteration, advance))
