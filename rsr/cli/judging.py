"""Measurements of `rsr evaluate`: a simulator against recordings, replayed open loop, and strikes one by one."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

from rsr import progress
from rsr.cli.command import say, show

if TYPE_CHECKING:
    import numpy as np

    from rsr.calibration import Calibration
    from rsr.config import LoopConfig
    from rsr.pipelines.methods import FitControls
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
    from rsr.pipelines.methods import simulator_of
    from rsr.scenarios import structured

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
    from rsr.scenarios.sensors import bias_free
    from rsr.simulators import correct_sensors, evaluate_recording

    episodes = correct_sensors(scenario, simulator, [session.episodes[index] for index in chosen], params)
    errors = channel_rms(scenario, episodes, replay(scenario, simulator, episodes, params))
    figures = {"gap": errors[scenario.gap_channel]}
    for suffix, as_recorded in (("", False), ("_as_recorded", True)):
        if not as_recorded or scenario.sensor_delays or bias_free(scenario):
            judged = evaluate_recording(scenario, session, params, start, chosen, simulator, as_recorded)
            figures |= {f"{each.name}{suffix}": judged[each.name] for each in scenario.evaluation.metrics}
    return figures


def _strikes(scenario: Scenario, session: Session, folder: Path, chosen: Sequence[int]) -> dict[str, dict[str, float]]:
    """How well single strikes are predicted: by the adapted surrogate, and by it before any recording."""
    from rsr.learned.clash import load_adapted, strikes_of
    from rsr.learned.clash.calibration import Predicted, adapted, nominal

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


# `rsr calibrate --method all`: every method on the same recordings, in a table and a figure.

COMPARISON, PICTURE = "comparison.json", "comparison.png"


def compare_methods(
    scenario: Scenario, sessions: tuple[Session, ...], settings: LoopConfig, controls: FitControls | None, out: Path
) -> int:
    """Fit with every method, one folder each below `out`; write the comparison as JSON and as a picture."""
    from rsr.calibration import METHODS, Division, save_calibration, start_prior
    from rsr.files import write_bytes, write_json
    from rsr.pipelines.methods import FitControls
    from rsr.reports.calibration import disagreements, picture_of_methods

    found, seconds = {}, {}
    for method in METHODS:
        start = time.perf_counter()
        with progress.bar(method) as advance:
            tune = settings.tune.model_copy(update={"method": method})
            fitting = (controls or FitControls(Division())).calibrator(settings.model_copy(update={"tune": tune}))
            found[method] = fitting.fit(scenario, sessions, start_prior(scenario), settings.seed, advance)
        seconds[method] = time.perf_counter() - start
        save_calibration(found[method], out / method)
    said = disagreements(found)
    rows = {method: _row(calibration, seconds[method]) for method, calibration in found.items()}
    write_json(out / COMPARISON, {"scenario": scenario.name, "methods": rows, "disagreements": said})
    write_bytes(out / PICTURE, picture_of_methods(scenario.space, found))
    _show(found, rows)
    for each in said:
        say(f"warning: {each}")
    say(str(out / PICTURE))
    return 0


def _row(calibration: Calibration, seconds: float) -> dict[str, float | str]:
    """Table of the methods; times are of the whole fit, compiling included."""
    steps, loss = calibration.trace[-1] if len(calibration.trace) else (0.0, float("nan"))
    evidence = calibration.evidence
    return {
        "gap_before": evidence.gap_before,
        "gap_after": evidence.gap_after,
        "loss": float(loss),
        "simulated_steps": float(steps),
        "seconds": seconds,
        "status": calibration.status,
        "sensitivity": calibration.checks.sensitivity,
    }


def _show(found: Mapping[str, Calibration], rows: Mapping[str, Mapping[str, float | str]]) -> None:
    table = Table(title="all methods on the same recordings", title_justify="left")
    table.add_column("figure")
    for method in found:
        table.add_column(method, justify="right")
    for name in next(iter(rows.values())):
        table.add_row(name.replace("_", " "), *(_word(row[name]) for row in rows.values()))
    for name in next(iter(found.values())).estimates:
        estimates = [calibration.estimates[name] for calibration in found.values()]
        table.add_row(name, *(f"{each.value:.4g} ({each.verdict})" for each in estimates))
    show(table)


def _word(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.4g}"
