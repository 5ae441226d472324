"""`gnn` as a method of calibration, for whoever has sessions: teacher, network and evidence in one folder."""

from __future__ import annotations

from pathlib import Path

from rsr.calibration import Calibration, Prior, save_calibration
from rsr.config import GnnConfig, TuneConfig
from rsr.gnn.tuning import Lesson, fit_gnn
from rsr.progress import Advance, part_of
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
    teacher = teacher_by(tune, settings).fit(scenario, sessions, prior, seed, part_of(advance, 0.0, _IDENTIFIED))
    lesson = Lesson(scenario, sessions, teacher.vector(), teacher.evidence.fitted, settings_of(settings), seed)
    fit_gnn(lesson, folder, part_of(advance, _IDENTIFIED, 1.0))
    calibration = as_gnn(scenario, sessions, teacher, folder)
    save_calibration(calibration, folder)
    return calibration
