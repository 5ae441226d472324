"""For all tests: no network beyond this machine, and no Prefect server but the embedded one."""

from __future__ import annotations

import errno
import importlib
import os
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

_LOCAL = {None, "", "localhost", "127.0.0.1", "::1", "0.0.0.0", "::", socket.gethostname()}

for _name in ("PREFECT_API_URL", "PREFECT_API_KEY", "PREFECT_PROFILE"):
    os.environ.pop(_name, None)
os.environ["PREFECT_SERVER_ANALYTICS_ENABLED"] = "false"
os.environ["DVC_NO_ANALYTICS"] = "1"

# Ctrl-C ends what tests start, also where the shell that runs these tests in its background has it ignored.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Processes that tests start find the toy loop (tests/toy) and this checkout, whatever folder they run in.
_TESTS = Path(__file__).resolve().parent
os.environ["PYTHONPATH"] = os.pathsep.join([str(_TESTS), str(_TESTS.parent)])


def _refuse_network(event: str, arguments: tuple) -> None:
    """Answer like a machine without network. Sockets of the file system and of this machine work."""
    if event == "socket.getaddrinfo":
        host = arguments[0]
    elif event == "socket.connect" and isinstance(arguments[1], tuple):
        host = arguments[1][0]
    else:
        return
    host = host.decode() if isinstance(host, bytes) else host
    if host not in _LOCAL:
        raise OSError(errno.ENETUNREACH, f"tests run without network, and something asked for {host}")


sys.addaudithook(_refuse_network)

# Where everything of `.[dev]` is installed, as .ci/run sees to, nothing is skipped for want of it.
if os.environ.get("RSR_EVERY_EXTRA"):
    pytest.importorskip = lambda name, **_: importlib.import_module(name)


_SLOW_TIMEOUT_S = 1800
"""Of tests marked slow, which take a minute or two on a quiet machine; of others: `timeout` in pyproject.toml."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files that have slow tests, so that at the end no process works on a long one alone."""
    slow = [item for item in items if item.get_closest_marker("slow")]
    for item in slow:
        item.add_marker(pytest.mark.timeout(_SLOW_TIMEOUT_S))
    dear = {item.path for item in slow}
    items.sort(key=lambda item: item.path not in dear)


@pytest.fixture(scope="session")
def prefect_server() -> Iterator[str]:
    """One Prefect server for all tests that need one; yields its address, for the processes that they start."""
    from prefect.settings import PREFECT_API_URL
    from prefect.testing.utilities import prefect_test_harness

    with prefect_test_harness(server_startup_timeout=180):
        yield PREFECT_API_URL.value()
