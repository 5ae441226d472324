"""Adapt the surrogate to the iteration's strikes, and to all that came before them."""

from __future__ import annotations

from pathlib import Path

from rsr.calibration import Calibration, Prior, load_calibration, next_prior
from rsr.clash import load_surrogate
from rsr.clash.learning import reproducible
from rsr.clash.recordings import strikes_of
from rsr.clash.surrogate import Surrogate
from rsr.clash.tuning import tune
from rsr.progress import Advance
from rsr.randomness import derive_seed
from rsr.scenarios import Scenario, load_scenario
from rsr.sessions import Session, read_session
from rsr.steps.clash.base import surrogate_dir
from rsr.steps.clash.calibration import known_in, predictor_in, save_tuned
from rsr.workspace import Workspace


def adapt(workspace: Workspace, iteration: int, advance: Advance) -> None:
    """Write calibration/: identified parameters, the residual, how the block slides, and what that is worth."""
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


def adapt_to(
    scenario: Scenario,
    sessions: tuple[Session, ...],
    surrogate: Surrogate,
    prior: Prior,
    fit: int,
    seed: int,
    folder: Path,
    previous: Path,
) -> Calibration:
    """Adapt to the first `fit` strikes of the sessions and to those that the model in `previous` knows."""
    shape = surrogate.shape
    recordings = strikes_of(scenario, sessions)
    before, earlier = predictor_in(previous, surrogate), known_in(previous, shape)
    with reproducible(seed):  # whatever the machine's number of cores
        tuned = tune(surrogate, recordings, fit, before, earlier, seed)
        return save_tuned(folder, scenario, tuned, prior)
