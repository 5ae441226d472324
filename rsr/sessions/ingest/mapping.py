"""How a lab's columns become a scenario's channels: explicit, checked, kept as YAML beside what was made with it.

`Target` is what a scenario asks of a recording, `Mapping` says where that stands in it, a `Question` asks for a line.
"""

from __future__ import annotations

import math
from collections.abc import Mapping as Named
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from rsr.common import ConfigError, advice, new_key, read_yaml, short, write_text
from rsr.sessions import Channel

_Number = Annotated[float, Field(allow_inf_nan=False)]
_Model = TypeVar("_Model", bound=BaseModel)


@dataclass(frozen=True)
class Target:
    """Scenario, grid and channels that a recording is to become.

    Args:
        limits: channel -> [W, 2], what its columns can be at all, in the channel's unit.
        turning: channel of angles -> [W], which of its joints may turn round.
        rates_of: channel of velocities -> channel of the positions or orientations that it is the change of.
        tags: words about each episode that the scenario needs.
        noise: of the observed channels, in their unit.
        gap_channel: the one that calibrations are judged by, which cannot be left out.
    """

    scenario: str
    control_dt_s: float
    channels: tuple[Channel, ...]
    limits: Named[str, np.ndarray] = field(default_factory=dict)
    turning: Named[str, np.ndarray] = field(default_factory=dict)
    rates_of: Named[str, str] = field(default_factory=dict)
    gap_channel: str = ""
    tags: tuple[str, ...] = ()
    noise: Named[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Question:
    """Question that nobody but the lab can answer. `suggestion` is what stands in until it is answered."""

    place: tuple[str, ...]
    suggestion: Any
    text: str


class _Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class TimeMap(_Settings):
    """Where stamps come from: a column, the format's own stamps (`log`, `header`), or an even rate."""

    column: str | None = None
    unit: Literal["s", "ms", "us", "ns"] = "s"
    stamps: str | None = None
    rate_hz: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None

    @model_validator(mode="after")
    def _one(self) -> TimeMap:
        if sum(choice is not None for choice in (self.column, self.stamps, self.rate_hz)) != 1:
            raise ValueError("exactly one of column, stamps, rate_hz")
        return self


class EpisodeMap(_Settings):
    """Where one episode ends and the next begins, besides gaps, which always divide; and what is known of each.

    Args:
        tags: columns with one value an episode, kept as tags.
    """

    column: str | None = None
    tags: tuple[Annotated[str, BeforeValidator(str)], ...] = ()
    shortest_s: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0


class ChannelMap(_Settings):
    """One channel of the scenario: the stream and columns that hold it, or `constant`, or `leave_out`.

    Args:
        columns: of the stream, in the order of the scenario's columns.
        unrecorded: scenario's columns that the recording lacks -> what they are in every row, in the channel's unit.
        unit: what the numbers are in; one for all.
        calibration: JSON of LeRobot's, where numbers are shares of motors' ranges; they then are rad.
        sign, offset: value = sign * (number in our unit) + offset, a column each.
        quaternion: order of the columns as listed.
        delay_s: of the sensor: how much later than the truth these rows are stamped; it is taken off.
        frame: what the numbers are expressed in; it must be the scenario's, nothing is turned.
        longest_gap_s: for this channel alone, such as commands that are sent only when they change.
    """

    source: str | None = Field(None, alias="from")
    columns: tuple[Annotated[str, BeforeValidator(str)], ...] = ()
    unrecorded: dict[Annotated[str, BeforeValidator(str)], _Number] = {}
    unit: str | None = None
    calibration: str | None = None
    sign: tuple[Literal[1, -1], ...] | None = None
    offset: tuple[_Number, ...] | None = None
    quaternion: Literal["wxyz", "xyzw"] | None = None
    delay_s: Annotated[float, Field(ge=-10, le=10, allow_inf_nan=False)] | None = None
    frame: str | None = None
    longest_gap_s: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    constant: tuple[_Number, ...] | None = None
    leave_out: bool = False

    @model_validator(mode="after")
    def _one(self) -> ChannelMap:
        if sum((self.source is not None, self.constant is not None, self.leave_out)) > 1:
            raise ValueError("only one of `from:` with `columns:`, `constant:`, `leave_out: true`")
        if (self.source is None) == bool(self.columns):
            raise ValueError("`from:` and `columns:` together")
        return self


class Mapping(_Settings):
    """The whole of it.

    Args:
        longest_gap_s: two rows further apart than this have a gap between them: nothing is interpolated across it.
    """

    format: str
    scenario: str
    time: TimeMap
    longest_gap_s: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    channels: dict[str, ChannelMap]
    episodes: EpisodeMap = EpisodeMap()


class _Lines(_Settings):
    """A mapping file as far as somebody wrote it."""

    format: str | None = None
    scenario: str | None = None
    time: TimeMap | None = None
    longest_gap_s: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    channels: dict[str, ChannelMap] = {}
    episodes: EpisodeMap | None = None


def check_lines(document: Any, where: str) -> None:
    """Check lines of a mapping that may still be incomplete."""
    _validated(_Lines, document, where)


def parse_mapping(document: Any, where: str) -> Mapping:
    """Check a whole mapping that comes as plain values."""
    mapping = _validated(Mapping, document, where)
    for name, entry in mapping.channels.items():
        if entry.source is None and entry.constant is None and not entry.leave_out:
            raise ConfigError(
                got="neither `from:` with `columns:`, nor `constant:`, nor `leave_out: true`",
                expected="one of them",
                where=f"{where}: channels.{name}",
                next_step="Say where the channel comes from.",
            )
    return mapping


def _validated(model: type[_Model], document: Any, where: str) -> _Model:
    try:
        return model.model_validate(document)
    except ValidationError as error:
        first, *others = error.errors()
        more = f" ({len(others)} more after this one.)" if others else ""
        new = new_key(first["loc"][-1]) if first["type"] == "extra_forbidden" else None
        raise ConfigError(
            got=short(first["input"], 200),
            expected=f"'{new}'" if new else first["msg"].removeprefix("Value error, "),
            where=f"{where}: {'.'.join(str(part)[:80] for part in first['loc']) or 'top level'}",
            next_step=f"{advice(new) if new else 'Correct this; docs/ingest.md explains every key.'}{more}",
        ) from error


def read_lines(path: Path) -> dict[str, Any]:
    """Read a mapping file as plain values; it may be incomplete, guesses fill it."""
    try:
        document = read_yaml(path)
        if not isinstance(document, dict | None):
            raise ValueError(f"a {type(document).__name__}")
    except (OSError, ValueError) as error:
        raise ConfigError(
            got=" ".join(str(error).split())[:300],
            expected="a mapping file, YAML of the form `key: value`",
            where=str(path),
            next_step="Correct the file, or leave --map away to have one written.",
        ) from error
    return document or {}


def merged(document: dict[str, Any], place: tuple[str, ...], value: Any) -> dict[str, Any]:
    """A document with one more line, at a place such as ("channels", "joint_position", "unit").

    Example:
        >>> merged({"time": {"unit": "s"}}, ("time", "column"), "t")
        {'time': {'unit': 's', 'column': 't'}}
    """
    key, *rest = place
    inner = document.get(key)
    below = dict(inner) if isinstance(inner, dict) else {}
    return {**document, key: merged(below, tuple(rest), value) if rest else value}


def plain(mapping: Mapping) -> dict[str, Any]:
    """The mapping as plain values, without what was not said."""
    return mapping.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_defaults=True)


def to_yaml(document: Any) -> str:
    """YAML that a person can edit: a channel a block, its lists on one line."""
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=math.inf)


def write_mapping(path: Path, mapping: Mapping) -> None:
    write_text(path, to_yaml(plain(mapping)))


class _Dumper(yaml.SafeDumper):
    """Lists in one line, everything else in blocks."""


_Dumper.add_representer(list, lambda dumper, data: dumper.represent_sequence("tag:yaml.org,2002:seq", data, True))
