"""Progress of long work: a bar on a terminal, through rich; elsewhere a plain line now and then."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TextIO

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Column

Advance = Callable[[float, str], None]
"""Report (fraction done in 0..1, a few words on the present state)."""

terminal: TextIO | None = None
"""Where bars are shown; None stands for standard error, whatever that is at the time."""


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
    console = Console(file=terminal, stderr=True)
    if not console.is_terminal and not console.is_jupyter:
        with lines(title, lambda text: console.out(text, highlight=False)) as by_lines:
            yield by_lines
        return
    with Progress(
        *_columns(console.width), console=console, redirect_stderr=terminal is None, transient=False
    ) as progress:
        task = progress.add_task(escape(title), total=1.0, words="")

        def advance(fraction: float, words: str = "") -> None:
            progress.update(task, completed=min(1.0, fraction), words=words)

        yield advance
        progress.update(task, completed=1.0)


def _columns(width: int) -> tuple[ProgressColumn, ...]:
    """What a bar's line says; in a narrow terminal the bar gives way, then the words, and never a number."""
    whole, words = Column(no_wrap=True), Column(no_wrap=True, max_width=max(10, width - _WITHOUT_WORDS))
    return (
        TextColumn("[bold]{task.description:<12}"),
        BarColumn(bar_width=30),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeElapsedColumn(table_column=whole),
        TimeRemainingColumn(table_column=whole.copy()),
        TextColumn("{task.fields[words]}", markup=False, table_column=words),  # words may be names of files
    )


_WITHOUT_WORDS = 12 + 4 + 4 + 7 + 7 + 5
"""Columns for the title, a bar of four, the numbers, and spaces between."""
EVERY_S = 10.0
"""Where there is no terminal, a line is written so often, also while the work itself reports nothing."""
_FORESEEN = 0.05
"""From this fraction on the time that is left is estimated."""


@contextmanager
def lines(title: str, write: Callable[[str], None], every_s: float = EVERY_S) -> Iterator[Advance]:
    """Write a line every `every_s` seconds, and one at the end if there was any; yields the function that moves it.

    Example:
        >>> with lines("calibrate", print) as advance:
        ...     advance(0.5, "half")
    """
    begun_s, state, ended = time.monotonic(), [0.0, ""], threading.Event()

    def advance(fraction: float, words: str = "") -> None:
        state[:] = [min(1.0, fraction), words]

    def tick() -> None:
        while not ended.wait(every_s):
            write(line(title, state[0], state[1], time.monotonic() - begun_s))

    thread = threading.Thread(target=tick, daemon=True)
    thread.start()
    try:
        yield advance
    finally:
        ended.set()
        thread.join()
    if time.monotonic() - begun_s >= every_s:
        write(line(title, 1.0, state[1], time.monotonic() - begun_s))


def line(title: str, fraction: float, words: str, elapsed_s: float) -> str:
    """How far work is, in one line.

    Example:
        >>> line("calibrate", 0.25, "loss 12", 30.0)
        'calibrate: 25% after 0:00:30, at most 0:01:30 left; loss 12'
    """
    said = f"{title}: {fraction:.0%} after {timedelta(seconds=round(elapsed_s))}"
    if _FORESEEN <= fraction < 1.0:
        # A search that converges ends before its budget is spent.
        said += f", at most {timedelta(seconds=round(elapsed_s * (1.0 / fraction - 1.0)))} left"
    return f"{said}; {words}" if words else said
