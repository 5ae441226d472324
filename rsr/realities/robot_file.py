"""`robot.yaml`: which robot it is, and what its numbers mean in the scenario's words."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import yaml
from pydantic import Field, ValidationError, model_validator

from rsr.config import Section
from rsr.errors import ConfigError
from rsr.policies.world import LIMITS
from rsr.realities.envelope import SafetyEnvelope

_OLDEST_S = 0.25
"""No measurement older than this is acted on, whatever a robot's file says."""
DURING_CALL = "during_call"
"""`age` of a channel that is measured while `get_observation` runs."""


class Signals(Section):
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


class Measured(Signals):
    """A channel that `get_observation` returns.

    Args:
        age: key that says how many seconds ago it was measured when the call returned, or `during_call`.
    """

    frame: str
    age: str


class EnvelopeSettings(Section):
    """Limits of this robot; see `SafetyEnvelope` and `Limits`. They may be narrower than the defaults, never wider."""

    max_speed_rad_s: float = Field(default=SafetyEnvelope.max_speed_rad_s, gt=0, le=SafetyEnvelope.max_speed_rad_s)
    max_acceleration_rad_s2: float = Field(
        default=SafetyEnvelope.max_acceleration_rad_s2, gt=0, le=SafetyEnvelope.max_acceleration_rad_s2
    )
    max_sensor_age_s: float | None = Field(default=None, gt=0, le=_OLDEST_S)
    tip_speed_m_s: float = Field(default=LIMITS.tip_speed_m_s, gt=0, le=LIMITS.tip_speed_m_s)
    tip_lower_m: tuple[float, float, float] = LIMITS.tip_lower_m
    tip_upper_m: tuple[float, float, float] = LIMITS.tip_upper_m

    @model_validator(mode="after")
    def _box_within_the_default(self) -> Self:
        if any(np.less(self.tip_lower_m, LIMITS.tip_lower_m)) or any(np.greater(self.tip_upper_m, LIMITS.tip_upper_m)):
            raise ValueError(f"a box from {self.tip_lower_m} to {self.tip_upper_m}")
        return self

    def envelope(self) -> SafetyEnvelope:
        limits = replace(
            LIMITS, tip_speed_m_s=self.tip_speed_m_s, tip_lower_m=self.tip_lower_m, tip_upper_m=self.tip_upper_m
        )
        return SafetyEnvelope(self.max_speed_rad_s, self.max_acceleration_rad_s2, self.max_sensor_age_s, limits)


class RobotFile(Section):
    """The whole file.

    Args:
        robot: "module:name" of what makes the robot, called with `options`; it has LeRobot's `Robot` interface.
        simulated: whether it is a stand-in; recordings say so.
        reset: who puts arm and block where an episode starts. `person`: somebody does, and confirms it. `robot`: it
            does so itself, in its method `place`.
        command: the joints, in order; what `send_action` takes.
        gains: of the robot's controller, for the card of the recordings.
    """

    robot: str = Field(pattern=r"^[\w.]+:\w+$")
    options: dict[str, Any] = Field(default_factory=dict)
    simulated: bool
    rate_hz: float = Field(gt=0)
    reset: Literal["person", "robot"] = "person"
    command: Signals
    channels: dict[str, Measured]
    envelope: EnvelopeSettings = EnvelopeSettings()
    gains: dict[str, float] = Field(default_factory=dict)


def load_robot_file(path: Path) -> RobotFile:
    """Read a robot's file.

    Raises:
        ConfigError: it is missing, no YAML, or says something that is not understood.
    """
    try:
        document = yaml.safe_load(Path(path).read_text())
        return RobotFile.model_validate(document)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise _wrong(path, " ".join(str(error).split()), "the YAML file of a robot", "") from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "top level"
        raise _wrong(path, *_told(first["type"], first["msg"], first.get("input")), f": {place}") from error


def _told(kind: str, message: str, value: object) -> tuple[str, str]:
    """What was got and what was expected, in our words."""
    if kind == "extra_forbidden":
        return "an unknown key", "one of those in docs/robot.md"
    if kind == "value_error":
        return message.removeprefix("Value error, "), "one a column, and no box wider than in training"
    return repr(value)[:80], message.removeprefix("Input should be ")


def _wrong(path: Path, got: str, expected: str, place: str) -> ConfigError:
    return ConfigError(
        got=got, expected=expected, where=f"{path}{place}", next_step="Correct the file; docs/robot.md has an example."
    )
