"""The list of formats, and which one a source is in.

Other packages add theirs as entry points of the group `rsr.formats`, each a `Format`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TypeVar

from rsr.common import ConfigError, RsrError, SessionError, chosen
from rsr.sessions.importers import bam, hdf5, lerobot, mcap_files, npz, pace, rosbag1, rosbag2, rsr_text, sage, table
from rsr.sessions.importers.recording import Format, Recording, unreadable

FORMATS: dict[str, Format] = {
    found.name: found
    for found in (
        rosbag1.FORMAT,
        rosbag2.FORMAT,
        mcap_files.FORMAT,
        lerobot.FORMAT,
        hdf5.FORMAT,
        npz.FORMAT,
        sage.FORMAT,
        rsr_text.FORMAT,
        pace.FORMAT,
        bam.FORMAT,
        table.PARQUET,
        table.CSV,
    )
}
"""Ours: name -> format; the first that recognises a source is taken, so the particular come before the general."""

_Found = TypeVar("_Found")
_LEAVE_AWAY = "Choose one of these, or leave it away to have it guessed."


@cache
def known_formats() -> dict[str, Format]:
    """Formats of installed packages, by name, and then ours.

    Raises:
        ConfigError: a package's format cannot be loaded, is no `Format`, or is called like one of ours.
    """
    return {found.name: found for found in map(_lent, entry_points(group="rsr.formats"))} | FORMATS


def _lent(entry: EntryPoint) -> Format:
    """The format of another package."""
    try:
        found = entry.load()
        got = f"a {type(found).__name__}" if not isinstance(found, Format) else f"a format called '{found.name}'"
    except Exception as error:  # whatever a package raises while it is imported
        found, got = None, f"{type(error).__name__}: {error}"
    if isinstance(found, Format) and found.name not in FORMATS:
        return found
    raise ConfigError(
        got=got,
        expected="a Format of rsr.sessions.importers, with a name of its own",
        where=f"entry point '{entry.name}' of rsr.formats ({entry.value})",
        next_step="Mend or remove the package that states it.",
    )


def open_recording(path: Path, name: str | None = None) -> Recording:
    """Open a source; `name` forces its format.

    Raises:
        SessionError: there is no such file, no format fits it, or nothing in it can be read.
        ConfigError: there is no format of this name, or its library is not installed.
    """
    path = Path(path)
    if not path.exists():
        raise SessionError(
            got="no such file or folder", expected="a recording", where=str(path), next_step="Correct the path."
        )
    found = _recognise(path) if name is None else chosen(name, known_formats(), "format", "--format", _LEAVE_AWAY)
    recording = _safely(path, found, lambda: found.open(path))
    load = recording.load
    return replace(recording, load=lambda part, wanted, clock: _safely(path, found, lambda: load(part, wanted, clock)))


def _safely(path: Path, form: Format, read: Callable[[], _Found]) -> _Found:
    """Run a library over a file that may be damaged: whatever it raises is damage of that file."""
    try:
        return read()
    except RsrError:
        raise
    except Exception as error:  # libraries raise errors of many kinds over a damaged file, MemoryError included
        what = str(error) or "no more is known"
        raise unreadable(path, f"content that cannot be read ({type(error).__name__}: {what})", form.title) from error


def _recognise(path: Path) -> Format:
    for candidate in known_formats().values():
        if candidate.recognises(path):
            return candidate
    raise SessionError(
        got="no format that is known",
        expected="; ".join(f"{found.name} ({found.title})" for found in known_formats().values()),
        where=str(path),
        next_step="Name the format with --format if you know it, or export the recording as CSV with a time column.",
    )
