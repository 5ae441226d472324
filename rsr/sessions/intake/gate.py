"""The gate for recordings from outside: screened, unpacked where they are archives, screened again, handed over."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rsr.common import (
    Refused,
    SessionError,
    WorkspaceError,
    cannot_write,
    inside,
    parse_json,
    read_bounded,
    short,
    write_text,
)
from rsr.sessions import Session, read_session
from rsr.sessions._lerobot_v3 import INFO_FILE, summary
from rsr.sessions.intake.archives import SUFFIXES, is_archive, unpack
from rsr.sessions.intake.screening import IntakeLimits, refused, screen

_AGAIN = "Copy the session again from where it was recorded; if it is like this there, do not use it."


@contextmanager
def admitted(sources: Sequence[Path], limits: IntakeLimits) -> Iterator[tuple[Path, ...]]:
    """Yield what may be read in place of each source; what was unpacked goes away with the block.

    Raises:
        Refused: something in a source is not safe. Errors of the block name the archive, not where it was unpacked.
    """
    with tempfile.TemporaryDirectory(prefix="rsr-intake-") as temporary:
        folder = Path(temporary).resolve()
        try:
            yield tuple(_let_in(Path(source), folder / str(index), limits) for index, source in enumerate(sources))
        except SessionError as error:
            if str(folder) not in error.where:
                raise
            raise _named_after(error, folder, sources) from error


def check_stored(folder: Path) -> Session:
    """Read a stored session that comes from outside; returns it if it is what it says it is.

    Raises:
        Refused: its bytes do not match their checksums, or its card and its description contradict what is in it.
    """
    try:
        session = read_session(folder)
    except SessionError as error:
        raise Refused(got=error.got, expected=error.expected, where=error.where, next_step=_AGAIN) from error
    check_stated(folder, session)
    return session


def check_stated(folder: Path, session: Session) -> None:
    """Compare the session's description with its content: robot, episodes, rows, widths."""
    try:
        info = parse_json(read_bounded(inside(folder, INFO_FILE)))
    except (OSError, ValueError) as error:
        raise refused(folder, f"no description that can be read ({error})", INFO_FILE, _AGAIN) from error
    for aspect, value in summary(session).items():
        if not isinstance(info, dict) or info.get(aspect) != value:
            got = f"{aspect} {short(info.get(aspect)) if isinstance(info, dict) else short(info)}"
            raise refused(folder / INFO_FILE, got, f"{value}, by the card and the data themselves", _AGAIN)


def _let_in(source: Path, folder: Path, limits: IntakeLimits) -> Path:
    if not source.exists():
        return source  # whoever opens it says so
    screen(source, limits)
    if is_archive(source):
        folder.mkdir()
        source = unpack(source, folder, limits)
        screen(source, limits)
    return source


def _named_after(error: SessionError, folder: Path, sources: Sequence[Path]) -> SessionError:
    where = error.where
    for index, source in reversed([*enumerate(sources)]):  # the path of number 10 begins like that of number 1
        where = where.replace(str(folder / str(index)), str(source))
    return error.reworded(where=where)


# Where refused recordings go, if at all: moved aside whole, the reason in a text file beside. Nothing is deleted.

FOLDER = "quarantine"


def quarantine(path: Path, reason: SessionError, folder: Path | None = None, dropped: bool = False) -> Path:
    """Move a file or folder to `<folder>/<name>-N.<extension>`, the reason to `<name>-N.txt`; returns where it is now.

    A link is moved as a link: what it leads to belongs to somebody else.

    Args:
        folder: by default `quarantine` beside it.
        dropped: it was put into an inbox, so that moving it takes nothing from anybody, whatever it holds.

    Raises:
        WorkspaceError: it cannot be moved, or holds more than was dropped; everything is where it was.
    """
    folder = path.parent / FOLDER if folder is None else folder
    _check_own(path, folder, dropped)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        moved, words = _free_names(path, folder)
        shutil.move(path, moved)
        write_text(words, f"{reason}\n")
    except OSError as error:
        raise cannot_write(folder, error) from error
    return moved


def _check_own(path: Path, folder: Path, dropped: bool) -> None:
    """Refuse to move a folder that somebody works in: the current one, one above it, a checkout, a mounted disk."""
    if path.is_symlink() or not path.is_dir():
        return
    whole = path.resolve()
    inside = [Path.cwd().resolve(), folder.resolve()]
    if (
        any(each.is_relative_to(whole) for each in inside)
        or whole.is_mount()
        or (not dropped and (whole / ".git").exists())
    ):
        raise WorkspaceError(
            got="a folder that people work in",
            expected="a recording, which can be set aside whole",
            where=str(path),
            next_step="Nothing was moved. Name the recording itself.",
        )


def _free_names(path: Path, folder: Path) -> tuple[Path, Path]:
    """Where it and the reason go, with the extension that says what it is."""
    extension = "" if path.is_dir() else _extension(path.name)
    stem = path.name.removesuffix(extension) if extension else path.name
    for number in itertools.count(1):
        moved, words = folder / f"{stem}-{number}{extension}", folder / f"{stem}-{number}.txt"
        if not (os.path.lexists(moved) or os.path.lexists(words)):
            if moved == words:  # of a text file
                words = folder / f"{stem}-{number}.reason.txt"
            return moved, words
    raise AssertionError("numbers have no end")


def _extension(name: str) -> str:
    archive = next((suffix for suffix in SUFFIXES if name.lower().endswith(suffix)), None)
    return name[-len(archive) :] if archive else Path(name).suffix
