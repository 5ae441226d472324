"""What a recorded session tells about the parameters of a scenario: its Fisher information."""

from __future__ import annotations

import numpy as np

from rsr.calibration import cut
from rsr.planning import STEP, information_by_window
from rsr.scenarios import Scenario
from rsr.sessions import Session
from rsr.simulators import MujocoSimulator


def fisher_information(scenario: Scenario, session: Session, params: np.ndarray, step: float = STEP) -> np.ndarray:
    """Information [P, P] of a session, in unconstrained coordinates; params [P] in physical units.

    Only its initial states and commands are used, not its readings.
    """
    windows = cut(scenario, session.episodes, scenario.window_steps, stride=scenario.window_steps)
    with MujocoSimulator(scenario) as simulator:
        each = information_by_window(scenario, simulator, windows.starts, windows.commands, params, step)
    return each.sum(axis=0)


def log_determinant(matrix: np.ndarray) -> float:
    """log det of information [P, P]; minus infinity where some combination of parameters is not observed at all.

    Half of it is what grows in nats when the data do; differences between sessions compare them.
    """
    sign, value = np.linalg.slogdet(matrix)
    return float(value) if sign > 0 else -np.inf
