"""`robot.yaml`: which robot it is, and what its numbers mean in the scenario's words."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, ValidationError, model_validator

from rsr.common import ConfigError, read_yaml, short
from rsr.config import SettingsSection
from rsr.realities.envelope import SafetyEnvelope
from rsr.scenarios import MotionLimits, narrowed

_OLDEST_S = 0.25
"""No measurement older than this is acted on, whatever a robot's file says."""
DURING_CALL = "during_call"
"""`age` of a channel that is measured while `get_observation` runs."""


class Signals(SettingsSection):
    """Numbers of the robot that make one channel: ours = sign * factor of the unit * (theirs - zero).

    Args:
        keys: column -> key in the robot's dictionaries, in the order of the columns.
        signs, zeros: one a column; +1 and 0 where nothing is said. Zeros are in the robot's unit.
    """

    unit: str
    keys: dict[str, str] = Field(min_length=1)
    signs: tuple[Literal[-1, 1], ...] | None = None
    zeros: tuple[float, ...] | None = None

    @model_validator(mode="after")
    def _one_a_column(self) -> Self:
        for numbers in (self.signs, self.zeros):
            if numbers is not None and len(numbers) != len(self.keys):
                raise ValueError(f"{len(numbers)} signs or zeros for {len(self.keys)} columns")
        return self


class MeasuredSignals(Signals):
    """A channel that `get_observation` returns.

    Args:
        age: key that says how many seconds ago it was measured when the call returned, or `during_call`.
    """

    frame: str
    age: str


class EnvelopeSettings(SettingsSection):
    """Limits of this robot; see `SafetyEnvelope`. They may be narrower than the scenario's, never wider.

    Args:
        limits: name of a limit -> number, or one a command.
    """

    max_sensor_age_s: float | None = Field(default=None, gt=0, le=_OLDEST_S)
    limits: dict[str, float | tuple[float, ...]] = Field(default_factory=dict)

    def envelope(self, limits: MotionLimits, where: str) -> SafetyEnvelope:
        """The envelope of a robot whose scenario has these limits.

        Raises:
            ConfigError: the scenario has no such limit, or a narrower one.
        """
        return SafetyEnvelope(narrowed(limits, self.limits, f"{where}: envelope.limits"), self.max_sensor_age_s)


class RobotFile(SettingsSection):
    """The whole file.

    Args:
        robot: "module:name" of what makes the robot, called with `options`; it has LeRobot's `Robot` interface. This
            runs code: a robot's file is a program, to be taken only from people whose programs you would run.
        simulated: whether it is a stand-in; recordings say so.
        reset: who puts everything where an episode starts. `person`: somebody does, and confirms it. `robot`: it
            does so itself, in its method `place`.
        command: columns of the scenario's command, in order; what `send_action` takes.
        gains: of the robot's controller, for the card of the recordings.
    """

    robot: str = Field(pattern=r"^[\w.]+:\w+$")
    options: dict[str, Any] = Field(default_factory=dict)
    simulated: bool
    rate_hz: float = Field(gt=0)
    reset: Literal["person", "robot"] = "person"
    command: Signals
    channels: dict[str, MeasuredSignals]
    envelope: EnvelopeSettings = EnvelopeSettings()
    gains: dict[str, float] = Field(default_factory=dict)


def load_robot_file(path: Path) -> RobotFile:
    """Read a robot's file.

    Raises:
        ConfigError: it is missing, no YAML, or says something that is not understood.
    """
    try:
        return RobotFile.model_validate(read_yaml(path))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part)[:80] for part in first["loc"]) or "top level"
        raise _wrong(path, *_told(first["type"], first["msg"], first.get("input")), f": {place}") from error
    except (OSError, ValueError) as error:
        raise _wrong(path, " ".join(str(error).split()), "the YAML file of a robot", "") from error


def _told(kind: str, message: str, value: object) -> tuple[str, str]:
    """Say what was got and what was expected."""
    if kind == "extra_forbidden":
        return "an unknown key", "one of those in docs/robot.md"
    if kind == "value_error":
        return message.removeprefix("Value error, "), "one a column"
    return short(value), message.removeprefix("Input should be ")


def _wrong(path: Path, got: str, expected: str, place: str) -> ConfigError:
    return ConfigError(
        got=got, expected=expected, where=f"{path}{place}", next_step="Correct the file; docs/robot.md has an example."
    )
