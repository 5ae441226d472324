"""Real tosses of a cube: a network taught by identified MuJoCo and fine-tuned on thirty of them, beside its teacher."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from _common import Figure

from rsr.calibration import Calibration, calibrator, load_calibration, save_calibration, start_prior
from rsr.common import bar, ignore, read_json
from rsr.config import GnnConfig, TuneConfig
from rsr.learned.gnn import RECORD, LearningProblem, fit_gnn, freed_of_noise
from rsr.scenarios import Scenario, load_scenario
from rsr.sessions import Session, read_contactnets

FITTED = 30
_FILE = "contactnets_cube_tosses.parquet"
_BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"


def tosses(folder: Path, quick: bool) -> dict[str, Figure]:
    """Judge on all tosses that nothing was fitted to; each throw counts once."""
    path = Path(os.environ.get("RSR_SHARED_DATA", _BESIDE)) / _FILE
    if not path.is_file():
        return {"tosses": f"no {_FILE}"}
    scenario = load_scenario("cube_toss")
    session = freed_of_noise(scenario, read_contactnets(path))
    if not (folder / RECORD).is_file():
        _fit(scenario, session, folder, quick)
    record = read_json(folder / RECORD)
    figures: dict[str, Figure] = {"toss_chosen": record["chosen"]}
    for name, errors in record["errors"].items():
        plain = name.replace("-", "_")
        figures[f"toss_position_percent_{plain}"] = errors["position_error_percent"]
        figures[f"toss_rotation_deg_{plain}"] = errors["rotation_error_deg"]
    return figures


def _fit(scenario: Scenario, session: Session, folder: Path, quick: bool) -> None:
    if quick:
        few = replace(session, episodes=session.episodes[:8])
        settings = GnnConfig(trajectories=20, steps=3, finetune_steps=2)
        fit_gnn(LearningProblem(scenario, (few,), scenario.space.nominal, range(5), settings, 0), folder, ignore)
        return
    teacher = _identified(scenario, session, folder / "teacher")
    with bar("tosses") as advance:
        problem = LearningProblem(scenario, (session,), teacher.vector(), teacher.evidence.fitted, GnnConfig(), 0)
        fit_gnn(problem, folder, advance)


def _identified(scenario: Scenario, session: Session, folder: Path) -> Calibration:
    if not folder.is_dir():
        with bar("identify tosses") as advance:
            fitting = calibrator(TuneConfig(method="cmaes", fit_episodes=FITTED))
            save_calibration(fitting.fit(scenario, (session,), start_prior(scenario), 0, advance), folder)
    return load_calibration(folder)
