"""Files of messages: topics, and their messages in the order of the file. Several files can be one recording."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from rsr.errors import SessionError
from rsr.sessions.importers.contract import printable

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
