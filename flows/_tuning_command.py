"""The command line of the alternative tunings. Looks whether there is anything to do before it starts Prefect."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from flows._command import check_given, exit_code, positive, run_unless_finished, tell
from rsr.reports.tuning import tuning_table
from tasks import environment
from tasks.campaign import TUNING_TABLES, Campaign, opened
from tasks.presets import Tuning, settings_of


def main(tuning: Tuning, arguments: Sequence[str] | None = None) -> int:
    """Run the flow of a tuning as a command; returns the exit code."""
    chosen = _parser(tuning).parse_args(arguments)
    root = Path(chosen.workspace).resolve()
    environment.prepare(root)

    def work() -> None:
        given = _given(chosen)
        with opened(root, TUNING_TABLES[tuning], settings_of(tuning, given, chosen.quick)) as campaign:
            check_given(campaign, _beside(campaign, given))
            _bring_up_to_date(campaign, tuning, chosen.iterations)

    return exit_code(work)


def _bring_up_to_date(campaign: Campaign, tuning: Tuning, iterations: int) -> None:
    def run() -> None:
        flow = getattr(importlib.import_module(f"flows.{tuning}"), tuning)
        environment.quieten()
        flow(str(campaign.root), iterations)

    run_unless_finished(campaign, iterations, tuning.upper(), run)
    tell(campaign, tuning_table(campaign.workspace.rows()))


def _parser(tuning: Tuning) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(f"python -m flows.{tuning}", description="Learn a simulator of contact.")
    add = parser.add_argument
    add("--workspace", default=tuning, help=f"folder of the campaign; made if it does not exist (default: {tuning})")
    add("--iterations", type=positive, default=1, help="length of the chain, those already done included (default: 1)")
    add("--scenario", help="a built-in scenario or the path of a YAML file; for a new workspace")
    add("--seed", type=int, help="of everything random; for a new workspace (default: 0)")
    add("--twin-seed", type=int, help="which stand-in for reality; for a new workspace (default: 1)")
    add("--quick", action="store_true", help="a small model, to see everything run; for a new workspace")
    return parser


def _given(chosen: argparse.Namespace) -> dict[str, Any]:
    """What the command line says of the settings."""
    given = {name: getattr(chosen, name) for name in ("scenario", "seed") if getattr(chosen, name) is not None}
    return given if chosen.twin_seed is None else given | {"reality": {"seed": chosen.twin_seed}}


def _beside(campaign: Campaign, given: Mapping[str, Any]) -> tuple[tuple[str, object, object], ...]:
    """What was given beside what the campaign has: name, given, kept."""
    kept = campaign.workspace.settings()
    return (
        ("--scenario", given.get("scenario"), kept.scenario),
        ("--seed", given.get("seed"), kept.seed),
        ("--twin-seed", given.get("reality", {}).get("seed"), kept.reality.seed),
    )
