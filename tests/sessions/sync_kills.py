"""Death at the moment at which something would reach the disk."""

from __future__ import annotations

import os
import signal


def die_at_sync(at: int) -> None:
    """Kill this process as it is about to sync for the `at`-th time from now."""
    sync, count = os.fsync, 0

    def fsync(handle: int) -> None:
        nonlocal count
        count += 1
        if count == at:
            os.kill(os.getpid(), signal.SIGKILL)
        sync(handle)

    os.fsync = fsync
