"""Reading what a report shows. A piece that is missing or damaged is noted as such and leaves the others standing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from rsr.calibration import Calibration, Replays, load_calibration, load_replays
from rsr.common import DAMAGED, ConfigError, RsrError, read_arrays, read_json
from rsr.config import LoopConfig
from rsr.reports.chain import reality_name
from rsr.reports.key_figures import Row
from rsr.scenarios import ProgressFigure, Scenario, Task, has_task, load_scenario, task_of
from rsr.sessions import Session, read_session
from rsr.workspace import Workspace

Arrays = Mapping[str, np.ndarray]
T = TypeVar("T")

COMPARED = ("real", "simulated", "tuned", "retrained")
"""Closed-loop episodes: as recorded; the deployed policy in the simulator before and after tuning; the policy after."""
_STEPS = ("collect", "tune", "infogap", "retrain", "evaluate")
_DAMAGE = (*DAMAGED, AttributeError, RsrError)


@dataclass(frozen=True)
class ReportData:
    """All that the report of one iteration is made of. What could not be read is None, and `missing` says why.

    Args:
        rows: metrics.json of this iteration and of those before it.
        before, after: calibration k-1, under which the session's policy was trained, and k.
        replays: held-out episodes replayed open loop.
        task: None where the scenario has none.
        rollouts: of closed-loop episodes, read by `figure_of`; see `rsr.pipelines.loop.evaluate`.
        curves: iteration -> learning curve of the policy trained in it.
        card: of the policy trained in this iteration.
        missing: piece -> reason.
    """

    workspace: Workspace
    iteration: int
    config: LoopConfig
    scenario: Scenario
    task: Task | None
    rows: tuple[Row, ...]
    session: Session | None
    before: Calibration | None
    after: Calibration | None
    replays: Replays | None
    rollouts: Arrays | None
    curves: Mapping[int, Sequence[Mapping[str, float]]]
    card: Mapping[str, Any] | None
    infogap: Mapping[str, float] | None
    receipts: tuple[Mapping[str, Any], ...]
    missing: Mapping[str, str] = field(default_factory=dict)

    @property
    def row(self) -> Row:
        """This iteration's figures, or none at all."""
        return next((row for row in self.rows if row.get("iteration") == self.iteration), {})

    @property
    def simulated(self) -> bool:
        """Whether the recordings come from a simulated stand-in."""
        return self.session.card.simulated if self.session else self.config.reality.kind == "stand_in"

    @property
    def reality(self) -> str:
        return reality_name(self.simulated)

    @property
    def deciding(self) -> tuple[ProgressFigure, ...]:
        """The figures that decide about success, or all where none does."""
        figures = () if self.task is None else self.task.figures
        return tuple(figure for figure in figures if figure.tolerance is not None) or figures

    def why(self, piece: str) -> str:
        return self.missing.get(piece, "It is empty.")


def figure_of(rollouts: Arrays, compared: str, figure: ProgressFigure) -> np.ndarray:
    """A figure of the task [episodes, times] in one of `COMPARED`."""
    return rollouts[f"{compared}.figure.{figure.name}"]


def read_report_data(workspace: Workspace, iteration: int) -> ReportData:
    """Read everything there is of an iteration.

    Raises:
        ConfigError: the iteration was never planned.
    """
    if iteration not in workspace.chain():
        raise ConfigError(
            got=f"iteration {iteration}",
            expected=f"one of {', '.join(map(str, workspace.chain())) or 'none yet'}",
            where=str(workspace.chain_path),
            next_step="Choose one of the chain; `rsr status` shows it.",
        )
    reader, config = _Reader(workspace.root), workspace.config(iteration)
    calibration, scenario = workspace.calibration_dir, load_scenario(workspace.config(iteration).scenario)
    task = task_of(scenario) if has_task(scenario) else None
    return ReportData(
        workspace=workspace,
        iteration=iteration,
        config=config,
        scenario=scenario,
        task=task,
        rows=tuple(_rows(reader, workspace, iteration)),
        session=reader.read("session", read_session, workspace.session_dir(iteration)),
        before=reader.read("calibration before", load_calibration, calibration(iteration - 1)),
        after=reader.read("calibration", load_calibration, calibration(iteration)),
        replays=reader.read("replays", load_replays, calibration(iteration)),
        rollouts=reader.arrays("rollouts", workspace.evaluation_dir(iteration) / "rollouts.npz", _arrays_of(task)),
        curves=_curves(reader, workspace, iteration),
        card=reader.read("policy", _document, workspace.policy_dir(iteration) / "policy.json"),
        infogap=reader.read("infogap", _document, workspace.infogap_dir(iteration) / "infogap.json"),
        receipts=tuple(_receipts(reader, workspace, iteration)),
        missing=reader.missing,
    )


def _arrays_of(task: Task | None) -> tuple[str, ...]:
    if task is None:
        return ()
    kinds = [f"figure.{figure.name}" for figure in task.figures] + (["plane"] if task.plane else [])
    return tuple(f"{compared}.{kind}" for compared in COMPARED for kind in kinds)


class _Reader:
    """Reads, and notes why something could not be read."""

    def __init__(self, root: Path) -> None:
        self.missing: dict[str, str] = {}
        self._root = root

    def read(self, piece: str, function: Callable[[Path], T], path: Path) -> T | None:
        try:
            return function(path)
        except _DAMAGE as error:
            self.missing[piece] = f"{path.relative_to(self._root)}: {self._reason(path, error)}."
            return None

    def _reason(self, path: Path, error: Exception) -> str:
        """Say what is wrong without this machine's paths, which have no place in a page that is passed on."""
        if isinstance(error, RsrError):
            return f"got {error.got}"
        return f"{type(error).__name__}: {error}" if path.exists() else "no such file"

    def arrays(self, piece: str, path: Path, names: tuple[str, ...]) -> Arrays | None:
        def checked(file: Path) -> Arrays:
            arrays = read_arrays(file)
            if lacking := [name for name in names if name not in arrays]:
                raise ValueError(f"no array {', '.join(lacking)}")
            return arrays

        return self.read(piece, checked, path)


def _document(path: Path) -> dict[str, Any]:
    document = read_json(path)
    if not isinstance(document, dict):
        raise TypeError(f"a {type(document).__name__} in place of an object")
    return document


def _curve(path: Path) -> list[dict[str, float]]:
    return [{key: float(point[key]) for key in ("steps", "mean_return", "success")} for point in read_json(path)]


def _rows(reader: _Reader, workspace: Workspace, iteration: int) -> list[Row]:
    numbers = [number for number in workspace.chain() if number <= iteration]
    rows = [reader.read(f"metrics {number}", _document, workspace.metrics_path(number)) for number in numbers]
    return [row for row in rows if row]


def _curves(reader: _Reader, workspace: Workspace, iteration: int) -> dict[int, list[dict[str, float]]]:
    found = {
        number: reader.read(f"curve {number}", _curve, workspace.policy_dir(number) / "curve.json")
        for number in range(iteration + 1)
    }
    return {number: curve for number, curve in found.items() if curve}


def _receipts(reader: _Reader, workspace: Workspace, iteration: int) -> list[Mapping[str, Any]]:
    """Receipts in the order of the loop; the report's own does not exist yet when it is written."""
    paths = [path for path in workspace.receipts_dir(iteration).glob("*.json") if path.stem != "report"]
    paths.sort(key=lambda path: (_STEPS.index(path.stem) if path.stem in _STEPS else len(_STEPS), path.stem))
    found = [reader.read(f"receipt {path.stem}", _document, path) for path in paths]
    return [receipt for receipt in found if receipt]
