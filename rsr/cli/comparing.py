"""`rsr calibrate --method all`: every method on the same recordings, in a table and a figure."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

from rsr import progress
from rsr.cli.screen import say, show

if TYPE_CHECKING:
    from rsr.calibration import Calibration
    from rsr.config import TuneConfig
    from rsr.scenarios import Scenario
    from rsr.sessions import Session

COMPARISON, PICTURE = "comparison.json", "comparison.png"


def compare_methods(
    scenario: Scenario, sessions: tuple[Session, ...], settings: TuneConfig, seed: int, out: Path
) -> int:
    """Fit with every method, one folder each below `out`; write the comparison as JSON and as a picture."""
    from rsr.calibration import METHODS, calibrator, save_calibration, start_prior
    from rsr.files import write_bytes, write_json
    from rsr.reports.comparison import disagreements, picture_of_methods

    found, seconds = {}, {}
    for method in METHODS:
        start = time.perf_counter()
        with progress.bar(method) as advance:
            fitting = calibrator(settings.model_copy(update={"method": method}))
            found[method] = fitting.fit(scenario, sessions, start_prior(scenario), seed, advance)
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
    """What is compared; times are of the whole fit, compiling included."""
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
