"""Recording a session episode by episode, so that a crash at any moment costs the episode in progress and no other.

Each finished episode is one file, written beside its name, synced and renamed. A journal is a hidden folder where the
session will be, `root/<scenario>/.<session>.recording/`; `close` makes the session of it, whole or not at all, and
removes it. Whoever opens a journal that a crash left goes on with the next episode.
"""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from rsr.common import DAMAGED, SessionError, read_arrays, read_json, sync_folder, write_arrays, write_json
from rsr.sessions.checks import check_shapes
from rsr.sessions.model import Card, Channel, Episode, Session
from rsr.sessions.storage import write_session

RECORDING = ".recording"
_HEAD = "recording.json"
_TIME, _TAGS, _VALUE = "time_s", "tags", "value."
_EPISODE = re.compile(r"episode-\d{4,}\.npz")
_NOTES = "notes.json"


class Journal:
    """A recording that is under way.

    Args:
        folder: see `journal_folder`.

    Example:
        journal = Journal.open(Path("data"), card, channels)
        while len(journal.episodes) < 12:
            journal.add(record_one(len(journal.episodes)))
        session = journal.close()
    """

    def __init__(self, folder: Path) -> None:
        self.folder = Path(folder)
        try:
            head = read_json(self.folder / _HEAD)
            self.card = Card(**head["card"])
            self.channels = tuple(Channel(**c | {"columns": tuple(c["columns"])}) for c in head["channels"])
            self.notes: list[str] = read_json(self.folder / _NOTES) if (self.folder / _NOTES).exists() else []
        except DAMAGED as error:
            raise _damaged(self.folder / _HEAD, error) from error
        files = self._files()
        self.episodes = [self._read(path, index) for index, path in enumerate(files)]
        self._next = int(files[-1].stem.removeprefix("episode-")) + 1 if files else 0

    @staticmethod
    def open(root: Path, card: Card, channels: tuple[Channel, ...]) -> Journal:
        """Begin a recording, or go on with the same one where a crash ended it.

        Raises:
            SessionError: what lies there under this name was begun with another card or other channels.
        """
        folder = journal_folder(root, card)
        head = {"card": asdict(card), "channels": [asdict(channel) for channel in channels]}
        if not (folder / _HEAD).exists():
            _check_name_is_free(folder.parent / card.session)
            write_json(folder / _HEAD, head)
        journal = Journal(folder)
        if (replace(journal.card, recorded_at=card.recorded_at), journal.channels) != (card, channels):
            raise SessionError(
                got="a recording that was begun otherwise (another policy, robot, seed or limits)",
                expected="the same one, to go on with it",
                where=str(folder),
                next_step=f"Finish it as it is (`rsr recover {folder}`), or give the new recording another name.",
            )
        return journal

    def add(self, episode: Episode) -> None:
        """Keep a finished episode: on return it is on the disk for good."""
        check_shapes(Session(self.card, self.channels, (episode,)))
        arrays = {_TIME: episode.time_s, _TAGS: np.array(json.dumps(dict(episode.tags)))}
        arrays |= {_VALUE + channel.name: episode[channel.name] for channel in self.channels}
        write_arrays(self.folder / f"episode-{self._next:04d}.npz", arrays)
        sync_folder(self.folder)
        self._next += 1
        self.episodes.append(replace(episode, index=len(self.episodes)))

    def note(self, words: str) -> None:
        """Keep a sentence for the card: an event that no episode shows."""
        self.notes.append(words)
        write_json(self.folder / _NOTES, self.notes)
        sync_folder(self.folder)

    def session(self, summary: str = "") -> Session:
        """Session of the episodes recorded so far; the card's notes end with the journal's and a summary."""
        notes = " ".join(filter(None, (self.card.notes, *self.notes, summary)))
        return Session(replace(self.card, notes=notes), self.channels, tuple(self.episodes))

    def close(self, summary: str = "") -> Session:
        """Store the session and remove the journal."""
        session = self.session(summary)
        write_session(self.folder.parent.parent, session)
        # Renamed first: half of a journal must not be taken for one.
        done = self.folder.rename(self.folder.with_name(f".{self.card.session}.recorded.part"))
        shutil.rmtree(done)
        return session

    def _files(self) -> list[Path]:
        return sorted(path for path in self.folder.iterdir() if _EPISODE.fullmatch(path.name))

    def _read(self, path: Path, index: int) -> Episode:
        try:
            arrays = read_arrays(path)
            values = {channel.name: arrays[_VALUE + channel.name] for channel in self.channels}
            return Episode(index, arrays[_TIME], values, json.loads(str(arrays[_TAGS])))
        except DAMAGED as error:
            raise _damaged(path, error) from error


def journal_folder(root: Path, card: Card) -> Path:
    return Path(root) / card.scenario / f".{card.session}{RECORDING}"


def _check_name_is_free(session: Path) -> None:
    if session.exists():
        raise SessionError(
            got="a recording of this name",
            expected="a new name: recordings are append-only",
            where=str(session),
            next_step="Give the new recording the next free number; nothing was overwritten.",
        )


def _damaged(path: Path, error: Exception) -> SessionError:
    return SessionError(
        got=f"{type(error).__name__}: {error}",
        expected="a journal as it was written",
        where=str(path),
        next_step="Move this file away to go on without it; the other episodes are not affected.",
    )
