"""Rows of many streams, written to temporary files while a long recording is read, so that memory holds one stream."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from rsr.sessions.importers.contract import Samples, check_size

_BLOCK_ROWS = 8192


class Spool(Mapping[str, Samples]):
    """Stream name -> its rows, read back when asked for. The directory goes away with `close`."""

    def __init__(self, widths: Mapping[str, int]) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="rsr-ingest-")
        self._widths = dict(widths)
        self._files = {name: Path(self._directory.name) / str(index) for index, name in enumerate(self._widths)}
        self._blocks: dict[str, list[np.ndarray]] = {name: [] for name in self._widths}
        self._waiting = dict.fromkeys(self._widths, 0)
        self._rows = dict.fromkeys(self._widths, 0)

    def append(self, name: str, time_s: np.ndarray, values: np.ndarray) -> None:
        """Add rows [N] and [N, C] of a stream."""
        self._blocks[name].append(np.column_stack([time_s, values]))
        self._waiting[name] += len(time_s)
        if self._waiting[name] >= _BLOCK_ROWS:
            self._flush(name)

    def _flush(self, name: str) -> None:
        if self._blocks[name]:
            self._rows[name] += self._waiting[name]
            check_size(self._files[name], self._rows[name], 1 + self._widths[name])  # before it fills the disk
            with self._files[name].open("ab") as stream:
                np.concatenate(self._blocks[name]).tofile(stream)
        self._blocks[name], self._waiting[name] = [], 0

    def __getitem__(self, name: str) -> Samples:
        self._flush(name)
        if not self._files[name].exists():
            return Samples(np.empty(0), np.empty((0, self._widths[name])))
        width = 1 + self._widths[name]
        rows = np.fromfile(self._files[name]).reshape(-1, width)
        if (np.diff(rows[:, 0]) < 0).any():  # recorders store in the order of arrival
            rows = rows[np.argsort(rows[:, 0], kind="stable")]
        return Samples(rows[:, 0], rows[:, 1:])

    def __iter__(self) -> Iterator[str]:
        return iter(self._widths)

    def __len__(self) -> int:
        return len(self._widths)

    def close(self) -> None:
        self._directory.cleanup()
