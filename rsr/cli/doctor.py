"""`rsr doctor`: checks of machine and workspace; each finding says how things stand and what to do."""

from __future__ import annotations

import base64
import configparser
import json
import os
import shutil
import socket
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import psutil
from rich.markup import escape
from rich.table import Table

import rsr
from rsr.cli.command import NOT_IN_ORDER, OptionalFolder, Switch, located, show
from rsr.common import WorkspaceError
from rsr.pipelines import installed_version

_LEAST_FREE_GB = 2.0
_OLDEST_PYTHON = (3, 11)
_TOGETHER = ("mujoco", "mujoco-mjx")
_PUBLIC = {
    "MUJOCO_GL", "PREFECT_API_URL", "PREFECT_HOME", "PREFECT_PROFILE", "RSR_BATCH", "RSR_CLUSTER", "RSR_ENGINE",
    "RSR_PROJECT", "RSR_WORKERS",
}  # fmt: skip
"""Variables whose values are shown; any other may hold a secret."""
_SECRET_KEYS = {
    "access_key_id", "account_key", "client_secret", "connection_string", "gdrive_client_secret", "oss_key_secret",
    "password", "sas_token", "secret_access_key", "session_token", "token",
}  # fmt: skip
"""Options of a DVC remote that are secrets."""
_ANSWERED, _REFUSED = 200, {401, 403}
_SHOWN = ("mujoco", "jax", "torch", "stable-baselines3", "prefect", "dvc")


@dataclass(frozen=True)
class Diagnosis:
    """One line of what is said."""

    state: Literal["good", "note", "bad"]
    what: str
    found: str
    remedy: str = ""


def of_machine(folder: Path) -> Iterator[Diagnosis]:
    """Examine what every command needs, wherever it runs."""
    yield _python()
    yield from _packages()
    yield from _programs()
    yield _space(folder)
    yield Diagnosis(
        "good", "processors", f"{os.cpu_count()}, {psutil.virtual_memory().total / 2**30:.0f} GiB of memory"
    )
    yield _server()
    yield from _environment()


def of_workspace(root: Path) -> Iterator[Diagnosis]:
    """Examine a campaign's folder."""
    missing = [name for name in (".git", ".dvc") if not (root / name).exists()]
    if missing:
        remedy = "Begin a campaign: `rsr init FOLDER`."
        yield Diagnosis("bad", "workspace", f"{root} lacks {', '.join(missing)}", remedy)
        return
    yield Diagnosis("good", "workspace", str(root))
    yield _holder(root)
    yield _remote(root)
    yield from _secrets_in_git(root)
    yield from _git_head(root)
    yield from _git_locks(root)
    yield from _dvc_locks(root)


def of_hashes(root: Path) -> Iterator[Diagnosis]:
    """Read everything that a campaign recorded and computed; what disagrees with DVC's notes, one finding each."""
    from rsr.workspace import Workspace

    wrong = rsr.pipelines.verify(Workspace(root))
    remedy = "Results: delete the file, run the loop. Recordings, cache: delete the file, `dvc pull`."
    yield from (Diagnosis("bad", "hash", words, remedy) for words in wrong)
    if not wrong:
        yield Diagnosis("good", "hashes", "all as recorded")


def _python() -> Diagnosis:
    found = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < _OLDEST_PYTHON:
        return Diagnosis("bad", "Python", found, "Install 3.11 or newer: `make PYTHON=python3.11 install`.")
    return Diagnosis("good", "Python", f"{found} in {sys.prefix}")


def _packages() -> Iterator[Diagnosis]:
    versions = {name: installed_version(name) for name in {*_SHOWN, *_TOGETHER}}
    missing = sorted(name for name, version in versions.items() if version is None)
    if missing:
        yield Diagnosis("bad", "packages", f"no {', '.join(missing)}", "`make install`")
    found = ", ".join(f"{name} {versions[name]}" for name in _SHOWN if versions[name])
    yield Diagnosis("good", "packages", found)
    series = {name: ".".join((versions[name] or "").split(".")[:2]) for name in _TOGETHER}
    if len(set(series.values())) > 1:
        pair = " with ".join(f"{name} {version}" for name, version in series.items())
        yield Diagnosis("bad", "MuJoCo and MJX", pair, "Both must be of one series: `make install` brings them.")


def _programs() -> Iterator[Diagnosis]:
    for name in ("git", "dvc"):
        place = shutil.which(name) or shutil.which(name, path=str(Path(sys.executable).parent))
        if place is None:
            yield Diagnosis("bad", name, "not on PATH", "Install it, or activate .venv.")
        else:
            yield Diagnosis("good", name, place)


def _space(folder: Path) -> Diagnosis:
    free_gb = shutil.disk_usage(folder).free / 1e9
    if free_gb < _LEAST_FREE_GB:
        return Diagnosis(
            "bad", "space", f"{free_gb:.1f} GB free", "Free some: `dvc gc --workspace` drops old versions."
        )
    return Diagnosis("good", "space", f"{free_gb:.0f} GB free")


def _server() -> Diagnosis:
    address = os.environ.get("PREFECT_API_URL")
    if not address:
        return Diagnosis("good", "Prefect's server", "embedded in each run")
    parts = urlsplit(address)
    try:
        socket.create_connection((parts.hostname or "", parts.port or 4200), timeout=3).close()
    except OSError as error:
        return Diagnosis("bad", "Prefect's server", f"{_open(address)}: {error}", "Start it: `make serve`.")
    words = os.environ.get("PREFECT_API_AUTH_STRING")
    status = _status(f"{address}/admin/version", words)
    if status in _REFUSED:
        remedy = "export PREFECT_API_AUTH_STRING=$(cat .prefect/password), at the project of `make serve`"
        found = f"{_open(address)} refuses {'that' if words else 'us without a'} password ({status})"
        return Diagnosis("bad", "Prefect's server", found, remedy)
    if status == _ANSWERED and not words:
        remedy = "Every web page and user of the machine can have it run code: start it by `make serve`."
        return Diagnosis("note", "Prefect's server", f"{_open(address)} asks for no password", remedy)
    if parts.hostname in {"127.0.0.1", "localhost", "::1"}:
        return Diagnosis("good", "Prefect's server", _open(address))
    remedy = "Not on this machine: see that only the lab can reach it."
    return Diagnosis("note", "Prefect's server", _open(address), remedy)


def _status(address: str, words: str | None) -> int | None:
    """How a server answers a question, asked with this password; None if it does not."""
    headers = {"Authorization": f"Basic {base64.b64encode(words.encode()).decode()}"} if words else {}
    try:
        with urlopen(Request(address, headers=headers), timeout=5) as answer:
            return answer.status
    except HTTPError as error:
        return error.code
    except (OSError, ValueError):
        return None


def _environment() -> Iterator[Diagnosis]:
    """Settings of ours and of Prefect's that are in force here; of those that may be secrets, that they are set."""
    ours = sorted(name for name in os.environ if name.startswith(("RSR_", "PREFECT_", "MUJOCO_GL")))
    words = [f"{name}={_open(os.environ[name])}" if name in _PUBLIC else f"{name} is set" for name in ours]
    if words:
        yield Diagnosis("good", "environment", ", ".join(words))


def _open(address: str) -> str:
    """An address as it may be shown: without the name and password that it may hold."""
    parts = urlsplit(address)
    return address.replace(f"{parts.netloc.rpartition('@')[0]}@", "") if "@" in parts.netloc else address


def loop_at_work(root: Path) -> str | None:
    """Who works in the workspace at this moment, in words; None if nobody does."""
    finding = _holder(root)
    return finding.found if finding.state == "note" and not finding.remedy else None


def _holder(root: Path) -> Diagnosis:
    """Who works in the workspace: the lock itself goes with its holder, what it says may stay."""
    try:
        holder = json.loads((root / ".rsr" / "lock").read_text())
        who = f"process {holder['pid']} on {holder['host']} since {holder['since']}"
        alive = holder["host"] != socket.gethostname() or psutil.pid_exists(int(holder["pid"]))
    except (OSError, ValueError, KeyError, TypeError):
        return Diagnosis("good", "loop", "none is running")
    if not alive:
        return Diagnosis("note", "loop", f"{who}, which is dead", "The next run goes on from where it stopped.")
    return Diagnosis("note", "loop", f"{who} is running")


def _remote(root: Path) -> Diagnosis:
    config = _dvc_config(root, "config", "config.local")
    name = config.get("core", "remote", fallback=None)
    if name is None:
        return Diagnosis("note", "DVC remote", "none: data lie on this disk alone", "`dvc remote add -d NAME ADDRESS`")
    section = f"'remote \"{name}\"'"
    address = config.get(section, "url", fallback="")
    place = (root / ".dvc" / address).resolve()
    if "://" not in address and not place.exists():
        return Diagnosis("note", "DVC remote", f"{name}: {place} is not there", "It is made by the first push.")
    return Diagnosis("good", "DVC remote", f"{name}: {_open(address)}")


def _dvc_config(root: Path, *names: str) -> configparser.ConfigParser:
    """DVC's configuration, read literally: a % in an address means itself."""
    config = configparser.ConfigParser(interpolation=None)
    try:
        config.read([root / ".dvc" / name for name in names])
    except (configparser.Error, UnicodeDecodeError) as error:
        raise WorkspaceError(
            got=" ".join(str(error).split()),
            expected="settings as `dvc config` and `dvc remote` write them",
            where=str(root / ".dvc"),
            next_step="Correct the file that is named, or take it back: `git checkout .dvc/config`.",
        ) from error
    return config


def _secrets_in_git(root: Path) -> Iterator[Diagnosis]:
    """Credentials belong into .dvc/config.local; .dvc/config goes wherever the campaign goes."""
    config = _dvc_config(root, "config")
    for section in config.sections():
        found = [key for key in config[section] if key in _SECRET_KEYS]
        if "@" in urlsplit(config.get(section, "url", fallback="")).netloc.replace("git@", ""):
            found.append("url")
        for key in found:
            remedy = "`dvc remote modify --local` keeps it out of git; change the secret, which is in git's history."
            yield Diagnosis("bad", "secrets", f".dvc/config, {section}: {key}", remedy)


def _git_head(root: Path) -> Iterator[Diagnosis]:
    """Report a detached HEAD. Where .git is a file, as in a worktree, git itself has to be asked."""
    head = root / ".git" / "HEAD"
    if head.is_file() and not head.read_text().startswith("ref:"):
        remedy = "Commits of the loop are on no branch: `git switch -c NAME` keeps them."
        yield Diagnosis("note", "git", "HEAD is detached", remedy)


def _git_locks(root: Path) -> Iterator[Diagnosis]:
    for path in sorted((root / ".git").glob("*.lock")):
        yield Diagnosis("note", "git", f"{path.name} is there", "The next run removes it, unless git is at work.")


def _dvc_locks(root: Path) -> Iterator[Diagnosis]:
    """Whom DVC waits for: it notes each process beside what that reads or writes."""
    try:
        held = json.loads((root / ".dvc" / "tmp" / "rwlock").read_text())
        entries = [*held.get("read", {}).values(), *([each] for each in held.get("write", {}).values())]
        holders = {(int(who["pid"]), str(who["cmd"])) for each in entries for who in each}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return
    for pid, command in sorted(holders):
        alive = psutil.pid_exists(pid)
        remedy = "Wait for it." if alive else "It is dead; the next run drops its lock."
        yield Diagnosis("note", "DVC", f"process {pid} ({command}) holds files", remedy)


def doctor(workspace: OptionalFolder = None, deep: Switch = False) -> int:
    """Examine this machine, and the workspace if there is one: versions, space, locks, remote. Exit code 1 if ill.

    Args:
        workspace: the campaign's folder; by default the current one or the nearest above it, if any.
        deep: also read every recording and result, and compare its hash with what DVC noted.
    """
    folder = _found(workspace)
    findings = [*of_machine(folder or Path.cwd())]
    if folder is not None:
        findings += of_workspace(folder)
        findings += of_hashes(folder) if deep else ()
    table = Table("", "what", "found", "what to do")
    for finding in findings:
        mark = {"good": "[green]good[/]", "note": "[yellow]note[/]", "bad": "[red]bad[/]"}[finding.state]
        table.add_row(mark, escape(finding.what), escape(finding.found), escape(finding.remedy))
    show(table)
    return NOT_IN_ORDER if any(finding.state == "bad" for finding in findings) else 0


def _found(folder: Path | None) -> Path | None:
    """The campaign's folder; None where none was named, and the current folder lies in none."""
    try:
        return located(folder).root
    except WorkspaceError:
        if folder is not None:
            raise
        return None
