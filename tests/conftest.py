"""For all tests: no network beyond this machine, and no Prefect server but the embedded one."""

from __future__ import annotations

import errno
import os
import socket
import sys

_LOCAL = {None, "", "localhost", "127.0.0.1", "::1", "0.0.0.0", "::", socket.gethostname()}

for _name in ("PREFECT_API_URL", "PREFECT_API_KEY", "PREFECT_PROFILE"):
    os.environ.pop(_name, None)
os.environ["PREFECT_SERVER_ANALYTICS_ENABLED"] = "false"
os.environ["DVC_NO_ANALYTICS"] = "1"


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
