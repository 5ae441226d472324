"""Rerun: every column as a curve, every position in the world as a point; recorded and simulated side by side."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import rerun  # pyright: ignore[reportMissingImports] (of the extra [rerun])

from rsr.common import cannot_write
from rsr.sessions import Channel, Session
from rsr.sessions.exporters.formats import Simulated, laid_out

_RADIUS_M = 0.01
_COLOURS = {"real": (31, 35, 40), "simulated": (0, 104, 168)}


def write(session: Session, out: Path, simulated: Simulated | None) -> None:
    """Write the file `out`: `real/<channel>/<column>`, `simulated/...`, and `world/real/<channel>` in space."""
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}.", suffix=".part") as folder:
            part = Path(folder) / out.name
            stream = rerun.RecordingStream("rsr", recording_id=f"{session.card.scenario}/{session.card.session}")
            stream.save(part)
            for index, (episode, times_ns) in enumerate(laid_out(session)):
                _log(stream, "real", session, episode.values, episode.index, times_ns)
                if simulated is not None:
                    _log(stream, "simulated", session, simulated[index], episode.index, times_ns)
            stream.flush()
            stream.disconnect()
            part.rename(out)
    except OSError as error:
        raise cannot_write(out, error) from error


def _log(
    stream: rerun.RecordingStream,
    origin: str,
    session: Session,
    values: Mapping[str, np.ndarray],
    episode: int,
    times_ns: np.ndarray,
) -> None:
    indexes = [
        rerun.TimeColumn("time", duration=times_ns.astype("timedelta64[ns]")),
        rerun.TimeColumn("episode", sequence=np.full(len(times_ns), episode)),
    ]
    for channel in session.channels:
        if channel.name not in values:
            continue
        rows = np.asarray(values[channel.name], float)
        for index, column in enumerate(channel.columns):
            curve = rerun.Scalars.columns(scalars=rows[:, index])
            rerun.send_columns(f"{origin}/{channel.name}/{column}", indexes, curve, recording=stream)
        if _is_place(channel):
            points = rerun.Points3D.columns(
                positions=rows, radii=np.full(len(rows), _RADIUS_M), colors=[_COLOURS[origin]] * len(rows)
            )
            rerun.send_columns(f"world/{origin}/{channel.name}", indexes, points, recording=stream)


def _is_place(channel: Channel) -> bool:
    return channel.unit == "m" and channel.frame == "world" and channel.width == 3
