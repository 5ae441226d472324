"""A campaign: a workspace, locked against other loops and repaired, the table of its steps, and its first settings."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rsr.common import ConfigError, SessionError, WorkspaceError, load, write_text
from rsr.config import LoopConfig, parse_config
from rsr.pipelines import LAUNCHER_FILE, StepTable, check_same_task, own_table, reason_to_stop, table_of
from rsr.workspace import CHAIN_FILE, CURVES_FILE, Workspace
from rsr_tasks import bookkeeping, versions
from rsr_tasks.locking import Holder, held, is_held
from rsr_tasks.watcher import end_marked
from rsr_tasks.workspace import check_space, check_workspace, create_workspace, is_new, may_begin, no_campaign, refresh

DEFAULT_TABLE = "rsr.pipelines:TABLE"
CLASH_TABLE = "rsr.pipelines:CLASH"
GNN_TABLE = "rsr.pipelines:GNN"
Pipeline = Literal["loop", "clash", "gnn"]
TABLES: dict[Pipeline, str] = {"loop": DEFAULT_TABLE, "clash": CLASH_TABLE, "gnn": GNN_TABLE}
"""The kinds of campaigns, and their steps: the loop, and two alternative tunings."""


@dataclass(frozen=True)
class Campaign:
    """A workspace and its steps. Travels between tasks in place of data."""

    workspace: Workspace
    table: StepTable

    @property
    def root(self) -> Path:
        return self.workspace.root

    def versioned_files(self, iteration: int) -> list[Path]:
        """List the files that git keeps after an iteration: only what the loop wrote, nobody's notes beside it."""
        names = (CHAIN_FILE, CURVES_FILE, "dvc.lock", "data.dvc", "dvc.yaml", LAUNCHER_FILE)
        approval = self.workspace.approval_path(iteration - 1)
        whole = [*(self.root / name for name in names), approval, self.workspace.scenario_dir]
        files = [*whole, *self._files_of(0), *self._files_of(iteration)]
        return [path for path in files if path.exists()]

    def _files_of(self, iteration: int) -> list[Path]:
        workspace = self.workspace
        steps = [step for step in self.table.stages if step.foreach == (iteration > 0)]
        metrics = [path for step in steps for path in step.metric_files(workspace, iteration)]
        ignores = {out.parent / ".gitignore" for step in steps for out in step.outputs(workspace, iteration)}
        receipts = sorted(workspace.receipts_dir(iteration).glob("*.json"))
        return [workspace.frozen_path(iteration), *metrics, *receipts, *sorted(ignores)]


@contextmanager
def opened(
    root: Path, table_name: str = DEFAULT_TABLE, config: LoopConfig | None = None, adopt: bool = False
) -> Iterator[Campaign]:
    """Hold a workspace and put it in order; where there is none, make it with these settings, if they are given.

    Whoever holds it already may open it again. `adopt`: make it also where settings, a scenario or a robot's file lie
    already.

    Raises:
        WorkspaceError: another loop holds it, or the folder is no workspace and may not become one.
        ConfigError: its settings name another scenario than the one with which it began.
    """
    root, table = Path(root).resolve(), load_table(table_name)
    if is_held(root):
        yield Campaign(Workspace(root), own_table(Workspace(root), table))
        return
    begins = is_new(root) or (adopt and may_begin(root))
    if begins and config is None:
        raise no_campaign(root)
    if not begins:
        check_workspace(root)
    with held(root) as dead:
        if config is not None and (is_new(root) or (adopt and may_begin(root))):  # by now another may have made it
            create_workspace(root, config, table)
        table = own_table(Workspace(root), table)
        _check_kind(root, table)
        Workspace(root).check_scenario()
        check_same_task(Workspace(root))
        check_space(root)
        recover(root, dead)
        refresh(root, table)
        yield Campaign(Workspace(root), table)


def _check_kind(root: Path, table: StepTable) -> None:
    """Refuse to run other stages in a campaign than those with which it began."""
    own = table_of(Workspace(root))
    if {step.name for step in own.stages} != {step.name for step in table.stages}:
        raise WorkspaceError(
            got=f"a campaign whose stages are {', '.join(step.name for step in own.stages)}",
            expected=f"one of {', '.join(step.name for step in table.stages)}",
            where=str(root),
            next_step="Run the flow that this campaign belongs to, or name another folder.",
        )


def load_table(name: str) -> StepTable:
    """Load a table of steps by its "module:name". This imports the module, that is, runs it.

    Raises:
        ConfigError: it is no table.
    """
    try:
        found = load(name)
    except (ImportError, AttributeError, ValueError) as error:
        raise _no_table(name, f"{type(error).__name__}: {error}") from error
    if not isinstance(found, StepTable):
        raise _no_table(name, f"a {type(found).__name__}")
    return found


def _no_table(name: str, got: str) -> ConfigError:
    return ConfigError(
        got=got,
        expected='"module:name" of a table of steps, of code that you trust: the module is run',
        where=f"table {name}",
        next_step="Leave it out for the loop's own table.",
    )


def finished(campaign: Campaign, iterations: int) -> bool:
    """Whether the loop has nothing left to do: every stage fresh, every session recorded, every iteration committed."""
    workspace = campaign.workspace
    chain = workspace.chain()
    for iteration in range(1, iterations + 1):
        if iteration not in chain or not workspace.metrics_path(iteration).exists():
            return False
        if not bookkeeping.is_recorded(campaign.root, workspace.session_dir(iteration)):
            return False
        if not versions.is_committed(
            campaign.root, campaign.versioned_files(iteration), tags_of(campaign.table, iteration)
        ):
            return False
        if reason_to_stop(workspace, iteration):
            iterations = iteration
            break
    return bookkeeping.stale(campaign.root).isdisjoint(["data.dvc", *campaign.table.addresses(iterations)])


def tags_of(table: StepTable, iteration: int) -> list[str]:
    """Name the commit of an iteration: for people, and for `dvc artifacts get . policy --rev policy@v3.0.0`."""
    return [f"iter/{iteration:03d}", *(f"{name}@v{iteration}.0.0" for name in table.models)]


def pipeline_of(config: LoopConfig) -> Pipeline:
    """Name the kind of campaign that has these settings: the section that they have says it."""
    return "clash" if config.clash is not None else "gnn" if config.gnn is not None else "loop"


# Settings with which a campaign begins, where nobody says otherwise.


_DEFAULTS: dict[Pipeline, dict[str, Any]] = {
    "loop": {},
    "clash": {
        "scenario": "strike",
        "reality": {"episodes": 30},
        "tune": {"method": "clash", "fit_episodes": 10},
        "clash": {},
    },
    # Three recordings to learn from and fourteen to judge by, as in the paper.
    "gnn": {
        "scenario": "two_cubes",
        "reality": {"episodes": 17},
        "tune": {"method": "gnn", "fit_episodes": 3},
        "gnn": {},
    },
}


def settings_of(pipeline: Pipeline, given: Mapping[str, Any] | None = None, where: str | None = None) -> LoopConfig:
    """The pipeline's own defaults, and over them what was given, section by section.

    Raises:
        ConfigError: a key is unknown, or a value is out of its range.
    """
    return parse_config(merged(_DEFAULTS[pipeline], given or {}), where=where or f"settings of the flow {pipeline}")


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Settings, and over them others, section by section."""
    both = base.keys() & over.keys()
    sections = {
        key: merged(base[key], over[key])
        for key in both
        if isinstance(base[key], Mapping) and isinstance(over[key], Mapping)
    }
    return {**base, **over, **sections}


# Repairs when a loop begins, since the one before may have been killed at any moment.


_DVC_LEFTOVER = re.compile(r"\.[\w-]{22}\.tmp")


def recover(root: Path, dead: Holder | None) -> None:
    """Leave the workspace as if nobody had been interrupted. Call it while holding the workspace.

    What the steps themselves left needs no care here: a stage that is not in dvc.lock is done again, a session that
    is not in data.dvc is added.
    """
    # We hold the workspace, so any other process that bears its mark belongs to a loop that is gone.
    end_marked(lambda mark: mark.partition(":")[2] == str(root))
    versions.clear_dead_locks(root)
    bookkeeping.forget_dead_holder(root, dead.pid if dead else None)
    mend_ledgers(root)
    bookkeeping.sweep_cache(root)
    sweep(root)


def mend_ledgers(root: Path) -> None:
    """Take a torn dvc.lock or data.dvc back from git.

    Nothing is lost by it: DVC's cache gives back the stages that the older file does not know, and sessions are
    still in their folders.
    """
    for name in bookkeeping.torn_ledgers(root):
        text = versions.committed_version(root, name)
        if text is None:
            (root / name).unlink()
        else:
            write_text(root / name, text)


def sweep(root: Path) -> None:
    """Finish or remove what an interrupted writer (rsr.common.files, rsr.sessions, DVC) left beside its target."""
    hidden = [path for folder in ("data", "iterations") for path in (root / folder).rglob(".*")]
    everywhere = [path for path in hidden if path.suffix == ".part" or _DVC_LEFTOVER.fullmatch(path.name)]
    beside = [path for folder in (".", ".rsr", "bin", ".dvc/tmp") for path in (root / folder).glob(".*.part")]
    for leftover in sorted({*everywhere, *beside}):
        _finish_or_remove(leftover)


def _finish_or_remove(leftover: Path) -> None:
    if not leftover.is_dir():
        leftover.unlink(missing_ok=True)
        return
    from rsr.sessions import read_session, recover_session

    try:
        recover_session(leftover)
        return
    except SessionError:
        pass
    try:
        read_session(leftover, verify=False)  # whole, but another recording has its name: a person must decide
    except SessionError:
        shutil.rmtree(leftover)
