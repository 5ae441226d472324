"""Progress on the terminal for long work, through rich; silent where the output is not a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

Advance = Callable[[float, str], None]
"""Report (fraction done in 0..1, a few words on the present state)."""


def ignore(fraction: float, words: str = "") -> None:
    """The Advance of a caller who does not want to see progress."""


def part_of(advance: Advance, start: float, end: float) -> Advance:
    """Progress of one part of the work, from `start` to `end` of the whole, as progress of the whole."""

    def part(fraction: float, words: str = "") -> None:
        advance(start + (end - start) * fraction, words)

    return part


@contextmanager
def bar(title: str) -> Iterator[Advance]:
    """Show one progress bar; yields the function that moves it."""
    columns = (
        TextColumn("[bold]{task.description:<12}"),
        BarColumn(bar_width=30),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[words]}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=False) as progress:
        task = progress.add_task(title, total=1.0, words="")

        def advance(fraction: float, words: str = "") -> None:
            progress.update(task, completed=min(1.0, fraction), words=words)

        yield advance
        progress.update(task, completed=1.0)
