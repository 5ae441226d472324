"""Make a workspace, or make sure that a folder is one."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rsr.common import WorkspaceError, cannot_write, write_json, write_text
from rsr.config import LoopConfig, dump_config, load_config
from rsr.pipelines import (
    LAUNCHER_FILE,
    PYTHON_FILE,
    StepTable,
    own_table,
    render_launcher,
    render_pipeline,
    with_curves,
)
from rsr.workspace import CHAIN_FILE, SCENARIO_DIR, Workspace
from rsr_tasks import bookkeeping, versions
from rsr_tasks.own_scenario import take_in

_UNFINISHED = ".rsr/unfinished"
_OWN = {".rsr", ".prefect"}
_ADOPTED = {"params.yaml", "robot.yaml", SCENARIO_DIR, "inbox"}
"""Files that may lie in a folder before a campaign begins there; none of them is lost."""
_WRITTEN = (
    ".git",
    ".dvc",
    ".dvcignore",
    ".gitignore",
    "bin",
    "data",
    "data.dvc",
    "dvc.yaml",
    CHAIN_FILE,
)
_LEAST_FREE_BYTES = 100_000_000

_GITIGNORE = """\
# recordings (data.dvc lists them) and what a lab drops, this machine's state of the loop, Prefect's history,
# unfinished training, Python's caches
/data
/inbox
/.rsr
/.prefect
/iterations/*/.training*
__pycache__/
"""
_DVCIGNORE = """\
# files being written, Python's caches, and folders in which there is nothing for DVC
*.part
__pycache__/
/inbox
/.rsr
/.prefect
"""


def check_workspace(root: Path) -> None:
    """Check that the folder is a workspace, or may become one.

    Raises:
        WorkspaceError: it has other content, but lacks git, DVC or the chain of iterations.
    """
    if is_new(root):
        return
    if not (root / CHAIN_FILE).exists() and not ((root / ".git").exists() and (root / ".dvc").exists()):
        raise no_campaign(root)
    parts = ((".git", "git", "git init"), (".dvc", "DVC", "dvc init"), (CHAIN_FILE, CHAIN_FILE, "git checkout ."))
    for name, what, command in parts:
        if not (root / name).exists():
            raise WorkspaceError(
                got=f"a folder without {what}",
                expected=f"a workspace: its own git and DVC repository, with {CHAIN_FILE}",
                where=str(root),
                next_step=f"Name a new or empty folder, in which a workspace is made; or run `{command}` in this one.",
            )


def no_campaign(root: Path) -> WorkspaceError:
    """Error for a folder in which no campaign was begun."""
    return WorkspaceError(
        got="a folder without a campaign" if root.exists() else "no such folder",
        expected="a campaign: a workspace with its own git and DVC repository",
        where=str(root),
        next_step=f"Begin one: `rsr init {root if may_begin(root) else 'NEW_FOLDER'}` asks for its settings.",
    )


def may_begin(root: Path) -> bool:
    """Whether a campaign may begin here: a new workspace, or a folder with nothing but settings and what they name."""
    return is_new(root) or (root.is_dir() and {path.name for path in root.iterdir()} <= _OWN | _ADOPTED)


def is_new(root: Path) -> bool:
    """Whether a workspace may be made here: no such folder, an empty one, or an unfinished workspace."""
    if not root.exists() or (root / _UNFINISHED).exists():
        return True
    return root.is_dir() and {path.name for path in root.iterdir()} <= _OWN


def create_workspace(root: Path, config: LoopConfig, table: StepTable) -> Workspace:
    """Make a workspace in a new or empty folder: a git and DVC repository with settings, pipeline and empty chain.

    Its scenario is copied into it. A marker lies in it until it is complete; where one is found, an
    interrupted creation is begun again.
    """
    write_text(root / _UNFINISHED, "")
    check_space(root)
    try:
        _clear(root)
    except OSError as error:
        raise cannot_write(root, error) from error
    config = config.model_copy(update={"scenario": take_in(config.scenario, root)})
    versions.initialise(root)
    write_text(root / ".gitignore", _GITIGNORE)
    bookkeeping.initialise(root)
    write_text(root / ".dvcignore", _DVCIGNORE)
    if not (root / "params.yaml").exists() or load_config(root / "params.yaml") != config:  # comments stay
        dump_config(config, root / "params.yaml")
    write_json(root / CHAIN_FILE, {"chain": {}})
    refresh(root, own_table(Workspace(root), table))
    names = [".gitignore", ".dvcignore", ".dvc/.gitignore", ".dvc/config", "data.dvc", "params.yaml", CHAIN_FILE]
    names += [SCENARIO_DIR] if (root / SCENARIO_DIR).is_dir() else []
    versions.commit(root, "rsr: a new campaign", [root / name for name in (*names, "dvc.yaml", LAUNCHER_FILE)])
    (root / _UNFINISHED).unlink()
    return Workspace(root)


def refresh(root: Path, table: StepTable) -> None:
    """Write what follows from the table and from this machine, where it differs; see that data/ is there."""
    write_pipeline(root, table)
    _write_if_different(root / LAUNCHER_FILE, render_launcher(table))
    if not os.access(root / LAUNCHER_FILE, os.X_OK):
        (root / LAUNCHER_FILE).chmod(0o755)
    _write_if_different(root / PYTHON_FILE, f"{sys.executable}\n")
    bookkeeping.ensure_data(root)


def write_pipeline(root: Path, table: StepTable, rows: Sequence[Mapping[str, Any]] | None = None) -> None:
    """Write dvc.yaml, where it differs from what table and chain say.

    Args:
        rows: of the workspace's figures, where they were read already.
    """
    workspace = Workspace(root)
    curves = with_curves(table, workspace.rows() if rows is None else rows)
    _write_if_different(root / "dvc.yaml", render_pipeline(curves, workspace))


def write_curves(workspace: Workspace, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write the figures of all iterations as DVC plots them: a list of rows of numbers."""
    _write_if_different(workspace.curves_path, json.dumps(flat(rows), indent=1, sort_keys=True) + "\n")


def flat(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows of figures for a table: without what is a table itself."""
    return [{name: value for name, value in row.items() if not isinstance(value, dict)} for row in rows]


def check_space(root: Path) -> None:
    """Refuse to begin on a full disk, where Prefect's and DVC's own databases would fail in their own words."""
    free_bytes = shutil.disk_usage(root).free
    if free_bytes < _LEAST_FREE_BYTES:
        raise WorkspaceError(
            got=f"{free_bytes / 1e6:.0f} MB of free space",
            expected=f"at least {_LEAST_FREE_BYTES / 1e6:.0f} MB",
            where=str(root),
            next_step="Free some space, then run the same command again: nothing was lost.",
        )


def _write_if_different(path: Path, text: str) -> None:
    if not path.exists() or path.read_text() != text:
        write_text(path, text)


def _clear(root: Path) -> None:
    for name in _WRITTEN:
        path = root / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
