"""Registry of the calibration methods: those that search for parameters, and those that also learn a simulator.

`rsr.calibration` and `rsr.learned` do not import each other, so the names of all methods meet here. Each name has a
maker of a `Calibrator` and one of the simulator that its parameters belong to, both named by text
("module:function"), so that reading the registry loads neither torch nor JAX. A new method is a line in `REGISTRY`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from rsr.calibration import METHODS, Calibration, Calibrator, Division, Effort, Prior, calibrator, save_calibration
from rsr.config import LoopConfig
from rsr.errors import ConfigError, check_choice
from rsr.progress import Advance
from rsr.scenarios import Scenario, capabilities
from rsr.sessions import Session
from rsr.simulators import MujocoSimulator, Simulator
from rsr.spreading import load


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
    """A method of calibration, both makers as "module:function".

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

    division: Division
    budget: int | None = None

    def calibrator(self, config: LoopConfig) -> Calibrator:
        """Make the calibrator; refuses a method that learns a simulator."""
        if config.tune.method not in METHODS:
            raise ConfigError(
                got=f"method '{config.tune.method}' with --judge, --hold-out, --stratify or --budget",
                expected=f"one of {', '.join(METHODS)}: others divide recordings and spend time in their own ways",
                where="command line",
                next_step="Leave these options out, or choose another method.",
            )
        return calibrator(config.tune, None if self.budget is None else Effort(budget=self.budget), self.division)


CalibratorMaker = Callable[[LoopConfig, MethodFolders], Calibrator]
SimulatorMaker = Callable[[Scenario, Path], AbstractContextManager[Simulator]]
"""(scenario, folder of the calibration) -> the simulator to use its parameters with."""

_SEARCH = Method("rsr.pipelines.methods:search_calibrator", "rsr.pipelines.methods:mujoco_simulator")
REGISTRY: dict[str, Method] = {
    **dict.fromkeys(METHODS, _SEARCH),
    "clash": Method("rsr.pipelines.clash.method:clash_calibrator", "rsr.pipelines.clash.method:clash_simulator"),
    "gnn": Method("rsr.pipelines.gnn.method:gnn_calibrator", "rsr.pipelines.gnn.method:gnn_simulator"),
}


def search_calibrator(config: LoopConfig, folders: MethodFolders) -> Calibrator:
    """Make the calibrator of a method that searches for parameters; it needs no folder."""
    return calibrator(config.tune)


def mujoco_simulator(scenario: Scenario, folder: Path) -> AbstractContextManager[Simulator]:
    """Make plain MuJoCo: a search changes parameters only."""
    return MujocoSimulator(scenario)


def make_calibrator(config: LoopConfig, folders: MethodFolders) -> Calibrator:
    """Make the calibrator of the method that `tune.method` names."""
    maker: CalibratorMaker = load(REGISTRY[check_method(config.tune.method)].calibrator)
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
    controls: FitControls | None = None,
) -> Calibration:
    """Calibrate by the method that the settings name, and write the result into a folder (`MethodFolders`).

    Args:
        controls: by default, as usual.
    """
    capabilities.check_method(scenario, check_method(config.tune.method), config.tune.sensitivity)
    if controls is None:
        fitting = make_calibrator(config, MethodFolders(folder, base, previous))
    else:
        fitting = controls.calibrator(config)
    calibration = fitting.fit(scenario, sessions, prior, seed, advance)
    save_calibration(calibration, folder)
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
    if folder is None or method not in REGISTRY:
        return MujocoSimulator(scenario)
    maker: SimulatorMaker = load(REGISTRY[method].simulator)
    return maker(scenario, folder)
