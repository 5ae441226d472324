"""How fast this machine is just now, for tests that say how soon something happens."""

from __future__ import annotations

import time

_BURNT_S = 0.2


def crowding() -> float:
    """How many times longer work takes here than on a core of its own; 1 where nothing else computes."""
    began_s, cpu_s = time.perf_counter(), time.thread_time()
    while time.thread_time() - cpu_s < _BURNT_S:
        pass
    return max(1.0, (time.perf_counter() - began_s) / _BURNT_S)
