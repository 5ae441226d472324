"""A PostgreSQL server of its own for a test: made in a temporary folder, gone with it."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from ports import free_port

_PROGRAMS = ("initdb", "pg_ctl")
_USER = "prefect"


@contextmanager
def postgresql() -> Iterator[str]:
    """Yield the address that Prefect takes; skips where PostgreSQL is not installed."""
    programs = [_find(name) for name in _PROGRAMS]
    if None in programs:
        pytest.skip("needs PostgreSQL's initdb and pg_ctl; Debian: apt install postgresql")
    initdb, control = programs
    # PostgreSQL refuses to run as root, and its sockets need a short path.
    with tempfile.TemporaryDirectory(prefix="pg") as folder:
        if os.geteuid() == 0:
            shutil.chown(folder, "postgres")
        port, cluster = free_port(), f"{folder}/data"
        settings = f"-p {port} -c listen_addresses=127.0.0.1 -k {folder}"
        _run(initdb, "-D", cluster, "-U", _USER, "--auth=trust", "--no-sync")
        _run(control, "-D", cluster, "-o", settings, "-l", f"{folder}/log", "-w", "start")
        try:
            yield f"postgresql+asyncpg://{_USER}@127.0.0.1:{port}/postgres"
        finally:
            _run(control, "-D", cluster, "-m", "immediate", "-w", "stop")


def _find(name: str) -> str | None:
    """On the path, or where Debian puts the programs of a server."""
    return shutil.which(name) or next(map(str, sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))), None)


def _run(*command: str) -> None:
    user = "postgres" if os.geteuid() == 0 else None
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, user=user, cwd="/")
