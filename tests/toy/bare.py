"""The toy loop without Prefect, quick enough to be killed a hundred times, and what must be true after a loop."""

from __future__ import annotations

import hashlib
from pathlib import Path

from rsr.config import LoopConfig
from rsr_tasks import bookkeeping, loop, versions
from rsr_tasks.campaign import finished, opened
from toy import TABLE_NAME


def run_bare_loop(root: Path, iterations: int, table_name: str = TABLE_NAME, config: LoopConfig | None = None) -> None:
    loop.run_bare_loop(root, iterations, table_name, config)


def find_faults(root: Path, iterations: int, table_name: str = TABLE_NAME) -> list[str]:
    """Say what is not as it should be after a finished loop: status, commits, leftovers, locks."""
    with opened(root, table_name) as campaign:
        complete = finished(campaign, iterations)
    problems = [] if complete else [f"not finished: stale {bookkeeping.stale(root)}"]
    if changes := versions.git(root, "status", "--porcelain"):
        problems.append(f"git status: {changes}")
    problems += [f"leftover {path}" for path in root.rglob(".*.part")]
    problems += [f"lock {path}" for path in (root / ".git").rglob("*.lock")]
    problems += [f"damaged in the cache: {path}" for path in _cached(root) if not _is_whole(path)]
    if (held := (root / ".rsr" / "lock").read_text()) != "":
        problems.append(f"held by {held}")
    return problems


def _cached(root: Path) -> list[Path]:
    return [path for path in (root / ".dvc" / "cache" / "files" / "md5").rglob("*") if path.is_file()]


def _is_whole(path: Path) -> bool:
    """DVC names every object in its cache by its MD5."""
    return hashlib.md5(path.read_bytes()).hexdigest() == path.parent.name + path.stem


def fingerprint(root: Path) -> dict[str, str]:
    """Hash everything that a loop with one seed must give equally: results, ledgers, settings, recordings."""
    names = ["data.dvc", "dvc.lock", "dvc.yaml", "iterations.json", "params.yaml"]
    files = [root / name for name in names]
    files += [path for folder in ("data", "iterations") for path in (root / folder).rglob("*") if path.is_file()]
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(files)
        if path.parent.name != "receipts"  # they tell the time
    }
