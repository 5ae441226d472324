"""Is what this container was started for alive? A worker is asked; a run's own process answers by not having ended."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from urllib.request import urlopen


def main(first: Path = Path("/proc/1/cmdline")) -> int:
    """Return the exit code that HEALTHCHECK and probes understand."""
    if b"worker" not in first.read_bytes().split(b"\0"):
        return 0
    port = os.environ.get("PREFECT_WORKER_WEBSERVER_PORT", "8080")
    try:
        with urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as answer:
            return 0 if answer.status == 200 else 1
    except OSError:
        return 1


if __name__ == "__main__":
    sys.exit(main())
