"""Match recorded columns to a channel's columns by their names, and state how sure each match is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from rsr.sessions import Channel
from rsr.sessions.importers import Stream
from rsr.sessions.ingest.units import convertible, unit_in_name


def _set(words: str) -> set[str]:
    return set(words.split())


_COMMAND = _set("cmd command commanded des desired target setpoint goal ref reference con action ctrl control")
_QUANTITIES = {
    "orientation": _set("quat quaternion orientation rotation rot qw qx qy qz"),
    "velocity": _set("vel velocity velocities dq qd qvel speed omega gyro rate vx vy vz wx wy wz twist"),
    "acceleration": _set("acc accel acceleration ddq"),
    "torque": _set("tau torque torques effort trq current moment"),
    "force": _set("force forces"),
    "position": _set("pos position positions q qpos angle angles dof joint pose translation"),
}
_ANGULAR = _set("angular omega gyro wx wy wz ang angvel")
_LINEAR = _set("linear lin vx vy vz linvel")
_EMPTY = _set("meas measured feedback actual state states data real obs observation raw robot the val value dof s")
_ALIASES = {"qpos": "pos", "qvel": "vel", "jointpos": "pos", "jointvel": "vel", "eef": "tip", "ee": "tip", "des": "cmd"}


@dataclass(frozen=True)
class Match:
    """Columns of a stream that may be a channel.

    Args:
        sure: every column was found by its name, and only there.
        why: in words, for the person who is asked.
    """

    stream: str
    columns: tuple[str, ...]
    sure: bool
    why: str
    score: float


@dataclass(frozen=True)
class _Name:
    """A recorded name taken apart."""

    tokens: frozenset[str]
    quantity: str
    command: bool


def quantity(channel: Channel) -> str:
    """Quantity that a channel measures, by its unit."""
    if channel.is_quaternion:
        return "orientation"
    by_unit = {"rad/s": "velocity", "m/s": "velocity", "N m": "torque", "N": "force", "m/s2": "acceleration"}
    return by_unit.get(channel.unit, "position")


def matches(channel: Channel, streams: Sequence[Stream], channels: Sequence[Channel]) -> list[Match]:
    """All streams that may hold a channel, the likeliest first."""
    unique = {column for column in channel.columns if sum(column in other.columns for other in channels) == 1}
    found = [match for stream in streams if (match := _match(channel, stream, unique)) is not None]
    found.sort(key=lambda match: -match.score)
    if len(found) > 1 and found[0].score == found[1].score:
        found[0] = Match(found[0].stream, found[0].columns, False, f"as well as '{found[1].stream}'", found[0].score)
    return found


def _match(channel: Channel, stream: Stream, unique: set[str]) -> Match | None:
    if _called(stream) == channel.name and stream.columns == channel.columns:
        return Match(stream.name, stream.columns, True, "by name", 20.0)
    if channel.width == 1 and channel.name in stream.columns:
        return Match(stream.name, (channel.name,), True, "by name", 15.0)
    if not stream.named:
        return _whole_array(channel, stream)
    return _each_column(channel, stream, unique) or _in_full(channel, stream) or _numbered(channel, stream)


def _in_full(channel: Channel, stream: Stream) -> Match | None:
    """Recorded columns with the channel's name and each column's, whatever these words say: duty_left, gyro_x_dps."""
    called: dict[str, list[str]] = {}
    for column in stream.columns:
        unit = stream.units.get(column) or unit_in_name(column)
        if unit is None or convertible(unit, channel.unit):
            called.setdefault(_plain(column), []).append(column)
    found = [called.get(_plain(f"{channel.name}_{column}"), []) for column in channel.columns]
    columns = tuple(each[0] for each in found if len(each) == 1)
    return Match(stream.name, columns, True, "by name", 2.0) if len(columns) == channel.width else None


def _each_column(channel: Channel, stream: Stream, unique: set[str]) -> Match | None:
    """A recorded column for each of the channel's, found by its name."""
    scores, columns, tied = [], [], False
    for wanted in channel.columns:
        rated = sorted(
            ((_score(channel, wanted, stream, column, wanted in unique), column) for column in stream.columns),
            key=lambda pair: -pair[0],
        )
        best, column = rated[0] if rated else (0.0, "")
        if best <= 0 or column in columns:
            return None
        tied |= len(rated) > 1 and rated[1][0] == best
        scores.append(best)
        columns.append(column)
    stranger = _stranger(channel, stream)
    why = (
        "several columns fit equally"
        if tied
        else f"'{stranger}' is not in the channel's name"
        if stranger
        else "by name"
    )
    return Match(stream.name, tuple(columns), not (tied or stranger), why, min(scores) - bool(stranger))


def _numbered(channel: Channel, stream: Stream) -> Match | None:
    """Columns with one name and running numbers, as many as the channel has: `actual_q_0`, `actual_q_1`, ..."""
    runs: dict[str, dict[int, str]] = {}
    for column in stream.columns:
        parts = re.fullmatch(r"(.*?)[_.\[]?(\d+)\]?", column)
        if parts and parts.group(1):
            runs.setdefault(parts.group(1), {})[int(parts.group(2))] = column
    fitting = []
    for prefix, numbers in runs.items():
        exact = _plain(prefix) == _plain(channel.name)
        running = sorted(numbers) == list(range(min(numbers), min(numbers) + channel.width))
        if running and (exact or _speaks_of(channel, _taken_apart(f"{stream.name} {prefix}"), prefix)):
            fitting.append((exact, tuple(numbers[number] for number in sorted(numbers))))
    if not fitting:
        return None
    exact, columns = max(fitting)
    why = "the source numbers its columns, so their order is assumed"
    return Match(stream.name, columns, False, why, 1.5 if exact else 0.5)


def _speaks_of(channel: Channel, name: _Name, prefix: str) -> bool:
    """Whether a name without its number can be the channel's; `q0` to `q3` may be a quaternion."""
    if channel.is_quaternion:
        return name.quantity == "orientation" or prefix.lower().rstrip("_.[") == "q"
    rest = name.tokens - _common(name.tokens) - {"table"}
    return _fits(channel, name) and (not rest or bool(rest & _entity(channel)))


def _called(stream: Stream) -> str:
    """A stream's own name, without the path to it."""
    return re.split(r"[./]", stream.name)[-1]


def _stranger(channel: Channel, stream: Stream) -> str:
    """A word in the stream's name that speaks of something else than the channel does: tip_pose for block_position."""
    tokens = _tokens(stream.name)
    rest, entity = tokens - _common(tokens) - {"table"}, _entity(channel)
    return "" if not entity or not rest or rest & entity else min(rest)


def _whole_array(channel: Channel, stream: Stream) -> Match | None:
    """An array without names of columns: its own name says what it is, its width must fit, its order is anyone's."""
    name = _taken_apart(stream.name)
    if len(stream.columns) != channel.width or not _fits(channel, name):
        return None
    entity, rest = _entity(channel), name.tokens - _common(name.tokens)
    if rest and entity and not rest & entity:
        return None
    spatial = channel.width == 1 or channel.columns == ("x", "y", "z")
    why = "by name" if spatial else "the source does not name the columns, so their order is assumed"
    return Match(stream.name, stream.columns, spatial, why, 1.0 + 2 * len(rest & entity))


def _score(channel: Channel, wanted: str, stream: Stream, column: str, unique: bool) -> float:
    """0: cannot be. Otherwise the more the better."""
    name = _taken_apart(column)
    whole = _plain(column)
    unit = stream.units.get(column) or unit_in_name(column)
    if unit is not None and not convertible(unit, channel.unit):
        return 0.0
    if unique and whole == wanted.lower():
        return 10.0
    both = _taken_apart(f"{stream.name} {column}") if stream.name != "table" else name
    if not _names_column(wanted, name, whole, channel) or not _fits(
        channel, _Name(name.tokens, name.quantity or both.quantity, both.command)
    ):
        return 0.0
    own = _tokens(wanted) | {wanted.lower()} | set(wanted[-1:].lower() if channel.is_quaternion else "")
    rest = name.tokens - _common(name.tokens) - own
    entity = _entity(channel)
    if rest and entity and not (rest | both.tokens) & entity:
        return 0.0
    if rest and not rest & entity:
        return 1.0
    return 2.0 + 2 * len(both.tokens & entity)


def _names_column(wanted: str, name: _Name, whole: str, channel: Channel) -> bool:
    """Whether a recorded name speaks of this column: `joint1` of q1, `qw` of orientation.w."""
    wanted = wanted.lower()
    spelt = "_".join(_words(wanted))
    if wanted in name.tokens or wanted == whole or f"_{spelt}_" in f"_{whole}_":
        return True
    if channel.is_quaternion:
        return name.quantity == "orientation" and bool({wanted[-1], f"q{wanted[-1]}"} & name.tokens)
    number = re.fullmatch(r"(joint|j|link|axis|motor)?_?(\d+)", wanted)
    return bool(number) and number.group(2) in name.tokens


def _fits(channel: Channel, name: _Name) -> bool:
    commanded = channel.stamp == "held_until_next" or bool(_tokens(channel.name) & _COMMAND - {"target", "goal"})
    if (name.quantity or "position") != quantity(channel) or name.command != (
        commanded or "target" in _tokens(channel.name)
    ):
        return False
    if quantity(channel) == "velocity" and channel.frame != "joint":
        angular = channel.unit == "rad/s"
        return not name.tokens & (_LINEAR if angular else _ANGULAR)
    return True


@cache
def _entity(channel: Channel) -> frozenset[str]:
    """Subject of a channel: `block` in block_position."""
    tokens = _tokens(channel.name)
    return tokens - _common(tokens) - _COMMAND - {"joint", "linear", "angular", "measured", "commanded"}


def _common(tokens: frozenset[str] | set[str]) -> set[str]:
    """The tokens that say what kind of quantity, not whose."""
    kinds = set().union(*_QUANTITIES.values()) | _COMMAND | _EMPTY | _ANGULAR | _LINEAR
    return {token for token in tokens if token in kinds or re.sub(r"\d+$", "", token) in kinds}


@cache
def _taken_apart(text: str) -> _Name:
    tokens = _tokens(text)
    commanded = bool(tokens & _COMMAND)
    for kind, words in _QUANTITIES.items():
        if tokens & words:
            return _Name(frozenset(tokens), kind, commanded)
    return _Name(frozenset(tokens), "", commanded)


@cache
def _plain(text: str) -> str:
    return "_".join(_words(text))


def _words(text: str) -> list[str]:
    """Lower-case words, without the unit at the end."""
    unit = unit_in_name(text)
    if unit is not None:
        text = re.sub(r"[\[(][^\])]*[\])]\s*$", "", text) if text.rstrip()[-1:] in "])" else _without(text, unit)
    text = re.sub(r"([a-z])([A-Z])", r"\1_\2", text)
    return [_ALIASES.get(word, word) for word in re.split(r"[^a-z0-9]+", text.lower()) if word]


def _without(text: str, unit: str) -> str:
    words = re.split(r"([_.\s]+)", text)
    if len(words) > 6 and words[-3].lower() == "per":
        return "".join(words[:-6])
    of_two_words = len(words) > 4 and unit_in_name(f"x_{words[-1]}") != unit  # deg_s, but not dps
    cut = 4 if of_two_words and "/" in unit and unit_in_name(f"x_{words[-3]}_{words[-1]}") == unit else 2
    return "".join(words[:-cut])


@cache
def _tokens(text: str) -> frozenset[str]:
    """Words, their letters and digits apart, and neighbours joined: `pos_meas1` has pos, meas, 1 and meas1."""
    tokens: set[str] = set()
    for word in _words(text):
        tokens |= {word, *re.findall(r"[a-z]+|\d+", word)}
    return frozenset(_ALIASES.get(token, token) for token in tokens)
