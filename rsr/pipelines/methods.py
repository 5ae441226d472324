"""Registry of the calibration methods: those that search for parameters, and those that also learn a simulator.

`rsr.calibration` and `rsr.learned` do not import each other, so the names of all methods meet here. One that learns has
a maker of a `Calibrator` and one of the simulator that its parameters belong to, both named by text ("module:name"), so
that reading the registry loads neither torch nor JAX. A new method is a line in `REGISTRY`.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

from rsr.calibration import (
    FOLDER,
    METHODS,
    Calibration,
    Calibrator,
    Division,
    Effort,
    Prior,
    calibrator,
    save_calibration,
)
from rsr.common import Advance, ConfigError, check_choice, load
from rsr.config import LoopConfig
from rsr.scenarios import Scenario, capabilities
from rsr.sessions import Session
from rsr.simulators import MujocoSimulator, Simulator


@dataclass(frozen=True)
class MethodFolders:
    """Folders of a calibration.

    Args:
        out: of the result; learning methods write their model there.
        base: of learning methods: the model before any recording; made there if there is none, by default below `out`.
        previous: of learning methods: the calibration before this one.
    """

    out: Path
    base: Path | None = None
    previous: Path | None = None


@dataclass(frozen=True)
class Method:
    """A method that learns a simulator, both makers as "module:name".

    Args:
        calibrator: `CalibratorMaker`.
        simulator: `SimulatorMaker`.
    """

    calibrator: str
    simulator: str


@dataclass(frozen=True)
class FitControls:
    """Choices for one fit that only methods which search for parameters have.

    Args:
        budget: points that the search may evaluate; by default as many as usual.
    """

    division: Division = field(default_factory=Division)
    budget: int | None = None


USUAL = FitControls()
CalibratorMaker = Callable[[LoopConfig, MethodFolders], Calibrator]
SimulatorMaker = Callable[[Scenario, Path], AbstractContextManager[Simulator]]
"""(scenario, folder of the calibration) -> the simulator to use its parameters with."""

REGISTRY: dict[str, Method | None] = {
    **dict.fromkeys(METHODS),
    "clash": Method("rsr.pipelines.clash.stages:ClashCalibrator", "rsr.pipelines.clash.stages:clash_simulator"),
    "gnn": Method("rsr.pipelines.gnn.stages:GnnCalibrator", "rsr.learned.gnn:load_gnn"),
}
"""Every method by name; None for a search, whose parameters belong to plain MuJoCo."""


def make_calibrator(config: LoopConfig, folders: MethodFolders, controls: FitControls = USUAL) -> Calibrator:
    """Make the calibrator of the method that `tune.method` names; a search needs no folder.

    Raises:
        ConfigError: there is no such method, or it learns a simulator and has no such controls.
    """
    method = REGISTRY[check_method(config.tune.method)]
    if method is None:
        effort = {} if controls.budget is None else {"effort": Effort(budget=controls.budget)}
        return calibrator(config.tune, division=controls.division, keep=folders.out / FOLDER, **effort)
    if controls != USUAL:
        raise ConfigError(
            got=f"method '{config.tune.method}' with --judge, --hold-out, --stratify or --budget",
            expected=f"one of {', '.join(METHODS)}: others divide recordings and spend time in their own ways",
            where="command line",
            next_step="Leave these options out, or choose another method.",
        )
    maker: CalibratorMaker = load(method.calibrator)
    return maker(config, folders)


def tune_into(
    folder: Path,
    scenario: Scenario,
    sessions: tuple[Session, ...],
    prior: Prior,
    config: LoopConfig,
    seed: int,
    advance: Advance,
    base: Path | None = None,
    previous: Path | None = None,
    controls: FitControls = USUAL,
) -> Calibration:
    """Calibrate by the method that the settings name, and write the result into a folder (`MethodFolders`).

    A second call after the first was killed goes on after the last search that had ended.
    """
    fitting = make_calibrator(config, MethodFolders(folder, base, previous), controls)
    capabilities.check_method(scenario, check_method(config.tune.method), config.tune.sensitivity)
    calibration = fitting.fit(scenario, sessions, prior, seed, advance)
    save_calibration(calibration, folder)
    shutil.rmtree(folder / FOLDER, ignore_errors=True)
    return calibration


def check_method(method: str) -> str:
    """Refuse a name that no method has."""
    check_choice(
        method,
        tuple(REGISTRY),
        got=f"calibration method '{method}'",
        where="tune.method",
        next_step="Correct it in params.yaml or on the command line.",
    )
    return method


def simulator_of(scenario: Scenario, method: str | None, folder: Path | None) -> AbstractContextManager[Simulator]:
    """Make the simulator that a calibration's parameters belong to; MuJoCo for the nominal ones."""
    learning = None if folder is None or method is None else REGISTRY.get(method)
    if folder is None or learning is None:
        return MujocoSimulator(scenario)
    maker: SimulatorMaker = load(learning.simulator)
    return maker(scenario, folder)
