"""What a loop works on: a workspace, held against other loops and put in order, and the table of its steps."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rsr.config import LoopConfig
from rsr.errors import WorkspaceError
from rsr.spreading import load
from rsr.steps import LAUNCHER_FILE, StepTable, reason_to_stop, table_of
from rsr.workspace import CHAIN_FILE, CURVES_FILE, Workspace
from tasks import bookkeeping, versions
from tasks.locking import held, is_held
from tasks.recovery import recover
from tasks.workspace import check_space, check_workspace, create_workspace, is_new, refresh

DEFAULT_TABLE = "rsr.steps:TABLE"
CLASH_TABLE = "rsr.steps:CLASH"
GNN_TABLE = "rsr.steps:GNN"
TUNING_TABLES = {"clash": CLASH_TABLE, "gnn": GNN_TABLE}
"""Alternative tunings and their steps."""


@dataclass(frozen=True)
class Campaign:
    """A workspace and its steps. Travels between tasks in place of data."""

    workspace: Workspace
    table: StepTable

    @property
    def root(self) -> Path:
        return self.workspace.root

    def versioned_files(self, iteration: int) -> list[Path]:
        """List what git shall keep after an iteration: only files that the loop wrote, nobody's notes beside them."""
        names = (CHAIN_FILE, CURVES_FILE, "dvc.lock", "data.dvc", "dvc.yaml", LAUNCHER_FILE)
        approval = self.workspace.approval_path(iteration - 1)
        files = [*(self.root / name for name in names), *self._files_of(0), *self._files_of(iteration), approval]
        return [path for path in files if path.exists()]

    def _files_of(self, iteration: int) -> list[Path]:
        workspace = self.workspace
        steps = [step for step in self.table.stages if step.foreach == (iteration > 0)]
        metrics = [path for step in steps for path in step.metric_files(workspace, iteration)]
        ignores = {out.parent / ".gitignore" for step in steps for out in step.outputs(workspace, iteration)}
        receipts = sorted(workspace.receipts_dir(iteration).glob("*.json"))
        return [workspace.frozen_path(iteration), *metrics, *receipts, *sorted(ignores)]


@contextmanager
def opened(root: Path, table_name: str = DEFAULT_TABLE, config: LoopConfig | None = None) -> Iterator[Campaign]:
    """Hold a workspace and put it in order; make it, with these settings, where there is none.

    Whoever holds it already may open it again.

    Raises:
        WorkspaceError: another loop holds it, or the folder is no workspace and not empty.
    """
    root, table = Path(root).resolve(), load_table(table_name)
    if is_held(root):
        yield Campaign(Workspace(root), table)
        return
    check_workspace(root)
    with held(root) as dead:
        if is_new(root):
            create_workspace(root, config or LoopConfig(), table)
        _check_kind(root, table)
        check_space(root)
        recover(root, dead)
        refresh(root, table)
        yield Campaign(Workspace(root), table)


def _check_kind(root: Path, table: StepTable) -> None:
    """Refuse to run other stages in a campaign than those with which it began."""
    own = table_of(Workspace(root).settings())
    if {step.name for step in own.stages} != {step.name for step in table.stages}:
        raise WorkspaceError(
            got=f"a campaign whose stages are {', '.join(step.name for step in own.stages)}",
            expected=f"one of {', '.join(step.name for step in table.stages)}",
            where=str(root),
            next_step="Run the flow that this campaign belongs to, or name another folder.",
        )


def load_table(name: str) -> StepTable:
    """Load a table of steps by its "module:name"."""
    return load(name)


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
