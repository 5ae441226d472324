"""The only module that touches git: commits and tags of what the loop wrote, and of nothing else."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import psutil

from rsr.common import WorkspaceError

# In a git hook these point at another repository than the one we mean.
_REDIRECTIONS = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR", "GIT_PREFIX")
_FALLBACK_IDENTITY = ("-c", "user.name=rsr loop", "-c", "user.email=rsr@localhost")
_UNATTENDED = ("-c", "commit.gpgSign=false", "-c", "tag.gpgSign=false", "-c", "gc.auto=0")
_PATIENCE_S = 20.0


def git(root: Path, *arguments: str) -> str:
    """Run git in the workspace; a failure is a WorkspaceError with git's own words."""
    environment = {name: value for name, value in os.environ.items() if name not in _REDIRECTIONS}
    command = ["git", "-C", str(root), *arguments]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise _failed(root, arguments, "no git on this machine", "Install git.") from error
    if done.returncode != 0:
        said = " ".join(done.stderr.split()) or f"exit code {done.returncode}"
        raise _failed(root, arguments, said, "Mend this, then run the same command again: nothing was lost.")
    return done.stdout.rstrip("\n")


def initialise(root: Path) -> None:
    git(root, "init", "--quiet", "--initial-branch=main")


def commit(root: Path, message: str, paths: list[Path], tags: Sequence[str] = ()) -> None:
    """Commit these files, whatever else is staged or edited. A tag is set once: it marks when this was first done."""
    names = [path.relative_to(root).as_posix() for path in paths]
    if _changed(root, names):
        clear_dead_locks(root)
        git(root, "add", "--", *names)
        git(root, *_signature(root), "commit", "--quiet", "--no-verify", "-m", message, "--", *names)
    for tag in tags:
        if not _tagged(root, tag):  # annotated: DVC finds no model behind a plain tag
            git(root, *_signature(root), "tag", "--annotate", "-m", message, tag)


def is_committed(root: Path, paths: list[Path], tags: Sequence[str]) -> bool:
    return all(_tagged(root, tag) for tag in tags) and not _changed(
        root, [path.relative_to(root).as_posix() for path in paths]
    )


def is_tracked(root: Path, path: str) -> bool:
    """Whether git tracks a file, or one in a folder."""
    return bool(git(root, "--literal-pathspecs", "ls-files", "--", path))


def committed_version(root: Path, name: str) -> str | None:
    """The text of a file as last committed, or None."""
    try:
        return git(root, "show", f"HEAD:./{name}") + "\n"
    except WorkspaceError:
        return None


def head(root: Path) -> tuple[str | None, str]:
    """The branch, None where HEAD is detached, and the commit."""
    return git(root, "branch", "--show-current") or None, git(root, "rev-parse", "HEAD")


def detached(root: Path) -> str:
    """Say that commits would be on no branch; empty where one is checked out."""
    branch, commit = head(root)
    if branch is not None:
        return ""
    return (
        f"{root}: HEAD is detached at {commit[:12]}, so what the loop commits is on no branch. "
        f"Keep it: `git -C {root} switch -c NAME`."
    )


def listed(root: Path) -> list[str]:
    """Files that git tracks, or would with `git add .`."""
    names = git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
    return [name for name in names if name]


def bundle(root: Path, file: Path) -> None:
    """Write the whole history, of all branches and tags, into one file."""
    git(root, "bundle", "create", "--quiet", str(file), "--all", "HEAD")


def unbundle(root: Path, file: Path, branch: str | None, commit: str) -> None:
    """Make a repository of a bundle, with this commit checked out as far as git knows; no file is touched.

    Nothing of it can run: a bundle holds neither settings nor hooks, and its objects are checked.
    """
    initialise(root)
    fetch = ("-c", "fetch.fsckObjects=true", "fetch", "--quiet", "--update-head-ok", "--no-recurse-submodules")
    git(root, *fetch, str(file), "refs/*:refs/*")
    if branch is None:
        git(root, "update-ref", "--no-deref", "HEAD", commit)
    else:
        git(root, "symbolic-ref", "HEAD", f"refs/heads/{branch}")
    if head(root) != (branch, commit):
        raise WorkspaceError(
            got=f"a history that ends at {head(root)[1]}",
            expected=commit,
            where=str(root),
            next_step="Use another archive of this campaign.",
        )
    git(root, "read-tree", "HEAD")


def clear_dead_locks(root: Path) -> None:
    """Remove the lock files that a killed git left; a live git is waited for.

    Raises:
        WorkspaceError: a git process has been at work in this workspace for a long time (an editor may be open).
    """
    folder = Path(git(root, "rev-parse", "--absolute-git-dir"))
    patterns = ("*.lock", "refs/**/*.lock")
    deadline_s = time.monotonic() + _PATIENCE_S
    while locks := [path for pattern in patterns for path in folder.glob(pattern)]:
        busy = _git_processes(root)
        if not busy:
            for path in locks:
                path.unlink(missing_ok=True)
        elif time.monotonic() > deadline_s:
            raise WorkspaceError(
                got=f"git at work in the workspace (process {', '.join(map(str, busy))})",
                expected="no other git command in it",
                where=str(root),
                next_step="Finish or stop that command, then run the same command again.",
            )
        else:
            time.sleep(0.2)


def _git_processes(root: Path) -> list[int]:
    """Live git processes whose current folder is in the workspace (`git -C` changes into it, too)."""
    found = []
    for process in psutil.process_iter(["name", "cwd", "status"]):
        inside = process.info["cwd"] and Path(process.info["cwd"]).is_relative_to(root)
        if inside and process.info["name"].startswith("git") and process.info["status"] != psutil.STATUS_ZOMBIE:
            found.append(process.pid)
    return found


def _changed(root: Path, names: list[str]) -> bool:
    return bool(git(root, "status", "--porcelain", "--", *names))


def _tagged(root: Path, tag: str) -> bool:
    return bool(git(root, "tag", "--list", tag))


def _signature(root: Path) -> tuple[str, ...]:
    """Options under which git writes without asking: as its user, or else as the loop."""
    return (*(() if _has_identity(root) else _FALLBACK_IDENTITY), *_UNATTENDED)


def _has_identity(root: Path) -> bool:
    if os.environ.get("GIT_AUTHOR_EMAIL") and os.environ.get("GIT_COMMITTER_EMAIL"):
        return True
    try:
        return bool(git(root, "config", "user.email") and git(root, "config", "user.name"))
    except WorkspaceError:
        return False


def _failed(root: Path, arguments: tuple[str, ...], got: str, next_step: str) -> WorkspaceError:
    command = next((word for word in arguments if not word.startswith("-") and "=" not in word), "")
    return WorkspaceError(got=got, expected=f"`git {command}` to succeed", where=str(root), next_step=next_step)
