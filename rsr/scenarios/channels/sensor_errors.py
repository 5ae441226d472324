"""What parameters say of sensors: a channel's clock is late, its readings have a gain and a bias."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rsr.common import ScenarioError
from rsr.scenarios.channels.observed import Observed

SCALES: dict[str, Literal["gain", "bias"]] = {"sensor_gain": "gain", "sensor_bias": "bias"}
"""Key of a parameter in the YAML file -> what the parameter then is."""


@dataclass(frozen=True)
class SensorScale:
    """A parameter that is the gain or the bias of a channel's readings: reading = gain x value + bias.

    Args:
        columns: of the channel, that share it.
        parameter: its index.
    """

    kind: Literal["gain", "bias"]
    channel: str
    columns: tuple[int, ...]
    parameter: int


def parse_delays(entries: Mapping[str, Any], observed: Sequence[Observed], where: str) -> tuple[tuple[str, int], ...]:
    """Pairs of a channel and the index of the parameter that is its sensor delay."""
    known = {each.channel.name: each for each in observed}
    delays = []
    for index, (name, entry) in enumerate(entries.items()):
        for channel in _listed(entry.get("sensor_delay", [])):
            if channel not in known:
                raise _refused(
                    f"channel '{channel}'", f"one of {', '.join(known)}", f"{where}, parameter {name}, sensor_delay"
                )
            delays.append((channel, index))
    return tuple(delays)


def parse_scales(entries: Mapping[str, Any], observed: Sequence[Observed], where: str) -> tuple[SensorScale, ...]:
    """Gains and biases of channels, or of single columns of them, each stated at most once.

    Raises:
        ScenarioError: a channel that nothing simulates, an orientation, or a column with two gains or two biases.
    """
    scales: list[SensorScale] = []
    for index, (name, entry) in enumerate(entries.items()):
        for key, kind in SCALES.items():
            place = f"{where}, parameter {name}, {key}"
            scales += [_scale(kind, named, index, observed, place) for named in _listed(entry.get(key, []))]
    taken: set[tuple[str, str, int]] = set()
    for scale in scales:
        ours = {(scale.kind, scale.channel, column) for column in scale.columns}
        if ours & taken:
            name = list(entries)[scale.parameter]
            raise _refused(f"a second {scale.kind} of {scale.channel}", "one a column", f"{where}, parameter {name}")
        taken |= ours
    return tuple(scales)


def _scale(
    kind: Literal["gain", "bias"], named: str, index: int, observed: Sequence[Observed], where: str
) -> SensorScale:
    """One place: a channel, or CHANNEL.COLUMN."""
    places = {each.channel.name: (each, tuple(range(each.channel.width))) for each in observed}
    for each in observed:
        columns = enumerate(each.channel.columns)
        places |= {f"{each.channel.name}.{column}": (each, (number,)) for number, column in columns}
    if named not in places:
        raise _refused(f"'{named}'", f"one of {', '.join(places)}", where)
    channel, columns = places[named]
    if channel.kind == "quaternion":
        expected = "a channel of numbers; where a sensor is mounted wrong, tune turn_x, turn_y, turn_z of its site"
        raise _refused(f"the {kind} of an orientation", expected, where)
    if kind == "gain" and channel.bias_std:
        expected = "one of the two, as the bias of a run would be scaled by the gain of all"
        raise _refused(f"a gain of {channel.channel.name}, which has `bias_std`", expected, where)
    return SensorScale(kind, channel.channel.name, columns, index)


def _listed(named: str | Sequence[str]) -> Sequence[str]:
    return [named] if isinstance(named, str) else named


def _refused(got: str, expected: str, where: str) -> ScenarioError:
    return ScenarioError(got=got, expected=expected, where=where, next_step="Correct the scenario's YAML file.")
