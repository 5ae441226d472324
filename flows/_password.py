"""The password of this installation's server: in one file that its owner alone may read, made when it is first needed.

Whoever has it may run code as the worker's user, so it is handed on by environment, never on a command line. The same
is true of the words by which persons log in at the page under their own names.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from rsr.common import ConfigError

FILE = "password"
"""Name of the file in PREFECT_HOME."""
PEOPLE = "people"
"""Name of another file there: a line NAME:SECRET for everybody who logs in at the page by name."""
_LEAST_CHARACTERS = 16
_PERSON = re.compile(rf"(?P<name>[!-9;-~]+( [!-9;-~]+)*):[!-~]{{{_LEAST_CHARACTERS},}}")
_RENEW = "Delete it; `make serve` makes a new one."


def password(home: Path) -> str:
    """Read the password, made anew where there is none. A folder of ours is closed to others: it holds the database.

    Raises:
        ConfigError: others may read the file, or what it holds is too short.
    """
    home.mkdir(parents=True, exist_ok=True)
    if home.stat().st_uid == os.getuid():
        home.chmod(stat.S_IMODE(home.stat().st_mode) & ~0o077)
    path = home / FILE
    if not path.exists():
        _make(path)
    check_private(path)
    words = path.read_text().strip()
    if len(words) < _LEAST_CHARACTERS or len(words.split()) != 1:
        expected = f"one word of at least {_LEAST_CHARACTERS} characters"
        raise ConfigError(got="what is no password", expected=expected, where=str(path), next_step=_RENEW)
    return words


def people(home: Path) -> dict[str, str]:
    """Read who may log in by name: words, the whole of a line -> name. Nobody where there is no such file.

    Raises:
        ConfigError: others may read the file, or a line of it is none.
    """
    path = home / PEOPLE
    if not path.exists():
        return {}
    check_private(path, f"Give everybody new words, and `chmod 600 {path}`.")
    found = {}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        person = _PERSON.fullmatch(line)
        if person is None:
            raise ConfigError(
                got="no NAME:SECRET",
                expected=f"a name, a colon and {_LEAST_CHARACTERS} characters or more, of ASCII, without blanks around",
                where=f"{path}, line {number}",
                next_step="Correct the line; `openssl rand -base64 24` makes a secret.",
            )
        found[line] = person["name"]
    return found


def check_private(path: Path, next_step: str = _RENEW) -> None:
    """Refuse a file with a secret that others may read, as ssh refuses a key.

    Raises:
        ConfigError: they may.
    """
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        got = f"mode {mode:o}, so that others may have read it"
        raise ConfigError(got=got, expected="mode 600", where=str(path), next_step=next_step)


def server_settings(words: str, address: str) -> dict[str, str]:
    """Prefect's settings of a server that asks for the password, and lets in no page but its own."""
    return {
        "PREFECT_SERVER_API_AUTH_STRING": words,
        "PREFECT_SERVER_API_CSRF_PROTECTION_ENABLED": "true",
        "PREFECT_SERVER_API_CORS_ALLOWED_ORIGINS": address,
        "PREFECT_SERVER_UI_API_URL": f"{address}/api",
    }


def client_settings(words: str, address: str) -> Mapping[str, str]:
    """Prefect's settings of whoever talks to it; a worker hands them on to its runs."""
    return {"PREFECT_API_URL": f"{address}/api", "PREFECT_API_AUTH_STRING": words}


def made_password() -> str:
    """A new one. The word before the colon serves `curl --user`; Prefect compares the whole."""
    return f"rsr:{secrets.token_urlsafe(24)}"


def _make(path: Path) -> None:
    """Write a new password whole or not at all; of two at once, the first wins."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # mode 600
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(f"{made_password()}\n")
        with suppress(FileExistsError):
            os.link(name, path)
    finally:
        Path(name).unlink()
