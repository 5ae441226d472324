"""Every method of calibration behind one call: those that search for parameters, and those that learn a simulator."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rsr.calibration import METHODS, Calibration, Prior, calibrator, save_calibration
from rsr.config import ClashConfig, GnnConfig, LoopConfig
from rsr.errors import ConfigError
from rsr.progress import Advance
from rsr.scenarios import Scenario
from rsr.sessions import Session
from rsr.simulators import MujocoSimulator, Simulator

LEARNING = ("clash", "gnn")
"""Methods that leave a simulator of their own in the folder, beside the parameters."""


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
) -> Calibration:
    """Calibrate by the method that the settings name, and write all that came of it into a folder.

    Args:
        base: of learning methods: the model before any recording; made there if there is none.
        previous: of learning methods: the calibration that goes before.
    """
    method = check_method(config.tune.method)
    if method == "clash":
        from rsr.steps.clash.method import calibrate

        fit, settings = config.tune.fit_episodes, config.clash or ClashConfig()
        return calibrate(folder, scenario, sessions, prior, fit, seed, advance, settings, base, previous)
    if method == "gnn":
        from rsr.steps.gnn.method import calibrate as learn

        return learn(folder, scenario, sessions, prior, config.tune, seed, advance, config.gnn or GnnConfig())
    calibration = calibrator(config.tune).fit(scenario, sessions, prior, seed, advance)
    save_calibration(calibration, folder)
    return calibration


def check_method(method: str) -> str:
    """Refuse a name that no method has."""
    if method not in (*METHODS, *LEARNING):
        raise ConfigError(
            got=f"calibration method '{method}'",
            expected=f"one of {', '.join((*METHODS, *LEARNING))}",
            where="tune.method",
            next_step="Correct it in params.yaml or on the command line.",
        )
    return method


@contextmanager
def simulator_of(scenario: Scenario, method: str | None, folder: Path | None) -> Iterator[Simulator]:
    """The simulator that a calibration stands for: its own where the method learns one, else MuJoCo."""
    if method == "clash" and folder is not None:
        from rsr.clash import load_adapted
        from rsr.clash.simulator import HybridSimulator

        with HybridSimulator(scenario, load_adapted(folder), threads=2) as hybrid:
            yield hybrid
        return
    if method == "gnn" and folder is not None:
        from rsr.gnn.tuning import load_gnn

        with load_gnn(scenario, folder) as learnt:
            yield learnt
        return
    with MujocoSimulator(scenario) as simulator:
        yield simulator
