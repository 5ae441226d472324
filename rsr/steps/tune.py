"""Fit the simulator's parameters to the iteration's session."""

from __future__ import annotations

from rsr.calibration import load_calibration, next_prior
from rsr.progress import Advance
from rsr.randomness import derive_seed
from rsr.scenarios import load_scenario
from rsr.sessions import read_session
from rsr.steps.methods import tune_into
from rsr.workspace import Workspace


def tune(workspace: Workspace, iteration: int, advance: Advance) -> None:
    """Write calibration/: theta_k, what earlier sessions told as its prior, held-out episodes as its judge. Eq. (2)."""
    config = workspace.config(iteration)
    scenario = load_scenario(config.scenario)
    session = read_session(workspace.session_dir(iteration))
    previous = workspace.calibration_dir(iteration - 1)
    prior = next_prior(scenario, load_calibration(previous))
    seed = derive_seed(config.seed, iteration, "tune")
    base = workspace.root / ".rsr" / "base"
    tune_into(workspace.calibration_dir(iteration), scenario, (session,), prior, config, seed, advance, base, previous)
