"""What to put right when a loop begins, since the one before may have been killed at any moment."""

from __future__ import annotations

import shutil
from pathlib import Path

import psutil

from rsr.errors import RsrError
from rsr.files import write_text
from tasks import bookkeeping, versions
from tasks.locking import LOOP_VARIABLE, Holder


def recover(root: Path, dead: Holder | None) -> None:
    """Leave the workspace as if nobody had been interrupted. Call it while holding the workspace.

    What the steps themselves left needs no care here: a stage that is not in dvc.lock is done again, a session that
    is not in data.dvc is added.
    """
    end_orphans(root)
    versions.clear_dead_locks(root)
    bookkeeping.forget_dead_holder(root, dead.pid if dead else None)
    mend_ledgers(root)
    sweep(root)


def end_orphans(root: Path) -> None:
    """End the children that a killed loop left running here: Prefect's server, workers of a step.

    We hold the workspace, so any other process that bears its mark belongs to a loop that is gone.
    """
    orphans = [process for process in psutil.process_iter() if _bears_mark(process, root)]
    for process in orphans:
        process.terminate()
    for process in psutil.wait_procs(orphans, timeout=5)[1]:
        process.kill()


def _bears_mark(process: psutil.Process, root: Path) -> bool:
    try:
        mark = process.environ().get(LOOP_VARIABLE, "")
    except psutil.Error:
        return False
    return mark.partition(":")[2] == str(root) and process.pid != psutil.Process().pid


def mend_ledgers(root: Path) -> None:
    """Take a torn dvc.lock or data.dvc back from git.

    Nothing is lost by it: DVC's cache gives back the stages that the older file does not know, and sessions are
    still in their folders.
    """
    for name in bookkeeping.unreadable_ledgers(root):
        text = versions.committed_version(root, name)
        if text is None:
            (root / name).unlink()
        else:
            write_text(root / name, text)


def sweep(root: Path) -> None:
    """Finish or remove what an interrupted writer left beside its target (see rsr.files and rsr.sessions)."""
    for folder in ("data", "iterations", "."):
        found = (root / folder).glob(".*.part") if folder == "." else (root / folder).rglob(".*.part")
        for leftover in sorted(found):
            _finish_or_remove(leftover)


def _finish_or_remove(leftover: Path) -> None:
    if not leftover.is_dir():
        leftover.unlink(missing_ok=True)
        return
    from rsr.sessions import recover_session

    try:
        recover_session(leftover)
    except RsrError:  # its data never became whole: there is nothing to lose
        shutil.rmtree(leftover)
