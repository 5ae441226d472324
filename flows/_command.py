"""The command line of all campaigns. Looks whether there is anything to do before it starts Prefect."""

from __future__ import annotations

import argparse
import signal
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, get_args

from rich.console import Console, RenderableType
from rich.markup import escape

from rsr.cli.command import version_line
from rsr.common import ConfigError, load, show_whole, tolerate_ascii
from rsr.config import LoopConfig
from rsr.reports import chain_table, is_simulated, read_rows, tuning_table, verdict_sentence
from rsr.workspace import SCENARIO_DIR, Workspace
from rsr_flows._embedded_server import ServerLost, understood, with_server
from rsr_flows._supervisor import give_up
from rsr_tasks import environment, terminal, versions
from rsr_tasks.begin import check_usable
from rsr_tasks.campaign import TABLES, Campaign, Pipeline, finished, opened, pipeline_of, settings_of
from rsr_tasks.own_scenario import is_same
from rsr_tasks.watcher import watched
from rsr_tasks.workspace import is_new

FLOWS: dict[Pipeline, str] = {
    "loop": "rsr_flows.rsr_loop:rsr_loop",
    "clash": "rsr_flows.clash:clash",
    "gnn": "rsr_flows.gnn:gnn",
}
_TITLES: dict[Pipeline, str] = {"loop": "Real-Sim-Real", "clash": "CLASH", "gnn": "GNN"}


def main(arguments: Sequence[str] | None = None, table: str | None = None) -> int:
    """Run a campaign's flow as a command; returns the exit code.

    Args:
        arguments: of the command line.
        table: "module:name" of the steps; by default those of the campaign's kind.
    """
    chosen = _parser().parse_args(arguments)
    root = Path(chosen.workspace).resolve()
    environment.prepare(root)

    def work() -> None:
        pipeline = _pipeline(root, chosen)
        steps, config = table or TABLES[pipeline], _config(chosen, pipeline)
        if config is not None and is_new(root):
            check_usable(config, root)
        with opened(root, steps, config) as campaign:
            _check_given(campaign, _beside(campaign, chosen, pipeline))
            _bring_up_to_date(campaign, pipeline, chosen.iterations, steps)

    return exit_code(work, root)


def exit_code(work: Callable[[], None], root: Path) -> int:
    """Do it in this workspace; an error is reported once, without a traceback."""
    tolerate_ascii()
    try:
        work()
    except Exception as error:
        found = understood(error, root)
        # Prefect would go on for minutes to tell a lost server of each task.
        if not (isinstance(found, ServerLost) and give_up(found)):
            terminal.complain(found)
        return 1
    except KeyboardInterrupt:  # which `supervised` reports
        return 128 + signal.SIGINT
    return 0


def _pipeline(root: Path, chosen: argparse.Namespace) -> Pipeline:
    """The kind of the campaign that is there, otherwise of the one that begins."""
    workspace = Workspace(root)
    return pipeline_of(workspace.settings()) if workspace.settings_path.exists() else chosen.pipeline or "loop"


def _bring_up_to_date(campaign: Campaign, pipeline: Pipeline, iterations: int, table: str) -> None:
    _run_unless_finished(campaign, pipeline, iterations, table)
    if pipeline != "loop":
        _show_result(campaign, tuning_table(campaign.workspace.rows()))
        return
    rows, simulated = read_rows(campaign.workspace), is_simulated(campaign.workspace)
    chain = [chain_table(rows, simulated)] if rows else []
    _show_result(campaign, *chain, verdict_sentence(rows, simulated))


def _run_unless_finished(campaign: Campaign, pipeline: Pipeline, iterations: int, table: str) -> None:
    """Run the flow, which loads Prefect, only if there is something to do."""
    console, began_s = Console(highlight=False, soft_wrap=True), time.perf_counter()
    if finished(campaign, iterations):
        console.print(f"Nothing to do: {escape(str(campaign.root))} is up to date through iteration {iterations}.")
        return
    console.print(f"{_TITLES[pipeline]} in {escape(str(campaign.root))}; starting Prefect ...")
    terminal.divert(campaign.root / ".rsr" / "loop.log")
    with watched(), with_server(campaign.root):
        load(FLOWS[pipeline])(str(campaign.root), iterations, table=table)
    console.print(f"Finished in {time.perf_counter() - began_s:.0f} s.")


def _show_result(campaign: Campaign, *figures: RenderableType) -> None:
    """Show what was achieved, where the reports are, and what a person has to do."""
    console = Console(highlight=False, soft_wrap=True)
    show_whole(console, *figures)
    reports = campaign.workspace.iteration_dir(0).parent / "*" / "report.html"
    if any(reports.parent.parent.glob("*/report.html")):
        console.print(f"Reports: {escape(str(reports))}")
    if words := versions.detached(campaign.root):
        console.print("[bold]Note[/]", escape(words))
    if campaign.workspace.waiting_path.exists():
        console.print("[bold]Waiting[/]", escape(campaign.workspace.waiting_path.read_text().strip()))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("rsr-loop", description="Bring a campaign up to date: the loop, CLASH or GNN.")
    add = parser.add_argument
    add("--version", action="version", version=version_line())
    add("--workspace", default=".", help="folder of the campaign (default: the current one)")
    add("--iterations", type=_positive, default=3, help="length of the chain, those already done included (default: 3)")
    add("--scenario", help="begin a campaign in a new folder, on a stand-in for reality (`rsr init` asks for more)")
    add("--pipeline", choices=get_args(Pipeline), help="its kind; for a new workspace (default: loop)")
    add("--seed", type=int, help="of everything random; for a new workspace (default: 0)")
    add("--stand-in-seed", type=int, help="which stand-in for reality; for a new workspace (default: 1)")
    return parser


def _positive(text: str) -> int:
    """Read a whole number from 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"got {text}; expected a whole number from 1")
    return int(text)


def _config(chosen: argparse.Namespace, pipeline: Pipeline) -> LoopConfig | None:
    """The settings of a new campaign; None where neither its scenario nor its kind is named."""
    document: dict[str, Any] = {name: getattr(chosen, name) for name in ("scenario", "seed")}
    given = {name: value for name, value in document.items() if value is not None}
    if chosen.stand_in_seed is not None:
        given["reality"] = {"seed": chosen.stand_in_seed}
    config = settings_of(pipeline, given, where="command line")
    return None if chosen.scenario is None and chosen.pipeline is None else config


def _beside(
    campaign: Campaign, chosen: argparse.Namespace, pipeline: Pipeline
) -> tuple[tuple[str, object, object], ...]:
    """List options that a campaign is begun with: name, as given, as kept."""
    kept, scenario = campaign.workspace.settings(), chosen.scenario
    return (
        ("--pipeline", chosen.pipeline, pipeline),
        ("--scenario", None if scenario is None or is_same(scenario, campaign.workspace) else scenario, kept.scenario),
        ("--seed", chosen.seed, kept.seed),
        ("--stand-in-seed", chosen.stand_in_seed, kept.reality.seed),
    )


def _check_given(campaign: Campaign, options: Iterable[tuple[str, object, object]]) -> None:
    """Refuse to go on with other settings than those with which this campaign began: name, given, kept."""
    for option, given, kept in options:
        if given is not None and given != kept:
            raise ConfigError(
                got=f"{option} {given}",
                expected=f"{kept}, as in this workspace's params.yaml",
                where=str(campaign.root),
                next_step="Leave the option out (what a campaign began with is edited in its folder, the scenario in "
                f"{SCENARIO_DIR}/), or name a new workspace.",
            )
