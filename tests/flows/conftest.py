"""For tests of a served lab: Prefect's server as we start it."""

from __future__ import annotations

import http.client
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from ports import free_port

PROJECT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def server_home(tmp_path_factory) -> Path:
    """Where `server` keeps its history and its passwords."""
    return tmp_path_factory.mktemp("prefect")


@pytest.fixture(scope="module")
def server(server_home) -> Iterator[dict[str, str]]:
    """A running `python -m rsr_flows.api_server`; yields what a client's environment says of it."""
    home, port = server_home, free_port()
    command = [sys.executable, "-m", "rsr_flows.api_server", "--port", str(port)]
    environment = {**os.environ, "PREFECT_HOME": str(home)}
    with (home / "log").open("w") as log:
        started = subprocess.Popen(command, cwd=PROJECT, env=environment, stdout=log, stderr=subprocess.STDOUT)
    try:
        deadline_s = time.monotonic() + 180
        while not _listens(port):
            assert started.poll() is None, (home / "log").read_text()
            assert time.monotonic() < deadline_s
            time.sleep(0.2)
        words = (home / "password").read_text().strip()
        yield {"PREFECT_API_URL": f"http://127.0.0.1:{port}/api", "PREFECT_API_AUTH_STRING": words}
        assert words not in (home / "log").read_text()
    finally:
        started.terminate()
        started.wait(timeout=60)


def _listens(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/api/health")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


@pytest.fixture
def as_client(server, monkeypatch) -> dict[str, str]:
    """This process has the password."""
    for name, value in server.items():
        monkeypatch.setenv(name, value)
    return server
