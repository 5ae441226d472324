"""Train the previous policy on in the tuned simulator, for the task and for what closes the gap."""

from __future__ import annotations

from rsr.calibration import load_calibration
from rsr.infogap import InfoGapReward
from rsr.policies.novelty import bonus_of
from rsr.policies.training import PPOSettings, load_state, train
from rsr.progress import Advance
from rsr.randomness import derive_seed
from rsr.scenarios import load_scenario
from rsr.workspace import Workspace


def retrain(workspace: Workspace, iteration: int, advance: Advance) -> None:
    """Write policy/: weights, normaliser, what the next training goes on from, and the learning curve."""
    config = workspace.config(iteration)
    scenario = load_scenario(config.scenario)
    calibration = load_calibration(workspace.calibration_dir(iteration))
    reward = InfoGapReward.load(workspace.infogap_dir(iteration))
    trained = train(
        scenario,
        calibration.vector(),
        PPOSettings(config.retrain.train_steps),
        derive_seed(config.seed, iteration, "retrain"),
        advance,
        state=load_state(workspace.policy_dir(iteration - 1)),
        bonus=bonus_of(reward) if reward.weight > 0 else None,
        checkpoint=workspace.checkpoint_path(iteration),
    )
    trained.save(workspace.policy_dir(iteration))
