"""Fit the simulator's parameters to the iteration's session."""

from __future__ import annotations

from rsr.calibration import calibrator, load_calibration, next_prior, save_calibration
from rsr.progress import Advance
from rsr.randomness import derive_seed
from rsr.scenarios import load_scenario
from rsr.sessions import read_session
from rsr.workspace import Workspace


def tune(workspace: Workspace, iteration: int, advance: Advance) -> None:
    """Write calibration/: theta_k, what earlier sessions told as its prior, held-out episodes as its judge. Eq. (2)."""
    config = workspace.config(iteration)
    scenario = load_scenario(config.scenario)
    session = read_session(workspace.session_dir(iteration))
    prior = next_prior(scenario, load_calibration(workspace.calibration_dir(iteration - 1)))
    seed = derive_seed(config.seed, iteration, "tune")
    calibration = calibrator(config.tune).fit(scenario, (session,), prior, seed, advance)
    save_calibration(calibration, workspace.calibration_dir(iteration))
