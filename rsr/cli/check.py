"""`rsr check`: a page per session, for a person, a browser or a machine; without any, one of the scenario itself."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from rich.markup import escape
from rich.table import Table
from tyro.conf import Positional, arg

import rsr
from rsr.cli.command import OptionalFile, OptionalName, Switch, at_least_one, say, show

REJECTED = 1
"""Exit code of `rsr check` where a session cannot be used."""


def check(
    sessions: Positional[Annotated[tuple[Path, ...], arg(metavar="SESSION [SESSION ...]", help_behavior_hint="")]],
    /,
    *,
    scenario: OptionalName = None,
    brief: Switch = False,
    html: OptionalFile = None,
    json: OptionalFile = None,
) -> int:
    """Say of recordings whether to use them, to use them with care or to reject them, and why, and what to do.

    Without recordings, `rsr check --scenario S` says whether a campaign could begin with a scenario, and as what it was
    understood.

    Args:
        sessions: folders of stored sessions. Exit code 0: all can be used, if with care; 1: at least one is rejected.
        scenario: what they are to be used for; by default what each one's card says.
        brief: verdicts and findings alone: no numbers, and nothing is simulated.
        html: also write the pages to this file, with pictures.
        json: also write everything to this file.
    """
    if scenario is not None and not sessions:
        if html is not None or json is not None or brief:
            raise rsr.common.ConfigError(
                got="--html, --json or --brief without a session",
                expected="sessions, whose pages these are about",
                where="command line",
                next_step="Name a session, or leave the options out: a scenario alone is shown in the terminal.",
            )
        _show_scenario(scenario)
        return 0
    at_least_one(sessions)

    others = rsr.reports.known_prints(sessions)
    pages = []
    for folder in sessions:
        pages.append(rsr.reports.examine_session(folder, scenario, others, simulate=not brief))
        _show(pages[-1], brief)
    if html is not None:
        rsr.common.write_text(html, rsr.reports.render_sessions(pages))
    if json is not None:
        rsr.common.write_json(json, {"sessions": [rsr.reports.page_document(page) for page in pages]})
    return REJECTED if any(page.verdict == "reject" for page in pages) else 0


def _show(page: rsr.reports.SessionPage, brief: bool) -> None:
    mark, words = rsr.reports.headline(page)
    show(f"{mark}{' ' * max(2, 8 - len(page.verdict))}{escape(words)}")
    for line in rsr.reports.finding_lines(page):
        say(f"        {line}")
    for table in () if brief else rsr.reports.tables(page):
        show(table)


def _show_scenario(name: str) -> None:
    """Try what the beginning of a campaign tries, and show as what the files were understood."""
    loaded = rsr.load_scenario(name)
    has_task = rsr.scenarios.has_task(loaded)
    reality = rsr.config.RealityConfig(kind="stand_in" if has_task else "inbox")
    rsr.pipelines.check_beginning(rsr.config.LoopConfig(scenario=name, reality=reality))
    task = "its task was tried on a few starts" if has_task else "no task: a campaign without a policy"
    step_s, steps = loaded.control_dt_s, loaded.episode_steps
    say(f"use     {loaded.name}: {steps} steps of {step_s:g} s an episode; {task}")
    for note in rsr.scenarios.notes_of(loaded):
        say(f"        note: {note}")
    if loaded.command is not None:
        show(_commands(loaded))
    show(_measured(loaded))


def _commands(scenario: rsr.Scenario) -> Table:
    table = Table("command", "actuator", "asks for", "lowest", "largest")
    model = scenario.base_model
    columns = next(each for each in scenario.channels if each.name == scenario.command).columns
    lower, upper = rsr.scenarios.command_range(model)
    for index, (column, kind) in enumerate(zip(columns, rsr.scenarios.command_kinds(model), strict=True)):
        name = model.actuator(index).name or f"number {index}"
        table.add_row(f"{scenario.command}.{column}", name, str(kind), f"{lower[index]:.4g}", f"{upper[index]:.4g}")
    return table


def _measured(scenario: rsr.Scenario) -> Table:
    table = Table("measured", "columns", "unit", "noise")
    for each in scenario.observed:
        table.add_row(each.channel.name, ", ".join(each.channel.columns), each.channel.unit, f"{each.noise:g}")
    return table
