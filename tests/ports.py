"""Ports for servers that tests and benchmarks start."""

from __future__ import annotations

import socket


def free_port() -> int:
    """One that nobody listened on just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
