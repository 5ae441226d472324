"""The command line of the alternative tunings. Looks whether there is anything to do before it starts Prefect."""

from __future__ import annotations

import argparse
import importlib
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from flows._command import positive
from rsr.errors import ConfigError, RsrError
from rsr.reports.tuning import tuning_table
from tasks import environment
from tasks.campaign import TUNING_TABLES, Campaign, finished, opened
from tasks.presets import Tuning, settings_of
from tasks.watcher import watched


def main(tuning: Tuning, arguments: Sequence[str] | None = None) -> int:
    """Run the flow of a tuning as a command; returns the exit code."""
    chosen = _parser(tuning).parse_args(arguments)
    root = Path(chosen.workspace).resolve()
    environment.prepare(root)
    complaints = Console(stderr=True, highlight=False, soft_wrap=True)
    try:
        given = _given(chosen)
        with opened(root, TUNING_TABLES[tuning], settings_of(tuning, given, chosen.quick)) as campaign:
            _check_given(campaign, given)
            _bring_up_to_date(campaign, tuning, chosen.iterations)
    except RsrError as error:
        complaints.print(f"[bold red]{type(error).__name__}[/]", escape(str(error)))
        return 1
    except KeyboardInterrupt:
        complaints.print("Interrupted. The same command goes on from here.")
        return 130
    return 0


def _bring_up_to_date(campaign: Campaign, tuning: Tuning, iterations: int) -> None:
    console, began_s = Console(highlight=False, soft_wrap=True), time.perf_counter()
    if finished(campaign, iterations):
        console.print(f"Nothing to do: {campaign.root} is up to date through iteration {iterations}.")
    else:
        console.print(f"{tuning.upper()} in {campaign.root}; starting Prefect ...")
        flow = getattr(importlib.import_module(f"flows.{tuning}"), tuning)
        environment.quieten()
        with watched():
            flow(str(campaign.root), iterations)
        console.print(f"Finished in {time.perf_counter() - began_s:.0f} s.")
    console.print(tuning_table(campaign.workspace.rows()))
    console.print(f"Reports: {campaign.workspace.iteration_dir(0).parent / '*' / 'report.html'}")
    if campaign.workspace.waiting_path.exists():
        console.print("[bold]Waiting[/]", escape(campaign.workspace.waiting_path.read_text().strip()))


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


def _check_given(campaign: Campaign, given: Mapping[str, Any]) -> None:
    """Refuse to go on with other settings than those with which this campaign began."""
    kept = campaign.workspace.settings()
    for option, told, here in (
        ("--scenario", given.get("scenario"), kept.scenario),
        ("--seed", given.get("seed"), kept.seed),
        ("--twin-seed", given.get("reality", {}).get("seed"), kept.reality.seed),
    ):
        if told is not None and told != here:
            raise ConfigError(
                got=f"{option} {told}",
                expected=f"{here}, as in this workspace's params.yaml",
                where=str(campaign.root),
                next_step="Leave the option out, or name a new workspace.",
            )
