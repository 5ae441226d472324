"""The command line that all benchmarks share: `python benchmarks/NAME.py [--json FILE] [--quick]`."""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from rsr.common import read_json, write_json

Figure = float | int | bool | str
Measure = Callable[..., Mapping[str, Figure]]
"""Takes `quick` and what `run` was given as options; returns named figures, with units in their names."""


def run(measure: Measure, description: str, **options: int | str | None) -> None:
    """Parse the command line, measure, print a table, and write one flat JSON object.

    Args:
        description: the benchmark's docstring; its first line becomes the help text and the table's title.
        options: further whole numbers, `--name N`, or words, `--name WORDS`, with their defaults, or files, `--name
            FILE`, where the default is None; passed to `measure` by name.
    """
    title = description.strip().splitlines()[0]
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here as one flat object")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions; for a first look and for tests")
    for name, default in options.items():
        if default is None:
            parser.add_argument(f"--{name}", type=Path, metavar="FILE", help="write this here")
        else:
            kind, shown = (str, "WORDS") if isinstance(default, str) else (int, "N")
            parser.add_argument(f"--{name}", type=kind, default=default, metavar=shown, help="default: %(default)s")
    arguments = parser.parse_args()
    chosen = {name: getattr(arguments, name) for name in options}
    figures = {name: _plain(name, value) for name, value in measure(arguments.quick, **chosen).items()}
    Console().print(_table(title, figures))
    if arguments.json is not None:
        write_json(arguments.json, figures)


def kept(folder: Path | None, name: str, make: Callable[[], Mapping[str, Figure]]) -> dict[str, Figure]:
    """Make a part of the figures, or take it from `folder`, where an interrupted run of the same benchmark left it."""
    if folder is None:
        return dict(make())
    path = folder / f"{name}.json"
    if not path.exists():
        write_json(path, {key: _plain(key, value) for key, value in make().items()})
    return read_json(path)


def median_seconds(function: Callable[[], object], repetitions: int) -> float:
    """Median wall time of a call, after one call to warm up: a busy machine disturbs it little."""
    function()
    return statistics.median(_seconds(function) for _ in range(repetitions))


def best_seconds_in_turn(functions: Sequence[Callable[[], object]], rounds: int) -> list[float]:
    """Shortest wall time of each call. They take turns, so that a busy machine disturbs all alike; one warm-up each."""
    for function in functions:
        function()
    return [min(times) for times in zip(*([_seconds(f) for f in functions] for _ in range(rounds)), strict=True)]


def _seconds(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def _plain(name: str, value: object) -> Figure:
    """Turn numpy scalars into Python's; a figure is one number or word, never a list or an object."""
    plain = value.item() if hasattr(value, "item") else value
    if not isinstance(plain, (bool, int, float, str)):
        raise TypeError(f"figure '{name}' is a {type(plain).__name__}, not a number or a word")
    return plain


def _table(title: str, figures: Mapping[str, Figure]) -> Table:
    table = Table("figure", "value", title=title)
    table.columns[1].justify = "right"
    for name, value in figures.items():
        table.add_row(name, f"{value:.4g}" if isinstance(value, float) else str(value))
    return table
