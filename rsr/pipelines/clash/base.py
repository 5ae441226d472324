"""Before any recording: strikes simulated in MuJoCo, and the surrogate that is distilled from them."""

from __future__ import annotations

import shutil
from pathlib import Path

from rsr.calibration import save_calibration, start_calibration
from rsr.config import ClashConfig, LoopConfig, section_of
from rsr.errors import WorkspaceError
from rsr.learned.clash import (
    Surrogate,
    distil,
    generate_pairs,
    load_definition_of,
    load_pairs,
    load_shape_of,
    save_surrogate,
)
from rsr.learned.clash.surrogate import STEPS
from rsr.progress import Advance
from rsr.randomness import derive_seed
from rsr.scenarios import Scenario, load_scenario
from rsr.scenarios.built_in.strike import striking, struck_shape
from rsr.workspace import Workspace


def strikes(workspace: Workspace, iteration: int, advance: Advance) -> None:
    """Write strikes/: shards of simulated strikes on the scenario's block. What was interrupted goes on.

    DVC clears a stage's outputs before it runs again, so the shards gather in the machine's own folder first.
    """
    config, target = workspace.config(iteration), strikes_dir(workspace)
    seed = derive_seed(config.seed, iteration, "strikes")
    scenario, settings = load_scenario(config.scenario), clash_settings(config)
    unfinished = workspace.root / ".rsr" / f"strikes-{scenario.name}"
    try:
        # Resumed where it was killed: shards that are whole are kept.
        simulate(scenario, unfinished, settings, seed, advance)
    except WorkspaceError:  # begun with other settings
        shutil.rmtree(unfinished)
        simulate(scenario, unfinished, settings, seed, advance)
    # Moved in one step: an interrupted run leaves all of strikes/ or none of it.
    shutil.rmtree(target, ignore_errors=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished.rename(target)


def surrogate(workspace: Workspace, iteration: int, advance: Advance) -> None:
    """Write surrogate/, and the prior of the parameters as calibration/."""
    config = workspace.config(iteration)
    seed = derive_seed(config.seed, iteration, "surrogate")
    learn(strikes_dir(workspace), surrogate_dir(workspace), clash_settings(config), seed, advance)
    save_calibration(start_calibration(load_scenario(config.scenario)), workspace.calibration_dir(iteration))


def strikes_dir(workspace: Workspace) -> Path:
    return workspace.iteration_dir(0) / "strikes"


def surrogate_dir(workspace: Workspace) -> Path:
    return workspace.iteration_dir(0) / "surrogate"


def simulate(scenario: Scenario, folder: Path, settings: ClashConfig, seed: int, advance: Advance) -> None:
    """Simulate strikes on the block that the scenario declares, by the striker that it declares."""
    generate_pairs(struck_shape(scenario), folder, settings.pairs, seed, advance, striking(scenario))


def learn(strikes: Path, folder: Path, settings: ClashConfig, seed: int, advance: Advance) -> Surrogate:
    """Distil a surrogate from simulated strikes and write it with what it achieves on some it did not see."""
    definition, steps = load_definition_of(strikes), settings.train_steps or STEPS
    learnt = distil(load_shape_of(strikes), load_pairs(strikes), steps, seed, advance, definition)
    evidence = {"accuracy": learnt.table_one.scaled, "accuracy_low_damping": learnt.bouncy.scaled}
    save_surrogate(folder, learnt.surrogate, evidence | {"accuracy_raw": learnt.table_one.raw})
    return learnt.surrogate


def clash_settings(config: LoopConfig) -> ClashConfig:
    """The section `clash`; see `section_of`."""
    return section_of(config.clash, "clash", "those of a campaign of CLASH")
