"""The gate for recordings from outside: screened, unpacked where they are archives, screened again, handed over."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rsr.errors import Refused, SessionError
from rsr.sessions._lerobot_v3 import INFO_FILE, summary
from rsr.sessions.archives import is_archive, unpack
from rsr.sessions.model import Session
from rsr.sessions.screening import Limits, refused, screen
from rsr.sessions.storage import read_session

_AGAIN = "Copy the session again from where it was recorded; if it is like this there, do not use it."


@contextmanager
def taken_in(sources: Sequence[Path], limits: Limits) -> Iterator[tuple[Path, ...]]:
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
    check_told(folder, session)
    return session


def check_told(folder: Path, session: Session) -> None:
    """Compare what the session's description tells of it with what is in it: robot, episodes, rows, widths."""
    try:
        told = json.loads((folder / INFO_FILE).read_bytes())
    except (OSError, ValueError) as error:
        raise refused(folder, f"no description that can be read ({error})", INFO_FILE, _AGAIN) from error
    for aspect, value in summary(session).items():
        if not isinstance(told, dict) or told.get(aspect) != value:
            got = f"{aspect} {told.get(aspect) if isinstance(told, dict) else told!r}"
            raise refused(folder / INFO_FILE, got, f"{value}, by the card and the data themselves", _AGAIN)


def _let_in(source: Path, folder: Path, limits: Limits) -> Path:
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
    return type(error)(got=error.got, expected=error.expected, where=where, next_step=error.next_step)
