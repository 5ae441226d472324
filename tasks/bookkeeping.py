"""The guarantees of `dvc repro` and `dvc add`, for work done in this process. Only here and in `dvc_private` is DVC."""

from __future__ import annotations

import errno
import json
import logging
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rsr.common import WorkspaceError, cannot_write, write_json
from rsr_tasks import dvc_private
from rsr_tasks.dvc_private import LOCK

if TYPE_CHECKING:
    from dvc.output import Output
    from dvc.repo import Repo

Outcome = Literal["fresh", "restored", "ran"]
"""`fresh`: nothing to do. `restored`: taken from DVC's cache, as these inputs were run before. `ran`: computed."""

_DATA = "data"
CANNOT_WRITE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM}


@contextmanager
def _opened(root: Path) -> Iterator[Repo]:
    """Open the workspace's DVC repository; what goes wrong in it becomes a WorkspaceError that says what to do."""
    from dvc.exceptions import DvcException

    _silence()
    repo = dvc_private.patient_repo(root)
    try:
        with chdir(root):  # DVC's cache of runs takes paths from the current folder; so do a stage's commands
            yield repo
    except (OSError, DvcException) as error:
        cause = error if isinstance(error, OSError) else error.__cause__
        if isinstance(cause, OSError) and cause.errno in CANNOT_WRITE:
            raise cannot_write(Path(cause.filename or root), cause) from error
        if isinstance(error, OSError):
            raise
        raise _refused(root, error) from error
    finally:
        repo.close()
        dvc_private.forget_staged()


def initialise(root: Path) -> None:
    """Make a fresh git repository a DVC repository too, with an empty, versioned data folder."""
    from dvc.repo import Repo

    _silence()
    repo = Repo.init(str(root))
    with repo.config.edit("repo") as config:
        config["core"] = {"analytics": False, "check_update": False, "autostage": True}
        config["cache"] = {"type": ["reflink", "hardlink", "copy"]}
    repo.close()
    ensure_data(root)


def stale(root: Path) -> set[str]:
    """Name what `dvc status` does: stages that `dvc repro` would run, and data.dvc if it disagrees with the data."""
    with _opened(root) as repo:
        return set(repo.status())


def bring_up_to_date(root: Path, address: str, run: Callable[[], object]) -> Outcome:
    """Do for one stage what `dvc repro --single-item` does, but call `run` in place of the stage's command.

    The stage's entry in dvc.lock is written before this returns: killed at any moment, either the stage is done, or
    it is still stale and will be done again.
    """
    with _opened(root) as repo:
        with dvc_private.locked(repo):
            stage = dvc_private.stage_of(repo, address)
            if not stage.status(check_updates=True):
                return "fresh"
        with dvc_private.in_use(repo, stage):
            outcome: Outcome = "restored" if dvc_private.restore(repo, stage) else "ran"
            if outcome == "ran":
                run()
            dvc_private.commit(repo, address)
        return outcome


def is_recorded(root: Path, session: Path) -> bool:
    """Whether data.dvc lists this session; that its folder exists proves nothing, nor does its absence."""
    prefix = session.relative_to(root / _DATA).parts
    with _opened(root) as repo:
        out = _data_output(repo)
        listed = out.get_obj() if out else None
        return listed is not None and any(key[: len(prefix)] == prefix for key, _, _ in listed)


def record(root: Path, session: Path) -> None:
    """Add one session to data.dvc; other sessions are not read again.

    Without `relink` the workspace's files are never moved: until data.dvc is written they are the only named copy.
    `Repo.add` would do, but for the first session it forgets the size, which `dvc repro` later adds to data.dvc.
    """
    with _opened(root) as repo, dvc_private.locked(repo):
        (stage,) = repo.stage.collect(f"{_DATA}.dvc")
        (out,) = stage.outs
        stage.add_outs(str(session), relink=False)
        if out.meta.size is None:
            out.meta.size = sum((root / _DATA).joinpath(*key).stat().st_size for key, _, _ in out.get_obj())
        stage.dump()


def restore_recording(root: Path, session: Path) -> None:
    """Bring back what is missing of a recorded session, from the cache or else from the remote."""
    with _opened(root) as repo:
        with dvc_private.locked(repo):  # `Repo.status` of a folder would load every stage of the campaign
            (stage,) = repo.stage.collect(f"{_DATA}.dvc")
            if not stage.status(check_updates=True, filter_info=str(session)):
                return
        if repo.config["core"].get("remote"):
            repo.fetch([str(session)])
        repo.checkout([str(session)])


_FETCH = "Fetch them: `dvc pull data`, then run the same command again."
_NO_REMOTE = (
    "No DVC remote is set, so git alone was copied. Bring all of it: `rsr backup` where the recordings are, `rsr "
    "restore` here; or set a remote there (`dvc remote add --default NAME ADDRESS`, commit, `dvc push`), then `git "
    "pull` and `dvc pull` here."
)


def ensure_data(root: Path) -> None:
    """See that data/ exists and that DVC knows what data.dvc lists: a fresh clone has neither folder nor cache.

    Raises:
        WorkspaceError: data.dvc lists recordings that are not on this machine.
    """
    folder = root / _DATA
    with _opened(root) as repo:
        folder.mkdir(exist_ok=True)
        out = _data_output(repo)
        if out is not None and not out.changed_cache():
            return
        if out is not None and out.meta.nfiles and out.changed_checksum():
            raise WorkspaceError(
                got=f"data.dvc lists {out.meta.nfiles} files of recordings that are not on this machine",
                expected="the recordings, in data/ or in DVC's cache",
                where=str(root),
                next_step=_FETCH if repo.config["core"].get("remote") else _NO_REMOTE,
            )
        repo.add([str(folder)], relink=False)


def _data_output(repo: Repo) -> Output | None:
    return dvc_private.output_of(repo, f"{_DATA}.dvc")


def push(root: Path) -> bool:
    """Send everything to the remote; False if there is none."""
    with _opened(root) as repo:
        if not repo.config["core"].get("remote"):
            return False
        repo.push()
        return True


def torn_ledgers(root: Path) -> list[str]:
    """Name those of dvc.lock and data.dvc that a killed DVC left half-written: it does not write them atomically."""
    with _opened(root) as repo:
        return [name for name in (LOCK, f"{_DATA}.dvc") if Path(name).exists() and _is_torn(repo, name)]


def _is_torn(repo: Repo, ledger: str) -> bool:
    content = Path(ledger).read_bytes()
    if b"<<<<<<<" in content:  # not torn: two branches met, and a person must decide
        return False
    return not content.endswith(b"\n") or not dvc_private.is_readable(repo, ledger)


def sweep_cache(root: Path) -> None:
    """Remove what a killed DVC left unfinished in its cache; an empty folder among its runs makes the next one fail."""
    with _opened(root) as repo, dvc_private.locked(repo):  # whoever writes there holds this lock
        files, runs = dvc_private.cache_folders(repo)
        for leftover in [*files.rglob("*.tmp"), *runs.rglob("*.tmp")]:
            leftover.unlink(missing_ok=True)
        for folder in [path for path in runs.glob("*/*") if not any(path.iterdir())]:
            folder.rmdir()


def forget_dead_holder(root: Path, pid: int | None) -> None:
    """Clear DVC's list of paths in use: of a process known to be dead, or altogether if the list was torn.

    DVC itself drops entries of processes that are gone, but not where the number has been given to another process.
    """
    with dvc_private.list_of_paths_in_use(root) as path:  # where a live DVC writes it at this moment, it is not torn
        if path is not None:
            _drop(path, pid)


def _drop(path: Path, pid: int | None) -> None:
    try:
        users = json.loads(path.read_text())
        reads = {name: [who for who in readers if who["pid"] != pid] for name, readers in users.get("read", {}).items()}
        writes = {name: who for name, who in users.get("write", {}).items() if who["pid"] != pid}
    except (ValueError, TypeError, KeyError, AttributeError):
        path.unlink()
        return
    write_json(path, {"read": {name: readers for name, readers in reads.items() if readers}, "write": writes})


def _silence() -> None:
    """Keep DVC's log and bars off the terminal: its errors arrive as exceptions, and the bars there are ours."""
    logging.getLogger("dvc").setLevel(logging.CRITICAL)


def _refused(root: Path, error: Exception) -> WorkspaceError:
    return WorkspaceError(
        got=f"DVC's refusal: {' '.join(str(error).split())}",
        expected="a workspace in order",
        where=str(root),
        next_step="`dvc status` and `dvc doctor` in that folder say more; then run the same command again.",
    )
