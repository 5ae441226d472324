"""Commands on a workspace: look at the chain, run one step of it, write a report."""

from __future__ import annotations

import json as json_format
import math
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

import rsr
from rsr.cli.command import OptionalFile, OptionalFolder, Switch, hint, located, say, show
from rsr.cli.doctor import loop_at_work
from rsr.common import ConfigError, RsrError, progress
from rsr.pipelines import CLASH, GNN, TABLE, StepTable, run_step, table_of
from rsr.reports import chain_table, is_simulated, read_rows, tuning_table, verdict_sentence
from rsr.workspace import CHAIN_FILE, Workspace

_LOOP = "rsr-loop"


def status(workspace: OptionalFolder = None, json: Switch = False) -> int:
    """Show what each iteration of the loop achieved, what is missing and what comes next.

    Looks at files alone. Whether they are up to date with their inputs, `dvc status` says.

    Args:
        workspace: the campaign's folder; by default the current one or the nearest above it.
        json: write a JSON list to stdout, one object an iteration: what its metrics.json holds.
    """
    found = _begun_workspace(workspace)
    rows = read_rows(found)
    if json:
        say(json_format.dumps(rows, indent=1))
    elif rows and _table(found) in (CLASH, GNN):
        show(tuning_table(rows))
    elif rows:
        show(chain_table(rows, is_simulated(found)))
        say(f"Iteration {rows[-1]['iteration']}: {verdict_sentence(rows, is_simulated(found))}")
    for line in _outlook(found):
        (hint if json else say)(line)
    return 0


def step(
    name: Positional[Annotated[str, arg(metavar="NAME")]],
    /,
    *,
    iteration: Annotated[int, arg(metavar="K")],
    workspace: OptionalFolder = None,
) -> int:
    """Run one step of an iteration; this is what dvc.yaml calls. Leaves a receipt in receipts/.

    Args:
        name: start (iteration 0 only), collect, tune, infogap, retrain, evaluate or report; without a task: prior
            (iteration 0 only), collect, tune, evaluate or report; in a campaign of CLASH: strikes and surrogate
            (iteration 0 only), collect, adapt, evaluate, aim or report; in one that learns a simulator: prior
            (iteration 0 only), collect, identify, scale, train, finetune, evaluate or report.
        iteration: its number in the chain.
        workspace: the campaign's folder; by default the current one or the nearest above it.
    """
    found = located(workspace)
    with progress.bar(f"{name} {iteration}") as advance:
        run_step(found, name, iteration, advance, _table(found))
    return 0


def report(
    iteration: Annotated[int | None, arg(metavar="K", help_behavior_hint="")] = None,
    out: OptionalFile = None,
    figure: OptionalFile = None,
    workspace: OptionalFolder = None,
) -> int:
    """Write the HTML page of an iteration, or a picture of the whole loop.

    Args:
        iteration: which one; by default the last that was evaluated.
        out: where to write the page; by default the iteration's own report.html, which DVC versions.
        figure: write the picture here instead, .png or .svg; the page too only with --iteration or --out.
        workspace: the campaign's folder; by default the current one or the nearest above it.
    """
    found = _begun_workspace(workspace)
    if figure is not None:
        rsr.reports.save_loop_figure(found, figure)
        say(str(figure))
        if iteration is None and out is None:
            return 0

    chosen = _last_evaluated(found) if iteration is None else iteration
    with progress.bar(f"report {chosen}") as advance:
        page = rsr.reports.render_report(found, chosen, advance)
    target = out or found.report_path(chosen)
    rsr.common.write_text(target, page)
    say(str(target))
    return 0


def _begun_workspace(folder: Path | None) -> Workspace:
    """Find the workspace to look at: beside a checkout in which nothing has begun, that of its `make demo`."""
    found = located(folder)
    demo = found.root / "demo"
    if folder is not None or found.chain() or not (demo / CHAIN_FILE).is_file():
        return found
    hint(f"No iteration yet in {found.root}; this is its {os.path.relpath(demo)}/, a workspace of its own.")
    return Workspace(demo)


def _last_evaluated(workspace: Workspace) -> int:
    evaluated = [iteration for iteration in workspace.chain() if workspace.metrics_path(iteration).exists()]
    if evaluated:
        return evaluated[-1]
    raise ConfigError(
        got="no iteration that was evaluated",
        expected="at least one, or --iteration K",
        where=str(workspace.root),
        next_step=f"Run the loop: `{_loop(workspace, 3)}`.",
    )


def _outlook(workspace: Workspace) -> Iterator[str]:
    """Say what is missing and what comes next."""
    chain = workspace.chain()
    if who := loop_at_work(workspace.root):
        yield f"A loop is at work: {who}."
    if workspace.alert_path.exists():
        yield f"Alert: {workspace.alert_path.read_text().strip()}"
    if who:
        return  # what is missing or waited for, it is about to make or take
    if workspace.waiting_path.exists():
        yield _waiting(workspace)
    if not chain:
        yield f"No iteration yet in {workspace.root}. Begin: {_loop(workspace, 3)}"
        return
    open_steps = {iteration: missing for iteration in chain if (missing := _open_steps(workspace, iteration))}
    for iteration, missing in open_steps.items():
        yield f"Iteration {iteration} lacks {', '.join(missing)}."
    if open_steps:
        yield f"Next: {_loop(workspace, max(chain))}; what was versioned, `dvc checkout` or `dvc pull` bring back."
    else:
        yield f"Nothing is missing. One iteration more: {_loop(workspace, max(chain) + 1)}"


def _waiting(workspace: Workspace) -> str:
    """What a loop that ended waits for, unless it has come since then."""
    from rsr.pipelines.lab.arrivals import arrival  # here: it loads what reads recordings

    came = None
    with suppress(RsrError, OSError):  # in disorder; the loop says so
        came = arrival(workspace, now_s=lambda: math.inf)
    if came is None:
        return f"Waiting: {workspace.waiting_path.read_text().strip()}"
    return f"What the loop waited for has come: {workspace.relative(came.path)}. It has to be run again."


def _loop(workspace: Workspace, iterations: int) -> str:
    """The command that brings this workspace to so many iterations, from the current folder."""
    here = Path.cwd()
    elsewhere = "" if workspace.root == here else f" --workspace {os.path.relpath(workspace.root, here)}"
    table = _table(workspace)
    flow = f"python -m rsr_flows.{table.name}" if table in (CLASH, GNN) else _LOOP
    return f"{flow}{elsewhere} --iterations {iterations}"


def _table(workspace: Workspace) -> StepTable:
    """The campaign's stages; those of the loop where there are no settings."""
    return table_of(workspace) if workspace.settings_path.exists() else TABLE


def _open_steps(workspace: Workspace, iteration: int) -> list[str]:
    """Name the steps of which a result is not there, in the order of the loop."""
    table = _table(workspace)
    steps = (table.collect, *(stage for stage in table.stages if stage.foreach))
    return [each.name for each in steps if not all(path.exists() for path in each.outputs(workspace, iteration))]
