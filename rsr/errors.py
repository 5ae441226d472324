"""The one tree of errors. A message says what we got, what we expected, where, and what to do next."""

from __future__ import annotations


class RsrError(Exception):
    """Base of every error that a user can cause or mend."""

    def __init__(self, *, got: str, expected: str, where: str, next_step: str) -> None:
        self.got = got
        self.expected = expected
        self.where = where
        self.next_step = next_step
        super().__init__(f"{where}: got {got}; expected {expected}. {next_step}")


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
