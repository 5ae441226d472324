"""`gnn` as a method of calibration, for whoever has sessions: teacher, network and evidence in one folder."""

from __future__ import annotations

from pathlib import Path

from rsr.calibration import Calibration, Prior, save_calibration
from rsr.config import GnnConfig, TuneConfig
from rsr.gnn.tuning import fit_gnn
from rsr.progress import Advance
from rsr.scenarios import Scenario
from rsr.sessions import Session
from rsr.steps.gnn.evidence import as_gnn
from rsr.steps.gnn.pieces import settings_of, teacher_by

_IDENTIFIED = 0.3


def calibrate(
    folder: Path,
    scenario: Scenario,
    sessions: tuple[Session, ...],
    prior: Prior,
    tune: TuneConfig,
    seed: int,
    advance: Advance,
    settings: GnnConfig,
) -> Calibration:
    """Identify a teacher, learn from it and from the recordings, and write all of it into `folder`."""

    def identifying(share: float, words: str = "") -> None:
        advance(_IDENTIFIED * share, words)

    def learning(share: float, words: str = "") -> None:
        advance(_IDENTIFIED + (1 - _IDENTIFIED) * share, words)

    teacher = teacher_by(tune, settings).fit(scenario, sessions, prior, seed, identifying)
    fitted = teacher.evidence.fitted
    fit_gnn(scenario, sessions, teacher.vector(), fitted, settings_of(settings), seed, folder, learning)
    calibration = as_gnn(scenario, sessions, teacher, folder)
    save_calibration(calibration, folder)
    return calibration
