"""Terminals as they are: of few columns, of few letters, without colours. Nothing is cut there, and nothing fails.

Colours are left to rich, which respects NO_COLOR.
"""

from __future__ import annotations

import codecs
import sys
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from rich.console import Console, RenderableType
from rich.measure import Measurement
from rich.table import Table

_HORIZONTAL, _VERTICAL = "─━═╌╍┄┅┈┉╴╶╸╺╼╾", "│┃║╎╏┆┇┊┋╵╷╹╻╽╿"
_SPELT = {
    "–": "-", "—": "-", "…": "...", "→": "->", "←": "<-", "±": "+-", "×": "x", "·": "*", "≤": "<=", "≥": ">=",
    "≈": "~", "’": "'", "“": '"', "”": '"', "•": "*", "✓": "v", "°": " deg", "µ": "u", "μ": "u",
    **dict.fromkeys(_HORIZONTAL, "-"), **dict.fromkeys(_VERTICAL, "|"),
}  # fmt: skip
"""Letters that our tables and texts have, and what stands for them where only ASCII can be written."""


def tolerate_ascii() -> None:
    """Have streams that know fewer letters than we write spell them with those that they know."""
    codecs.register_error("rsr.spelt", _spelt)
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)  # what a test or a notebook puts in place may lack it
        if reconfigure is not None:
            reconfigure(errors="rsr.spelt")


def titled_table(
    title: str, header: Sequence[str], rows: Iterable[Sequence[str]], text: Collection[int] = (0,), **style: Any
) -> Table:
    """Lay out a table; cells may hold markup.

    Args:
        text: which columns are text; the others are aligned right, as numbers.
        style: further arguments of rich's Table.
    """
    table = Table(title=title, title_justify="left", **style)
    for index, name in enumerate(header):
        table.add_column(name, justify="left" if index in text else "right")
    for row in rows:
        table.add_row(*row)
    return table


def show_whole(console: Console, *what: RenderableType) -> None:
    """Print tables and texts whole: no word is folded that has room, and tables of many numbers are wider."""
    for each in what:
        if isinstance(each, Table):
            _keep_whole(console, each)
        console.print(each, highlight=False, soft_wrap=isinstance(each, str), crop=False)


def _keep_whole(console: Console, table: Table) -> None:
    wide = console.options.update(max_width=10_000)
    sizes = []
    for column in table.columns:
        column.overflow = "fold"  # of a path, say, into which an ellipsis would bite
        cells = [Measurement.get(console, wide, cell) for cell in (column.header, *column.cells)]
        sizes.append((max(cell.minimum for cell in cells), max(cell.maximum for cell in cells)))
        if column.justify == "right":
            column.min_width = sizes[-1][0]
    least, most = (sum(each) for each in zip(*sizes, strict=True))
    room = console.width - 3 * len(sizes) - 1  # bars, and a space on each side of a cell
    if least <= room < most:  # rich alone narrows the widest first, whatever its longest word
        for column, (word, line) in zip(table.columns, sizes, strict=True):
            column.width = word + (room - least) * (line - word) // (most - least)


def _spelt(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    letters = error.object[error.start : error.end]
    return "".join(map(_ascii, letters)), error.end


def _ascii(letter: str) -> str:
    if letter in _SPELT:
        return _SPELT[letter]
    if 0x2500 <= ord(letter) <= 0x257F:  # corners and crossings of tables
        return "+"
    return unicodedata.normalize("NFKD", letter).encode("ascii", "ignore").decode() or "?"
