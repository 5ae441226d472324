"""What `rsr evaluate` measures: a simulator against recordings, replayed open loop, and strikes one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

from rsr.cli.screen import show

if TYPE_CHECKING:
    import numpy as np

    from rsr.calibration import Calibration
    from rsr.scenarios import Scenario
    from rsr.scenarios.metrics import StartName
    from rsr.sessions import Session
    from rsr.simulators import Simulator


def figures_of(
    scenario: Scenario,
    session: Session,
    calibration: Calibration | None,
    folder: Path | None,
    chosen: Sequence[int],
    start: StartName,
) -> dict[str, dict[str, float]]:
    """The gap and the scenario's own metrics: "nominal" or "calibration" -> name -> figure.

    Where sensors are wrong, figures are of what is left once they are put right, and further ones `as_recorded`.

    Args:
        folder: of the calibration; a method that learns a simulator left it there.
    """
    from rsr.scenarios import structured
    from rsr.steps.methods import simulator_of

    figures = {}
    with simulator_of(scenario, None, None) as plain:
        figures["nominal"] = _judged(scenario, session, scenario.space.nominal, chosen, start, plain)
    if calibration is not None:
        values = {name: estimate.value for name, estimate in calibration.estimates.items()}
        own = structured(scenario, calibration.structure)
        with simulator_of(own, calibration.method, folder) as simulator:
            params = scenario.space.vector(values)
            figures["calibration"] = _judged(own, session, params, chosen, start, simulator)
    if calibration is not None and folder is not None and calibration.method == "clash":
        for name, more in _strikes(scenario, session, folder, chosen).items():
            figures[name] |= more
    return figures


def _judged(
    scenario: Scenario,
    session: Session,
    params: np.ndarray,
    chosen: Sequence[int],
    start: StartName,
    simulator: Simulator,
) -> dict[str, float]:
    from rsr.calibration import channel_rms, replay
    from rsr.scenarios.zeros import zeroed
    from rsr.simulators import evaluate_recording, put_right

    episodes = put_right(scenario, simulator, [session.episodes[index] for index in chosen], params)
    errors = channel_rms(scenario, episodes, replay(scenario, simulator, episodes, params))
    figures = {"gap": errors[scenario.gap_channel]}
    for suffix, as_recorded in (("", False), ("_as_recorded", True)):
        if not as_recorded or scenario.shifts or zeroed(scenario):
            judged = evaluate_recording(scenario, session, params, start, chosen, simulator, as_recorded)
            figures |= {f"{each.name}{suffix}": judged[each.name] for each in scenario.evaluation.metrics}
    return figures


def _strikes(scenario: Scenario, session: Session, folder: Path, chosen: Sequence[int]) -> dict[str, dict[str, float]]:
    """How well single strikes are predicted: by the adapted surrogate, and by it before any recording."""
    from rsr.clash import load_adapted
    from rsr.clash.recordings import strikes_of
    from rsr.clash.tuning import Predicted, adapted, nominal

    model = load_adapted(folder)
    picked = [session.episodes[index] for index in chosen]
    found = strikes_of(scenario, [replace(session, episodes=tuple(picked))]).strikes
    predictors = {"nominal": nominal(model.surrogate), "calibration": adapted(model)}
    judged = {name: Predicted(found, *predict(found.strikes)) for name, predict in predictors.items()}
    return {name: _named(asdict(each.figures(model.shape))) for name, each in judged.items()}


def _named(figures: Mapping[str, float]) -> dict[str, float]:
    return {name if name == "strikes" else f"strike_{name}": value for name, value in figures.items()}


def show_figures(figures: Mapping[str, Mapping[str, float]], count: int) -> None:
    table = Table(title=f"{count} episodes, replayed open loop", title_justify="left")
    table.add_column("figure")
    for name in figures:
        table.add_column(name, justify="right")
    for name in figures["nominal"]:
        table.add_row(name, *(f"{found[name]:.4g}" for found in figures.values()))
    show(table)
