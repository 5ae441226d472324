"""Files of messages: topics, and their messages in the order of the file. Several files can be one recording."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import numpy as np

from rsr.common import SessionError
from rsr.sessions.importers._decoders import CdrDecoder, Decoder, JsonDecoder, Rows, Spool, definitions_of
from rsr.sessions.importers.recording import (
    HEAD_ROWS,
    MAX_COLUMNS,
    Recording,
    Samples,
    Stream,
    Wanted,
    printable,
    unreadable,
)

Batch = Mapping[int, tuple[list[int], list[bytes]]]
"""Topic's number -> stamps in ns and messages."""


@dataclass(frozen=True)
class Topic:
    """One topic of a file.

    Args:
        encoding: `cdr` or `json`; others are left out.
        definition: text of the message type where the file has it, in a dialect such as `ros2msg`.
    """

    number: int
    name: str
    type: str
    encoding: str
    definition: str = ""
    dialect: str = ""


class MessageFile(Protocol):
    """One file, which can be read from its beginning more than once. What is damaged is added to `damage`, in words."""

    def topics(self, damage: list[str]) -> Sequence[Topic]:
        """List them, numbered as in the file."""
        ...

    def batches(self, wanted: set[int], damage: list[str]) -> Iterator[Batch]:
        """Yield the messages of these topics, until the end or until damage."""
        ...

    def head(self, wanted: set[int]) -> Iterator[Batch]:
        """Yield the first messages of each of these topics, and perhaps some more."""
        ...


class Messages:
    """The messages of one recording's files, in order; topics are numbered through all of them.

    Raises:
        SessionError: none of the files has topics that can be read.
    """

    def __init__(self, files: Sequence[MessageFile]) -> None:
        self.damage: list[str] = []
        self.topics: list[Topic] = []
        self._files: list[tuple[MessageFile, dict[int, int]]] = []
        numbers: dict[tuple[str, str], int] = {}
        for file in files:
            try:
                found = file.topics(self.damage)
            except SessionError as error:
                if file is files[-1] and not self._files:
                    raise
                self.damage.append(f"a file was left out: {printable(str(error), 200)}")
                continue
            place = {}
            for topic in found:
                place[topic.number] = numbers.setdefault((topic.name, topic.type), len(numbers))
                if place[topic.number] == len(self.topics):
                    self.topics.append(replace(topic, number=len(self.topics)))
            self._files.append((file, place))

    def batches(self, wanted: set[int]) -> Iterator[Batch]:
        """Yield the messages of the topics with these numbers."""
        for file, place in self._files:
            own = {each for each, number in place.items() if number in wanted}
            for batch in file.batches(own, self.damage):
                for each, messages in batch.items():  # one by one: two publishers of a topic have the same number
                    yield {place[each]: messages}

    def head(self) -> Iterator[Batch]:
        """Yield the first messages of every topic."""
        for file, place in self._files:
            for batch in file.head(set(place)):
                for each, messages in batch.items():
                    yield {place[each]: messages}


# What bags and MCAP files share: topics of messages become streams of numbers, in one pass over the file.

_UNITS = {
    "sensor_msgs/msg/JointState": {"position": "rad", "velocity": "rad/s", "effort": "N m"},
    "sensor_msgs/msg/Imu": {"angular_velocity": "rad/s", "linear_acceleration": "m/s2", "orientation": "1"},
    "geometry_msgs": {
        "position": "m",
        "translation": "m",
        "linear": "m/s",
        "angular": "rad/s",
        "force": "N",
        "torque": "N m",
    },
    "tf2_msgs": {"translation": "m"},
    "nav_msgs/msg/Odometry": {"position": "m", "linear": "m/s", "angular": "rad/s"},
    "trajectory_msgs": {"positions": "rad", "velocities": "rad/s", "effort": "N m"},
    "control_msgs/msg/JointTrajectoryControllerState": {"positions": "rad", "velocities": "rad/s", "effort": "N m"},
    "control_msgs/msg/DynamicJointState": {"position": "rad", "velocity": "rad/s", "effort": "N m"},
}
"""As ROS prescribes it (REP 103): SI, angles in rad."""


def open_topics(name: str, path: Path, messages: Messages) -> Recording:
    """Make a recording of a file of messages: one part, a stream for each topic with numbers."""
    decoders, skipped = _decoders(messages.topics)
    heads: dict[int, tuple[list[int], list[bytes]]] = {number: ([], []) for number in decoders}
    for batch in messages.head():
        for number, (stamps, payloads) in batch.items():
            if number in heads and len(heads[number][0]) < HEAD_ROWS:
                heads[number][0].extend(stamps)
                heads[number][1].extend(payloads)
    base_ns = min((stamps[0] for stamps, _ in heads.values() if stamps), default=0)
    streams: dict[str, Stream] = {}
    for topic in messages.topics:
        if topic.number in decoders and heads[topic.number][0]:
            stream = _stream(topic, decoders[topic.number], heads[topic.number], base_ns)
            if stream is not None:
                streams[topic.name] = stream
    if not streams:
        raise unreadable(
            path,
            f"no message of numbers that can be read ({'; '.join([*skipped, *messages.damage][:4]) or 'no messages'})",
            "topics such as sensor_msgs/JointState, geometry_msgs/PoseStamped, std_msgs/Float64MultiArray",
        )
    spools: list[Spool] = []
    damage = list(dict.fromkeys([*messages.damage, *skipped]))

    def load(part: str, wanted: Wanted, clock: str) -> Mapping[str, Samples]:
        numbers = {topic.number: topic.name for topic in messages.topics if topic.name in wanted}
        spool = Spool({stream: len(columns) for stream, columns in wanted.items()})
        spools.append(spool)
        lost: Counter[str] = Counter()
        for batch in messages.batches(set(numbers)):
            for number, (stamps, payloads) in batch.items():
                columns = wanted[numbers[number]]
                rows = decoders[number].rows(payloads, columns)
                time_s = _times_s(np.array(stamps, np.int64), rows, base_ns, clock)
                lost[printable(numbers[number])] += int((~rows.good).sum())
                spool.append(numbers[number], time_s[rows.good], rows.values[rows.good])
        messages.damage.extend(f"{count} messages of {what} cannot be read" for what, count in lost.items() if count)
        damage.extend(words for words in dict.fromkeys(messages.damage) if words not in damage)
        return spool

    def close() -> None:
        for spool in spools:
            spool.close()

    return Recording(
        name,
        path,
        (path.stem,),
        tuple(streams.values()),
        load,
        damage=damage,
        close=close,
    )


def _decoders(topics: Sequence[Topic]) -> tuple[dict[int, Decoder], list[str]]:
    """A decoder for each topic that can be read, and why the others cannot."""
    decoders: dict[int, Decoder] = {}
    skipped = []
    ours = any(topic.type.startswith("rsr.") for topic in topics)
    for topic in topics:
        if ours and topic.type.startswith("foxglove."):
            continue  # says again what channels say
        if topic.encoding == "json":
            decoders[topic.number] = JsonDecoder()
            continue
        try:
            if topic.encoding != "cdr":
                raise ValueError(f"its messages are encoded as {printable(topic.encoding or 'nothing')}")
            definitions = definitions_of(topic.dialect, topic.definition, topic.type)
            decoders[topic.number] = CdrDecoder(topic.type, *definitions)
        except ValueError as error:
            skipped.append(f"topic {printable(topic.name)} is left out: {printable(str(error), 160)}")
    return decoders, skipped


def _stream(topic: Topic, decoder: Decoder, head: tuple[list[int], list[bytes]], base_ns: int) -> Stream | None:
    """Describe a topic by its first messages; None where they hold no numbers."""
    columns = decoder.columns(head[1])
    if "MultiArray" in topic.type:
        columns = tuple(column for column in columns if not column.startswith("layout."))
    if not columns or len(columns) > MAX_COLUMNS:
        return None
    rows = decoder.rows(head[1], columns)
    if not rows.good.any():
        return None
    stamps = np.array(head[0], np.int64)
    clocks = ("log", "header") if (rows.stamps_ns[rows.good] > 0).all() else ("log",)
    time_s = _times_s(stamps, rows, base_ns, clocks[-1])[rows.good]
    order = np.argsort(time_s, kind="stable")[:HEAD_ROWS]
    samples = Samples(time_s[order], rows.values[rows.good][order])
    return Stream(topic.name, columns, samples, not _is_plain_list(columns), _units(topic.type, columns), clocks)


def _is_plain_list(columns: Sequence[str]) -> bool:
    """A Float64MultiArray and its like: numbers without names."""
    return all(column.startswith("data.") and column[5:].isdigit() for column in columns)


def _units(kind: str, columns: Sequence[str]) -> dict[str, str]:
    rules = next((words for prefix, words in _UNITS.items() if kind.startswith(prefix)), {})
    found = {}
    for column in columns:
        unit = next((unit for word in column.split(".") for rule, unit in rules.items() if word == rule), None)
        if unit is not None:
            found[column] = unit
    return found


def _times_s(stamps_ns: np.ndarray, rows: Rows, base_ns: int, clock: str) -> np.ndarray:
    """Seconds from the first message, by the recorder's clock or by the messages' own; NaN where there is none."""
    if clock != "header":
        return (stamps_ns - base_ns) / 1e9
    return np.where(rows.stamps_ns > 0, (rows.stamps_ns - base_ns) / 1e9, np.nan)
