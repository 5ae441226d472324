"""The command line of the loop. Looks whether there is anything to do before it starts Prefect."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from rich.console import Console, RenderableType
from rich.markup import escape

from rsr.config import LoopConfig, parse_config
from rsr.errors import ConfigError, RsrError
from rsr.reports import chain_table, is_simulated, read_rows, verdict_sentence
from tasks import environment
from tasks.campaign import DEFAULT_TABLE, Campaign, finished, opened
from tasks.watcher import watched


def main(arguments: Sequence[str] | None = None, table: str = DEFAULT_TABLE) -> int:
    """Run the loop as a command; returns the exit code."""
    chosen = _parser().parse_args(arguments)
    root = Path(chosen.workspace).resolve()
    environment.prepare(root)

    def work() -> None:
        with opened(root, table, _config(chosen)) as campaign:
            kept = campaign.workspace.settings()
            seeds = ("--seed", chosen.seed, kept.seed), ("--twin-seed", chosen.twin_seed, kept.reality.seed)
            check_given(campaign, seeds)
            _bring_up_to_date(campaign, chosen.iterations, table)

    return exit_code(work)


def exit_code(work: Callable[[], None]) -> int:
    """Do it; an error is told once, without a traceback."""
    complaints = Console(stderr=True, highlight=False, soft_wrap=True)
    try:
        work()
    except RsrError as error:
        complaints.print(f"[bold red]{type(error).__name__}[/]", escape(str(error)))
        return 1
    except KeyboardInterrupt:
        complaints.print("Interrupted. The same command goes on from here.")
        return 130
    return 0


def _bring_up_to_date(campaign: Campaign, iterations: int, table: str) -> None:
    def run() -> None:
        from flows.rsr_loop import rsr_loop

        environment.quieten()
        rsr_loop(str(campaign.root), iterations, table)

    run_unless_finished(campaign, iterations, "Real-Sim-Real", run)
    rows, simulated = read_rows(campaign.workspace), is_simulated(campaign.workspace)
    tell(campaign, chain_table(rows, simulated), verdict_sentence(rows, simulated))


def run_unless_finished(campaign: Campaign, iterations: int, title: str, run: Callable[[], None]) -> None:
    """Run the flow, which loads Prefect, only if there is something to do."""
    console, began_s = Console(highlight=False, soft_wrap=True), time.perf_counter()
    if finished(campaign, iterations):
        console.print(f"Nothing to do: {campaign.root} is up to date through iteration {iterations}.")
        return
    console.print(f"{title} in {campaign.root}; starting Prefect ...")
    with watched():
        run()
    console.print(f"Finished in {time.perf_counter() - began_s:.0f} s.")


def tell(campaign: Campaign, *figures: RenderableType) -> None:
    """Show what was achieved, where the reports are, and what a person has to do."""
    console = Console(highlight=False, soft_wrap=True)
    console.print(*figures, sep="\n")
    reports = campaign.workspace.iteration_dir(0).parent / "*" / "report.html"
    console.print(f"Reports: {reports}")
    if campaign.workspace.waiting_path.exists():
        console.print("[bold]Waiting[/]", escape(campaign.workspace.waiting_path.read_text().strip()))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m flows.rsr_loop", description="Close the gap between simulation and reality."
    )
    add = parser.add_argument
    add("--workspace", default=".", help="folder of the campaign; made if it does not exist (default: the current one)")
    add("--iterations", type=positive, default=3, help="length of the chain, those already done included (default: 3)")
    add("--seed", type=int, help="of everything random; for a new workspace (default: 0)")
    add("--twin-seed", type=int, help="which stand-in for reality; for a new workspace (default: 1)")
    return parser


def positive(text: str) -> int:
    """Read a whole number from 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"got {text}; expected a whole number from 1")
    return int(text)


def _config(chosen: argparse.Namespace) -> LoopConfig:
    document: dict[str, object] = {}
    if chosen.seed is not None:
        document["seed"] = chosen.seed
    if chosen.twin_seed is not None:
        document["reality"] = {"seed": chosen.twin_seed}
    return parse_config(document, where="command line")


def check_given(campaign: Campaign, options: Iterable[tuple[str, object, object]]) -> None:
    """Refuse to go on with other settings than those with which this campaign began: name, given, kept."""
    for option, given, kept in options:
        if given is not None and given != kept:
            raise ConfigError(
                got=f"{option} {given}",
                expected=f"{kept}, as in this workspace's params.yaml",
                where=str(campaign.root),
                next_step="Leave the option out, or name a new workspace.",
            )
