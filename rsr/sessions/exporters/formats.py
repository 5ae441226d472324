"""The list of formats a session can be written in."""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import numpy as np

from rsr.common import ConfigError, WorkspaceError, cannot_write, chosen, library
from rsr.sessions import Episode, Session, write_session
from rsr.sessions.checks import check_shapes

Simulated = Sequence[Mapping[str, np.ndarray]]
"""For each episode what a simulator made of it: channel -> [T, W]."""
Write = Callable[[Session, Path, "Simulated | None"], None]


class _Exporter(NamedTuple):
    """How one format is written, and which extra its library comes with ("": none is needed)."""

    module: str
    title: str
    libraries: tuple[str, ...] = ()
    extra: str = ""
    takes_simulated: bool = False


EXPORTERS: dict[str, _Exporter] = {
    "lerobot": _Exporter("rsr.sessions.exporters.formats", "LeRobotDataset v3.0"),
    "mcap": _Exporter("rsr.sessions.exporters.mcap_file", "MCAP with JSON channels", ("mcap",), "ros"),
    "rrd": _Exporter(
        "rsr.sessions.exporters.rerun_file", "a Rerun recording", ("rerun",), "rerun", takes_simulated=True
    ),
}
"""Name -> format, as `rsr convert --to NAME` knows it."""


def export_session(session: Session, form: str, out: Path, simulated: Simulated | None = None) -> Path:
    """Write a session in another format; whole or not at all, and never over something that is there.

    Args:
        form: one of `EXPORTERS`.
        out: file (or folder, for lerobot) to write.
        simulated: what a simulator made of each episode, beside what was recorded; for `rrd` alone.

    Raises:
        ConfigError: there is no such format, or its library is not installed.
        SessionError: the session's arrays do not fit its channels.
        WorkspaceError: `out` exists already, or cannot be written.

    Example:
        >>> export_session(session, "mcap", Path("session.mcap"))  # doctest: +SKIP
    """
    exporter, out = chosen(form, EXPORTERS, "format", "export"), Path(out)
    if simulated is not None and not exporter.takes_simulated:
        raise ConfigError(
            got=f"a simulation to show in format '{form}'",
            expected="format 'rrd'",
            where="export",
            next_step="Leave the simulation out, or write a Rerun recording.",
        )
    if out.exists():
        raise WorkspaceError(
            got="something there already",
            expected="a name that is free",
            where=str(out),
            next_step="Choose another name, or remove it: nothing was overwritten.",
        )
    check_shapes(session)
    write: Write = _module(exporter).write
    write(session, out, simulated)
    return out


def _module(exporter: _Exporter) -> ModuleType:
    """Import what writes the format, once its libraries are installed."""
    for name in exporter.libraries:
        library(name, exporter.extra, f"to write {exporter.title}")
    return importlib.import_module(exporter.module)


# Episodes one after the other on one time axis, for formats that know no episodes.

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


# LeRobotDataset v3.0: what our storage is on disk already, so exporting is storing under a name of one's own.


def write(session: Session, out: Path, simulated: Simulated | None) -> None:
    """Write the folder `out`; card and checksums come along, so that `read_session` reads it as well."""
    del simulated
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}.", suffix=".part") as folder:
            write_session(Path(folder), session).rename(out)
    except OSError as error:
        raise cannot_write(out, error) from error
