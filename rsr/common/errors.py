"""The one tree of errors. A message says what we got, what we expected, where, and what to do next."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from typing import Any, Self, TypeVar

T = TypeVar("T")


class RsrError(Exception):
    """Base of every error that a user can cause or mend."""

    def __init__(self, *, got: str, expected: str, where: str, next_step: str) -> None:
        self.got = got
        self.expected = expected
        self.where = where
        self.next_step = next_step
        super().__init__(f"{where}: got {got}; expected {expected}. {next_step}")

    def reworded(self, **words: str) -> Self:
        """Make the same error with other words in some of its places."""
        places = {"got": self.got, "expected": self.expected, "where": self.where, "next_step": self.next_step}
        return type(self)(**{**places, **words})


class ConfigError(RsrError):
    """A setting, a name or an option is wrong."""


class SessionError(RsrError):
    """A recording is damaged, incomplete, or does not fit its scenario."""


class Refused(SessionError):
    """A recording from outside that is not let in: it could run code, fill the disk, or is not what it says it is."""


class ScenarioError(RsrError):
    """A scenario's files contradict each other, or a parameter lies outside its bounds."""


class CalibrationError(RsrError):
    """A calibration could not be computed from what was given."""


class PolicyError(RsrError):
    """A stored policy is damaged or does not fit the scenario."""


class RealityError(RsrError):
    """A robot, or whoever stands beside it, did not do its part; what was recorded until then is kept."""


class Waiting(RealityError):
    """Nothing is wrong: a person or a lab has something to do first. Ask again later."""


class WorkspaceError(RsrError):
    """The folder the loop works in is missing git, DVC, space or permissions."""


def check_choice(
    name: object, choices: Iterable[object], *, got: str, where: str, next_step: str = "Choose one of these."
) -> None:
    """Refuse a name that is none of the choices.

    Raises:
        ConfigError: it is none, with all of them listed.
    """
    names = list(choices)
    if name not in names:
        raise ConfigError(got=got, expected=f"one of {', '.join(map(str, names))}", where=where, next_step=next_step)


def chosen(name: str, table: Mapping[str, T], what: str, where: str, next_step: str = "Choose one of these.") -> T:
    """Look a name up in a table.

    Args:
        what: the kind of thing that is named, such as `format`.

    Raises:
        ConfigError: the table has no such name; the message lists those that it has.
    """
    check_choice(name, table, got=f"{what} '{name}'", where=where, next_step=next_step)
    return table[name]


# Libraries that only some work needs: imported when asked for, and named with the extra that installs them.


def library(name: str, extra: str, purpose: str) -> Any:
    """Import a library, or say what to install.

    Args:
        purpose: what it is needed for, such as "to read HDF5 files".
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ConfigError(
            got=f"no library '{name.partition('.')[0]}'",
            expected=f"it, {purpose}",
            where="installation",
            next_step=f'Install the extra: pip install "rsr[{extra}]"',
        ) from error
