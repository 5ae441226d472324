"""Sessions on disk: `root/<scenario>/<session>/`, append only, whole or not at all, each file with its checksum."""

from __future__ import annotations

import hashlib
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa

from rsr.common import (
    LARGEST_DOCUMENT,
    SessionError,
    WorkspaceError,
    cannot_write,
    hash_bounded,
    inside,
    parse_json,
    read_bounded,
    short,
    sync_folder,
    write_bytes,
)
from rsr.sessions._lerobot_v3 import CARD_FILE, CHECKSUM_FILE, DATA_FILE, decode_card, decode_data, encode, to_json
from rsr.sessions.checks import check_shapes
from rsr.sessions.model import Session

_UNFINISHED = ".part"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_LARGEST, _LARGEST_CARD = 1 << 30, 64 << 20
"""Bytes of one file that is read or compared with its checksum; of the card, which may tag many episodes."""


def write_session(root: Path | str, session: Session, beside: Mapping[str, bytes | Path] | None = None) -> Path:
    """Store a session in the LeRobotDataset v3.0 layout and return its folder `root/<scenario>/<session>`.

    The files are written to a hidden folder beside it, synced, then renamed, so that no crash leaves half a session
    that reads as a whole one. Writing what is already there changes nothing.

    Args:
        beside: further files of the folder, such as what the session was made from: name -> its bytes, or the path of a
            file to copy. Copied files may be large, so that reading the session does not verify them.

    Raises:
        SessionError: another recording has this name, or the arrays do not fit their channels.
        WorkspaceError: the disk is full or the folder cannot be written.

    Examples:
        >>> write_session("data", session)  # doctest: +SKIP
        PosixPath('data/push_cube/session-001')
    """
    _check_names(session)
    check_shapes(session)
    folder = Path(root) / session.card.scenario / session.card.session
    if folder.exists():
        _check_identical(folder, session)
    else:
        _write_folder(folder, encode(session), beside or {})
    _sweep(folder, session)
    return folder


def read_session(folder: Path | str, verify: bool = True) -> Session:
    """Read a stored session.

    Args:
        verify: compare every file with its checksum first (the default). Without, whatever can be decoded is
            returned: a way to look into a damaged session, not to compute with it.

    Raises:
        SessionError: a file is missing or damaged (the error names it), or the folder is half-written.

    Examples:
        >>> session = read_session("data/push_cube/session-001")  # doctest: +SKIP
        >>> session.episodes[0]["joint_position"].shape  # doctest: +SKIP
        (61, 6)
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise _damaged(folder, "no such folder")
    if verify:
        _check_finished(folder)
        _check_sums(folder)
    with _reading(folder, CARD_FILE, _LARGEST_CARD) as content:
        card, channels, tags = decode_card(content)
        _check_readable(card.scenario, card.session, *(channel.name for channel in channels))
    with _reading(folder, DATA_FILE) as content:
        episodes = decode_data(content, channels, tags)
    return Session(card, channels, episodes)


def is_session(folder: Path) -> bool:
    """Whether a folder looks like a stored session; `read_session` says whether it is one."""
    return (folder / CARD_FILE).is_file()


def is_session_name(name: object) -> bool:
    """Whether a session may be called so: letters, digits, '_' and '-'."""
    return isinstance(name, str) and _NAME.fullmatch(name) is not None


def recover_session(folder: Path) -> Path:
    """Finish a half-written session, if the crash came after its data and its card were written."""
    session = read_session(folder, verify=False)
    return write_session(Path(folder).parent.parent, session)  # which also removes the half-written folder


def _check_readable(*names: object) -> None:
    """Names become paths, and a scenario's is looked up: one that `write_session` refuses was not written by it."""
    for name in names:
        if not is_session_name(name):
            raise ValueError(f"the name {short(name)}")


def _check_names(session: Session) -> None:
    """Refuse what could not be found again: names that are no folder or column, episodes out of order."""
    card = session.card
    names = [channel.name for channel in session.channels]
    for name in (card.scenario, card.session, *names):
        if not _NAME.fullmatch(name):
            raise _unfit(session, f"the name {name!r}", "letters, digits, '_' and '-'", "Choose another name.")
    if len(set(names)) < len(names):
        raise _unfit(session, f"channels {', '.join(names)}", "each name once", "Rename one of them.")
    if [episode.index for episode in session.episodes] != list(range(len(session.episodes))):
        got = f"episodes numbered {', '.join(str(episode.index) for episode in session.episodes)}"
        raise _unfit(session, got, "0, 1, 2, ...", "Renumber the episodes in the order of recording.")
    numbers = [card.control_dt_s, *card.gains.values(), *card.limits.values()]
    if not (np.isfinite(numbers).all() and card.control_dt_s > 0):
        got = f"a card with control_dt_s {card.control_dt_s}, gains {card.gains}, limits {card.limits}"
        raise _unfit(session, got, "finite numbers and a positive control_dt_s", "Correct the card.")


def _unfit(session: Session, got: str, expected: str, next_step: str) -> SessionError:
    where = f"session '{session.card.session}'"
    return SessionError(got=got, expected=expected, where=where, next_step=next_step)


def _write_folder(folder: Path, files: Mapping[str, bytes], beside: Mapping[str, bytes | Path]) -> None:
    files = {**files, **{name: content for name, content in beside.items() if isinstance(content, bytes)}}
    sums = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    part = None
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}.", suffix=_UNFINISHED))
        part.chmod(0o755)
        for name, content in files.items():
            write_bytes(part / name, content)
        for name, source in beside.items():
            if isinstance(source, Path):
                _copy(source, part / name)
        write_bytes(part / CHECKSUM_FILE, to_json({"algorithm": "sha256", "files": sums}))
        for directory in (part, *(path for path in part.rglob("*") if path.is_dir())):
            sync_folder(directory)
        part.rename(folder)
        sync_folder(folder.parent)
    except WorkspaceError as error:  # of one file: say which session
        raise error.reworded(where=str(folder)) from error
    except OSError as error:
        raise cannot_write(folder, error) from error
    finally:
        if part is not None:
            shutil.rmtree(part, ignore_errors=True)


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    sync_folder(target)


def _check_identical(folder: Path, session: Session) -> None:
    if not _same(read_session(folder), session):
        raise SessionError(
            got="another recording of this name",
            expected="a new name: recordings are append-only",
            where=str(folder),
            next_step="Give this session the next free number; nothing was overwritten.",
        )


def _same(one: Session, other: Session) -> bool:
    """Compare to the last bit (NaN equals itself), in the float64 that is stored."""
    return (
        (one.card, one.channels, len(one.episodes)) == (other.card, other.channels, len(other.episodes))
        and all(
            (a.tags, _bits(a.time_s)) == (b.tags, _bits(b.time_s))
            for a, b in zip(one.episodes, other.episodes, strict=True)
        )
        and all(
            _bits(a[channel.name]) == _bits(b[channel.name])
            for a, b in zip(one.episodes, other.episodes, strict=True)
            for channel in one.channels
        )
    )


def _bits(values: np.ndarray) -> bytes:
    return np.asarray(values, float).tobytes()


def _sweep(folder: Path, session: Session) -> None:
    """Remove what earlier, interrupted writings of this session left, unless it holds a different recording."""
    for part in folder.parent.glob(f".{folder.name}.*{_UNFINISHED}"):
        try:
            obsolete = _same(read_session(part, verify=False), session)
        except SessionError:
            obsolete = True
        if obsolete:
            shutil.rmtree(part, ignore_errors=True)


def _check_finished(folder: Path) -> None:
    if folder.suffix == _UNFINISHED:
        raise SessionError(
            got="a half-written session: its writing was interrupted",
            expected="a finished one",
            where=str(folder),
            next_step="Try recover_session on it, or delete it and record again; other sessions are not affected.",
        )


def _check_sums(folder: Path) -> None:
    with _reading(folder, CHECKSUM_FILE, LARGEST_DOCUMENT) as content:
        expected = dict(parse_json(content)["files"])
    for name in (DATA_FILE, CARD_FILE):
        expected.setdefault(name, "")
    files = dict.fromkeys(_listed(folder, name) for name in expected)
    if len(files) < len(expected):
        raise _damaged(folder / CHECKSUM_FILE, "a file that is listed under two names")
    for file, checksum in zip(files, expected.values(), strict=True):
        with _damage_of(file):
            if hash_bounded(file, _LARGEST) != checksum:
                raise _damaged(file, "bytes that do not match their checksum")


def _listed(folder: Path, name: str) -> Path:
    """A file that the session's own list names; one that leads elsewhere is never opened."""
    try:
        return inside(folder, name)
    except FileNotFoundError as error:
        raise _damaged(folder / name, "no such file") from error
    except (OSError, ValueError) as error:
        got = f"content that cannot be read ({error}, though {CHECKSUM_FILE} lists it)"
        raise _damaged(Path(f"{folder}/{name}"), got) from error


@contextmanager
def _reading(folder: Path, name: str, most: int = _LARGEST) -> Iterator[bytes]:
    """Yield a file's bytes; whatever goes wrong with them in the block is damage of that file."""
    with _damage_of(folder / name):
        yield read_bounded(inside(folder, name), most)


@contextmanager
def _damage_of(path: Path) -> Iterator[None]:
    """Say of which file it is damage that reading it fails."""
    try:
        yield
    except FileNotFoundError as error:
        raise _damaged(path, "no such file") from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError, MemoryError, pa.ArrowException) as error:
        words = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        raise _damaged(path, f"content that cannot be read ({words})") from error


def _damaged(path: Path, got: str) -> SessionError:
    return SessionError(
        got=got[:400],
        expected="a session as it was written",
        where=str(path)[:500],
        next_step="Restore it (`dvc checkout`, or a copy) or leave this session out; other sessions are not affected.",
    )
