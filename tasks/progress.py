"""Progress of a step in two places at once: a bar on the terminal, and an artifact in Prefect's pages."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from prefect.artifacts import create_progress_artifact, update_progress_artifact

from rsr import progress
from rsr.progress import Advance

_EVERY_S = 5.0
"""A report costs a call to Prefect's server; a step that is over sooner makes none."""


@contextmanager
def shown(title: str) -> Iterator[Advance]:
    """Show how far a step is; `title` is its name and iteration."""
    page = _Page(title)
    with progress.bar(title) as bar:

        def advance(fraction: float, words: str = "") -> None:
            bar(fraction, words)
            page.report(fraction, words)

        yield advance
    page.close()


class _Page:
    """A progress artifact, made when the step has gone on for a while and renewed from time to time."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._artifact: UUID | None = None
        self._told_s = time.monotonic()

    def report(self, fraction: float, words: str) -> None:
        now_s = time.monotonic()
        if now_s - self._told_s < _EVERY_S:
            return
        self._told_s = now_s
        self._tell(100.0 * min(1.0, fraction), f"{self._title}: {words}" if words else self._title)

    def close(self) -> None:
        """Leave it full, if it was ever shown."""
        if self._artifact is not None:
            self._tell(100.0, self._title)

    def _tell(self, percent: float, words: str) -> None:
        if self._artifact is None:
            key = self._title.replace(" ", "-")
            self._artifact = create_progress_artifact(progress=percent, key=key, description=words)  # type: ignore
        else:
            update_progress_artifact(artifact_id=self._artifact, progress=percent, description=words)
