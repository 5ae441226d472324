"""Episodes one after the other on one time axis, for formats that know no episodes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rsr.sessions.model import Episode, Session

_PAUSE_NS = 1_000_000_000
"""Between two episodes."""
_LONGEST_S = 1e8
"""Three years: times beyond come from damaged stamps, and nanoseconds of them would not fit into 64 bits."""


def laid_out(session: Session) -> Iterator[tuple[Episode, np.ndarray]]:
    """Yield each episode with nanoseconds [T] from the session's start, which never go back.

    They are for viewers. What was recorded is `time_s`; damaged stamps are squeezed onto this axis, not repaired.
    """
    begin_ns = 0
    for episode in session.episodes:
        time_s = np.asarray(episode.time_s, float)
        finite = time_s[np.isfinite(time_s)]
        start_s = float(finite[0]) if finite.size else 0.0
        with np.errstate(over="ignore", invalid="ignore"):
            since_s = np.clip(np.nan_to_num(time_s - start_s, nan=0.0), 0.0, _LONGEST_S)
        elapsed_ns = np.maximum.accumulate(np.rint(since_s * 1e9).astype(np.int64))
        yield episode, begin_ns + elapsed_ns
        begin_ns += int(elapsed_ns[-1]) + _PAUSE_NS
