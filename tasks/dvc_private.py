"""The parts of DVC that are not public, each under a name of ours; `missing` says which a version of DVC lacks.

Besides, this module reads and writes one stage's entry of dvc.lock by itself: DVC parses, checks and writes the whole
file for each stage, so that with a hundred iterations behind it a step of milliseconds took seconds.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rsr.common import read_json, write_text
from rsr.workspace import CHAIN_FILE
from rsr_tasks import versions

if TYPE_CHECKING:
    from dvc.output import Output
    from dvc.repo import Repo
    from dvc.stage import PipelineStage

LOCK = "dvc.lock"
PIPELINE = "dvc.yaml"
_BEGIN = "schema: '2.0'\nstages:\n"
_NEXT_STAGE = re.compile(r"\n  (?=\S)")
_STAGED = re.compile(r"/(?:dvc-staging|\.[\w-]{22}\.tmp)")
"""Names of references to outputs, and of lists of folders that DVC wrote to hash them."""

PARTS = (
    "dvc.dvcfile:Lockfile.load",
    "dvc.dvcfile:ProjectFile.contents",
    "dvc.dvcfile:ProjectFile.lockfile_contents",
    "dvc.dvcfile:ProjectFile.stages",
    "dvc.dvcfile:load_file",
    "dvc.lock:LockError",
    "dvc.lock:make_lock",
    "dvc.output:Output.changed_cache",
    "dvc.output:Output.changed_checksum",
    "dvc.output:Output.get_obj",
    "dvc.repo:Repo.__init__(_wait_for_lock)",
    "dvc.repo:lock_repo",
    "dvc.repo.stage:StageLoad.collect",
    "dvc.rwlock:rwlock(tmp_dir, fs, cmd, read, write, hardlink)",
    "dvc.stage:PipelineStage.add_outs",
    "dvc.stage:PipelineStage.commit",
    "dvc.stage:PipelineStage.dump",
    "dvc.stage:PipelineStage.remove_outs(ignore_remove, force)",
    "dvc.stage:PipelineStage.save",
    "dvc.stage:PipelineStage.status",
    "dvc.stage.cache:RunCacheNotFoundError",
    "dvc.stage.cache:StageCache.restore",
    "dvc.stage.serialize:to_lockfile",
    "dvc.utils.serialize:dumps_yaml",
    "dvc.utils.serialize:loads_yaml",
    "fsspec.implementations.memory:MemoryFileSystem.pseudo_dirs",
    "fsspec.implementations.memory:MemoryFileSystem.store",
    "scmrepo.git:Git.is_tracked",
)
"""What is used here and in `bookkeeping`, as module:name, and in brackets the parameters that are given by name."""


def missing(parts: tuple[str, ...] = PARTS) -> list[str]:
    """Name the parts that the installed DVC does not have."""
    return [part for part in parts if not _has(part)]


def _has(part: str) -> bool:
    module, _, rest = part.partition(":")
    names, _, parameters = rest.rstrip(")").partition("(")
    try:
        found = importlib.import_module(module)
        for name in names.split("."):
            found = getattr(found, name)
    except (ImportError, AttributeError):
        return False
    return not parameters or set(parameters.split(", ")) <= inspect.signature(found).parameters.keys()  # type: ignore[arg-type]


def patient_repo(root: Path) -> Repo:
    """Open a repository that waits for its lock, where DVC's own patience ends after seconds."""
    from dvc.repo import Repo

    # Git is left to versions.py: staging here would touch the index at moments when a person's git may.
    repo = Repo(str(root), config={"core": {"autostage": False}}, _wait_for_lock=True)
    # For each output DVC would go through the whole index in Python, and a campaign's grows with each iteration.
    repo.scm.is_tracked = lambda path: versions.is_tracked(root, path)
    return repo


def locked(repo: Repo) -> AbstractContextManager[None]:
    """Hold the repository's lock, as each of DVC's commands does."""
    from dvc.repo import lock_repo

    return lock_repo(repo)


@contextmanager
def in_use(repo: Repo, stage: PipelineStage) -> Iterator[None]:
    """Keep other processes of DVC off the paths of a stage while it runs."""
    from dvc.rwlock import rwlock

    reads, writes = [dep.fs_path for dep in stage.deps], [out.fs_path for out in stage.outs]
    hardlink = repo.config["core"].get("hardlink_lock", False)
    # Under DVC's own name for the holder (the command line), DVC's further calls may enter the lock again.
    with rwlock(repo.tmp_dir, repo.fs, " ".join(sys.argv), reads, writes, hardlink):
        yield


def stage_of(repo: Repo, address: str) -> PipelineStage:
    """Load one stage of dvc.yaml with its entry of dvc.lock. The current folder is the repository's."""
    from dvc.dvcfile import load_file

    entry = _entry(address)
    if entry is None:
        (stage,) = repo.stage.collect(address)
        return stage  # type: ignore[return-value]
    file = load_file(repo, str(Path(repo.root_dir) / PIPELINE))
    # What these cached properties would be, without all other stages, and without the plots of each iteration.
    file.__dict__ |= {"lockfile_contents": entry, "contents": _stages_of_pipeline(address)}
    return file.stages[address]  # type: ignore[union-attr]


def commit(repo: Repo, address: str) -> None:
    """Do what `dvc commit --force` does for one stage."""
    with locked(repo):
        stage = stage_of(repo, address)
        stage.save()
        stage.commit()
        _write_entry(stage)


def restore(repo: Repo, stage: PipelineStage) -> bool:
    """Remove what is left of the stage's outputs, then bring them back if the cache knows these inputs."""
    from dvc.stage.cache import RunCacheNotFoundError

    with locked(repo):
        stage.remove_outs(ignore_remove=False, force=False)
        try:
            repo.stage_cache.restore(stage)
        except RunCacheNotFoundError:
            return False
    return True


def output_of(repo: Repo, ledger: str) -> Output | None:
    """The one output that a .dvc file lists."""
    return repo.stage.collect(ledger)[0].outs[0] if Path(ledger).exists() else None


def is_readable(repo: Repo, ledger: str) -> bool:
    """Whether DVC makes sense of dvc.lock or of a .dvc file."""
    from dvc.dvcfile import Lockfile, load_file

    try:
        if ledger == LOCK:
            Lockfile(repo, ledger).load()
        else:
            load_file(repo, ledger).stage.outs[0]
    except Exception:  # what DVC makes of half a file ranges from its own errors to KeyError
        return False
    return True


def cache_folders(repo: Repo) -> tuple[Path, Path]:
    """Where DVC keeps files, and where runs."""
    return Path(repo.cache.local.path), Path(repo.stage_cache.cache_dir)


@contextmanager
def list_of_paths_in_use(root: Path) -> Iterator[Path | None]:
    """Hold the file in which DVC notes who uses which paths; None where there is none, or a live DVC writes it."""
    from dvc.lock import LockError, make_lock

    path = root / ".dvc" / "tmp" / "rwlock"
    lock = make_lock(str(path.with_name("rwlock.lock")), tmp_dir=str(path.parent)) if path.exists() else None
    try:
        if lock is not None:
            lock.lock()
    except LockError:
        lock = None
    try:
        yield path if lock is not None else None
    finally:
        if lock is not None:
            lock.unlock()


def forget_staged() -> None:
    """Empty the memory in which DVC stages and hashes: it keeps all of it for ever, and looks through it often."""
    from fsspec.implementations.memory import MemoryFileSystem

    for name in [name for name in MemoryFileSystem.store if _STAGED.match(name)]:
        del MemoryFileSystem.store[name]
    folders = MemoryFileSystem.pseudo_dirs
    folders[:] = [name for name in folders if not _STAGED.match(name)]


def _stages_of_pipeline(address: str) -> dict[str, Any]:
    """Content of dvc.yaml for one stage: of the chain, its own link alone."""
    from dvc.utils.serialize import loads_yaml

    parts = re.split(r"(?m)^(?=\S)", Path(PIPELINE).read_text())
    found = loads_yaml("".join(part for part in parts if part.startswith(("vars:", "stages:"))))
    if found.get("vars") == [CHAIN_FILE]:
        key, chain = address.partition("@")[2], read_json(Path(CHAIN_FILE))["chain"]
        found["vars"] = [{"chain": {key: chain[key]} if key in chain else {}}]
    return found


def _entry(address: str) -> dict[str, Any] | None:
    """Content of dvc.lock as if this stage were the only one in it; None where DVC should read it itself."""
    from dvc.utils.serialize import loads_yaml

    text = _usual_lock()
    if text is None:
        return None
    block = text[slice(*_place(text, address))]
    return {"schema": "2.0", "stages": loads_yaml(block)} if block else {}


def _write_entry(stage: PipelineStage) -> None:
    """Put the stage's entry where DVC would, in the same bytes, and atomically."""
    from dvc.stage.serialize import to_lockfile
    from dvc.utils.serialize import dumps_yaml

    new, text = dumps_yaml({"schema": "2.0", "stages": to_lockfile(stage)}), _usual_lock()
    if text is None or not new.startswith(_BEGIN):
        stage.dump(update_pipeline=False)
        return
    begin, end = _place(text, stage.name)
    changed = text[:begin] + new.removeprefix(_BEGIN) + text[end:]
    if changed != text:
        write_text(Path(LOCK), changed)


def _usual_lock() -> str | None:
    """Text of dvc.lock; None where it does not look as DVC writes it: two lines, then each line indented."""
    path = Path.cwd() / LOCK
    if not path.exists():
        return _BEGIN
    found = path.stat()
    return _if_usual(path, found.st_ino, found.st_mtime_ns, found.st_size)


@lru_cache(maxsize=1)  # it is asked for three times a stage, and grows with the chain
def _if_usual(path: Path, *_version: int) -> str | None:
    text = path.read_bytes().decode()
    lines, indented = text.count("\n") - 2, text.count("\n  ")
    usual = text.startswith(_BEGIN) and text.endswith("\n") and lines == indented
    return text if usual else None


def _place(text: str, address: str) -> tuple[int, int]:
    """Where the stage's lines begin and end in dvc.lock; at its end, if it has none yet."""
    begin = text.find(f"\n  {address}:\n") + 1
    if not begin:
        return len(text), len(text)
    following = _NEXT_STAGE.search(text, begin + 1)
    return begin, following.start() + 1 if following else len(text)
