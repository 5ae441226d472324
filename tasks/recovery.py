"""What to put right when a loop begins, since the one before may have been killed at any moment."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from rsr.errors import SessionError
from rsr.files import write_text
from tasks import bookkeeping, versions
from tasks.locking import Holder
from tasks.watcher import end_marked

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
    """Finish or remove what an interrupted writer (rsr.files, rsr.sessions, DVC) left beside its target."""
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
