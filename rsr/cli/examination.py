"""What `rsr doctor` looks at. Each finding says what was found and, unless all is well, what to do."""

from __future__ import annotations

import configparser
import json
import os
import shutil
import socket
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import psutil

_LEAST_FREE_GB = 2.0
_OLDEST_PYTHON = (3, 11)
_TOGETHER = ("mujoco", "mujoco-mjx")
_SHOWN = ("mujoco", "jax", "torch", "stable-baselines3", "prefect", "dvc")


@dataclass(frozen=True)
class Finding:
    """One line of the examination."""

    state: Literal["good", "note", "bad"]
    what: str
    found: str
    remedy: str = ""


def of_machine(folder: Path) -> Iterator[Finding]:
    """Examine what every command needs, wherever it runs."""
    yield _python()
    yield from _packages()
    yield from _programs()
    yield _space(folder)
    yield Finding("good", "processors", f"{os.cpu_count()}, {psutil.virtual_memory().total / 2**30:.0f} GiB of memory")
    yield _server()


def of_workspace(root: Path) -> Iterator[Finding]:
    """Examine a campaign's folder."""
    missing = [name for name in (".git", ".dvc") if not (root / name).exists()]
    if missing:
        remedy = "Make a workspace: `python -m flows.rsr_loop --workspace DIR`."
        yield Finding("bad", "workspace", f"{root} lacks {', '.join(missing)}", remedy)
        return
    yield Finding("good", "workspace", str(root))
    yield _holder(root)
    yield _remote(root)
    yield from _git_locks(root)


def _python() -> Finding:
    found = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < _OLDEST_PYTHON:
        return Finding("bad", "Python", found, "Install 3.11 or newer: `make PYTHON=python3.11 install`.")
    return Finding("good", "Python", f"{found} in {sys.prefix}")


def _packages() -> Iterator[Finding]:
    versions = {name: _version(name) for name in {*_SHOWN, *_TOGETHER}}
    missing = sorted(name for name, version in versions.items() if version is None)
    if missing:
        yield Finding("bad", "packages", f"no {', '.join(missing)}", "`make install`")
    found = ", ".join(f"{name} {versions[name]}" for name in _SHOWN if versions[name])
    yield Finding("good", "packages", found)
    series = {name: ".".join((versions[name] or "").split(".")[:2]) for name in _TOGETHER}
    if len(set(series.values())) > 1:
        pair = " with ".join(f"{name} {version}" for name, version in series.items())
        yield Finding("bad", "MuJoCo and MJX", pair, "Both must be of one series: `make install` brings them.")


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _programs() -> Iterator[Finding]:
    for name in ("git", "dvc"):
        place = shutil.which(name) or shutil.which(name, path=str(Path(sys.executable).parent))
        if place is None:
            yield Finding("bad", name, "not on PATH", "Install it, or activate .venv.")
        else:
            yield Finding("good", name, place)


def _space(folder: Path) -> Finding:
    free_gb = shutil.disk_usage(folder).free / 1e9
    if free_gb < _LEAST_FREE_GB:
        return Finding("bad", "space", f"{free_gb:.1f} GB free", "Free some: `dvc gc --workspace` drops old versions.")
    return Finding("good", "space", f"{free_gb:.0f} GB free")


def _server() -> Finding:
    address = os.environ.get("PREFECT_API_URL")
    if not address:
        return Finding("good", "Prefect's server", "embedded in each run")
    parts = urlsplit(address)
    try:
        socket.create_connection((parts.hostname or "", parts.port or 4200), timeout=3).close()
    except OSError as error:
        return Finding("bad", "Prefect's server", f"{address}: {error}", "Start it: `make serve`.")
    if parts.hostname in {"127.0.0.1", "localhost", "::1"}:
        return Finding("good", "Prefect's server", address)
    return Finding("note", "Prefect's server", address, "Not on this machine: see that only the lab can reach it.")


def _holder(root: Path) -> Finding:
    """Who works in the workspace: the lock itself goes with its holder, what it says may stay."""
    try:
        holder = json.loads((root / ".rsr" / "lock").read_text())
        who = f"process {holder['pid']} on {holder['host']} since {holder['since']}"
    except (OSError, ValueError, KeyError, TypeError):
        return Finding("good", "loop", "none is running")
    if holder["host"] == socket.gethostname() and not psutil.pid_exists(holder["pid"]):
        return Finding("note", "loop", f"{who}, which is dead", "The next run goes on from where it stopped.")
    return Finding("note", "loop", f"{who} is running")


def _remote(root: Path) -> Finding:
    config = configparser.ConfigParser()
    config.read([root / ".dvc" / name for name in ("config", "config.local")])
    name = config.get("core", "remote", fallback=None)
    if name is None:
        return Finding("note", "DVC remote", "none: data lie on this disk alone", "`dvc remote add -d NAME ADDRESS`")
    section = f"'remote \"{name}\"'"
    address = config.get(section, "url", fallback="")
    place = (root / ".dvc" / address).resolve()
    if "://" not in address and not place.exists():
        return Finding("note", "DVC remote", f"{name}: {place} is not there", "It is made by the first push.")
    return Finding("good", "DVC remote", f"{name}: {address}")


def _git_locks(root: Path) -> Iterator[Finding]:
    for path in sorted((root / ".git").glob("*.lock")):
        yield Finding("note", "git", f"{path.name} is there", "The next run removes it, unless git is at work.")
