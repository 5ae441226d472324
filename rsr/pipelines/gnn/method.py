"""`gnn` as a method of calibration: teacher, network and evidence in one folder."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from rsr.calibration import Calibration, Calibrator, Prior
from rsr.config import GnnConfig, LoopConfig, TuneConfig
from rsr.learned.gnn import LearningProblem, fit_gnn, freed_of_noise, load_gnn
from rsr.pipelines.gnn.evaluate import as_gnn
from rsr.pipelines.gnn.settings import settings_of, teacher_by
from rsr.pipelines.methods import MethodFolders
from rsr.progress import Advance, part_of
from rsr.scenarios import Scenario
from rsr.sessions import Session
from rsr.simulators import Simulator

_IDENTIFIED = 0.3
"""Share of the progress that a teacher's identification takes."""


def gnn_calibrator(config: LoopConfig, folders: MethodFolders) -> Calibrator:
    """Make the calibrator; see `rsr.pipelines.methods.CalibratorMaker`."""
    return GnnCalibrator(config.gnn or GnnConfig(), config.tune, folders.out)


def gnn_simulator(scenario: Scenario, folder: Path) -> AbstractContextManager[Simulator]:
    """Load the network of a calibration's folder."""
    return load_gnn(scenario, folder)


@dataclass(frozen=True)
class GnnCalibrator:
    """The `Calibrator` that identifies a teacher, learns from it and from the recordings, and writes the network."""

    settings: GnnConfig
    tune: TuneConfig
    folder: Path

    def fit(
        self, scenario: Scenario, sessions: tuple[Session, ...], prior: Prior, seed: int, advance: Advance
    ) -> Calibration:
        """See `Calibrator.fit`."""
        sessions = tuple(freed_of_noise(scenario, session) for session in sessions)
        identified = part_of(advance, 0.0, _IDENTIFIED)
        teacher = teacher_by(self.tune, self.settings).fit(scenario, sessions, prior, seed, identified)
        settings = settings_of(self.settings)
        problem = LearningProblem(scenario, sessions, teacher.vector(), teacher.evidence.fitted, settings, seed)
        fit_gnn(problem, self.folder, part_of(advance, _IDENTIFIED, 1.0))
        return as_gnn(scenario, sessions, teacher, self.folder)
