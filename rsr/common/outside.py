"""Files from outside, read within bounds: only inside their folder, only regular ones, no more than a stated size.

A document from outside may name files: checksums, a policy's network, a scenario's scene and its meshes. Such a name
may be absolute, lead out by `..` or by a link, or be a pipe that never ends. `inside` is the one place where a name
becomes a path. Everything here raises OSError or ValueError, which the caller turns into an error of its own.
"""

from __future__ import annotations

import hashlib
import json
import os
import reprlib
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import yaml

LARGEST_DOCUMENT = 16 << 20
"""Bytes of a JSON document: cards and descriptions have a few thousand."""
_CHUNK = 1 << 20


def inside(folder: Path, name: object, start: Path | None = None) -> Path:
    """Resolve a name that a document gives to a regular file in the document's folder.

    Args:
        start: the folder within `folder` that the name counts from; `folder` itself unless given.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the name is none, is absolute, leads out, or leads to what is no regular file.

    Example:
        >>> inside(Path("."), "../secret")
        Traceback (most recent call last):
        ...
        ValueError: '../secret' leads out of its folder
    """
    if not isinstance(name, str) or not name or "\0" in name:
        raise ValueError(f"{short(name)} is no name of a file")
    shown = short(name)
    root = Path(folder).resolve()
    path = _resolved(root if start is None else Path(start), name)
    if Path(name).is_absolute() or not path.is_relative_to(root):
        raise ValueError(f"{shown} leads out of its folder")
    if not stat.S_ISREG(path.stat().st_mode):
        raise ValueError(f"{shown} is no regular file")
    return path


def _resolved(start: Path, name: str) -> Path:
    try:
        return (start / name).resolve()
    except (RuntimeError, OSError) as error:  # links in a circle; a name that is too long
        raise ValueError(f"{short(name)} is no name of a file") from error


@contextmanager
def opened(path: Path, most: int) -> Iterator[BinaryIO]:
    """Open a regular file of at most so many bytes; a pipe or a device is refused and never waited for."""
    path = Path(path)
    if not stat.S_ISREG(path.stat().st_mode):  # before it is opened: opening alone may do something to a device
        raise ValueError(f"{short(path.name)} is no regular file")
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as stream:
        found = os.fstat(stream.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise ValueError(f"{short(path.name)} is no regular file")
        if found.st_size > most:
            raise ValueError(f"{found.st_size} bytes where at most {most} are expected")
        yield stream


def read_bounded(path: Path, most: int = LARGEST_DOCUMENT) -> bytes:
    """Read a whole file, if it is a regular one of at most so many bytes."""
    with opened(path, most) as stream:
        content = stream.read(most + 1)
    if len(content) > most:  # it grew, or its size was a lie
        raise ValueError(f"more than {most} bytes")
    return content


def hash_bounded(path: Path, most: int) -> str:
    """The sha256 of a file's bytes, which are never held together."""
    digest, left = hashlib.sha256(), most
    with opened(path, most) as stream:
        while chunk := stream.read(_CHUNK):
            left -= len(chunk)
            if left < 0:
                raise ValueError(f"more than {most} bytes")
            digest.update(chunk)
    return digest.hexdigest()


def parse_json(content: bytes | str) -> Any:
    """Read JSON; one that is nested too deeply is a ValueError like any other that cannot be read."""
    try:
        return json.loads(content)
    except RecursionError as error:
        raise ValueError("brackets within brackets, too deep to be read") from error


def read_object(path: Path) -> dict[str, Any]:
    """Read a JSON document that is an object."""
    document = parse_json(read_bounded(path))
    if not isinstance(document, dict):
        raise ValueError(f"a {type(document).__name__} instead of an object")
    return document


def short(value: object, most: int = 80) -> str:
    """Show a value from outside in an error: cut before it is written out, so that its size costs nothing."""
    text = _SHORT.repr(value)
    text = "".join(letter if letter.isprintable() else "?" for letter in text)
    return text if len(text) <= most else f"{text[: most - 3]}..."


class _Short(reprlib.Repr):
    """`reprlib`, which looks at a few elements of a few levels; and numbers too long to be written are named."""

    def repr_int(self, x: int, level: int) -> str:
        return repr(x) if abs(x) < 10**_LONGEST_NUMBER else "a number of many digits"


_LONGEST_NUMBER = 40
_SHORT = _Short()
_SHORT.maxlevel, _SHORT.maxstring, _SHORT.maxother = 3, 200, 200
_SHORT.maxlist = _SHORT.maxtuple = _SHORT.maxdict = _SHORT.maxset = 6


# Keys and values that once had another name: refused with the new one, never ignored. One table for all files.


KEYS = {
    # params.yaml
    "paid": "bonus_region",
    # scenario.yaml
    "zero_std": "bias_std",
    "zero_s": "bias_window_s",
    "one_is": "display_unit",
    "shifts": "sensor_delay",
    # mappings
    "late_s": "delay_s",
    # calibration.json
    "race": "structure_losses",
}
"""Old key -> new key."""

VALUES = {
    ("kind", "twin"): "stand_in",
    ("bonus_region", "away"): "off_target",
}
"""(Key, old value) -> new value."""


def new_key(key: object) -> str | None:
    """The present name of a key that was renamed."""
    return KEYS.get(key) if isinstance(key, str) else None


def new_value(key: object, value: object) -> str | None:
    """The present name of a value that was renamed."""
    return VALUES.get((key, value)) if isinstance(key, str) and isinstance(value, str) else None


def advice(new: str) -> str:
    """Say what to do about an old name, the same in every error."""
    return f"It is called '{new}' now: rename it there (CHANGELOG.md lists all renamed keys)."


# YAML that people write: settings, scenarios, mappings, robots; bounded before anything is built of it.
# A few lines of YAML can stand for gigabytes: aliases of aliases double with every line. So it is first walked
# as a stream of events, in which an alias counts as all that it stands for; only then are objects made of it.


LARGEST = 1 << 20
"""Bytes of a file; the largest of our own scenarios has 5,000."""
_MOST_NODES = 20_000
_DEEPEST = 32
_LONGEST_WORD = 20_000
_LONGEST_PLAIN = 100
"""Letters of a plain word: `1:59:59:...` is a number to YAML, and a long one takes minutes."""


def read_yaml(path: Path) -> Any:
    """Read a YAML file as plain values.

    Raises:
        OSError: there is no such file, or it cannot be read.
        ValueError: it is no YAML, no regular file, or stands for more than any file of ours would.
    """
    return parse_yaml(read_bounded(path, LARGEST).decode())


def parse_yaml(text: str) -> Any:
    """Read YAML as plain values; see `read_yaml`."""
    try:
        _check(text)
        return yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, OverflowError, TypeError, AttributeError) as error:
        raise ValueError(" ".join(str(error).split())[:300] or "no YAML") from error


def _check(text: str) -> None:
    """Walk the events; refuse what is too deep, or too much once its aliases are written out."""
    sizes: dict[str, int] = {}  # anchor -> nodes that it stands for
    open_nodes: list[tuple[str | None, int]] = []  # anchor, count where it began
    count = 0
    for event in yaml.parse(text, yaml.SafeLoader):
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in sizes:
                raise ValueError(f"alias *{event.anchor} to nothing that is complete before it")
            count += sizes[event.anchor]
        elif isinstance(event, yaml.ScalarEvent):
            count += 1
            _check_word(event)
            if event.anchor is not None:
                sizes[event.anchor] = 1
        elif isinstance(event, yaml.CollectionStartEvent):
            count += 1
            open_nodes.append((event.anchor, count))
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, began = open_nodes.pop()
            if anchor is not None:
                sizes[anchor] = count - began + 1
        if count > _MOST_NODES or len(open_nodes) > _DEEPEST:
            raise ValueError(f"more than {_MOST_NODES} entries, aliases written out, or more than {_DEEPEST} levels")


def _check_word(event: yaml.ScalarEvent) -> None:
    most = _LONGEST_PLAIN if event.style is None and event.value[:1] in "+-.0123456789" else _LONGEST_WORD
    if len(event.value) > most:
        raise ValueError(f"a word of {len(event.value)} letters")
