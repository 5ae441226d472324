"""Small pieces of HTML, numbers and units as people read them. Text is escaped, unless it is `Markup` already."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup, escape


@dataclass(frozen=True)
class ReportSection:
    """One section of a report."""

    anchor: str
    title: str
    body: Markup


def join(parts: Iterable[Markup]) -> Markup:
    return Markup("\n").join(parts)


def unbroken(text: str) -> str:
    """Keep numbers and their units on one line."""
    return re.sub(r"(?<=\d) (?=(%|mm|cm|s|min)\b|%)", "\N{NO-BREAK SPACE}", text)


def worded(text: str | Markup) -> Markup:
    """Text for a page; what stands between backticks, as in a terminal's messages, is code."""
    return text if isinstance(text, Markup) else Markup(re.sub("`([^`]+)`", r"<code>\1</code>", str(escape(text))))


def paragraph(text: str | Markup) -> Markup:
    return Markup("<p>{}</p>").format(worded(text))


def absent(what: str, why: str) -> Markup:
    """Say that a piece is not shown, and why."""
    return Markup('<p class="absent">Not shown: {}. {}</p>').format(what, why)


def badge(word: str) -> Markup:
    """Show a verdict or status as a coloured word; the colour repeats what the word says."""
    kind = {
        "identified": "good",
        "converged": "good",
        "weak": "fair",
        "budget spent": "fair",
        "no improvement": "fair",
        "not identifiable": "poor",
        "at bound": "poor",
    }.get(word, "plain")
    return Markup('<span class="badge {}">{}</span>').format(kind, word)


def table(
    header: Sequence[str], rows: Iterable[Sequence[str | Markup]], text: Collection[int] = (0,), strong: int = -1
) -> Markup:
    """Lay out a table.

    Args:
        text: which columns are text; the others are aligned right, as numbers.
        strong: index of the row to emphasise.
    """

    def line(cells: Sequence[str | Markup], tag: str) -> Markup:
        cell = Markup(f'<{tag} class="{{}}">{{}}</{tag}>')
        return join(cell.format("text" if i in text else "number", worded(content)) for i, content in enumerate(cells))

    body = join(
        Markup('<tr class="{}">{}</tr>').format("strong" if i == strong else "", line(cells, "td"))
        for i, cells in enumerate(rows)
    )
    frame = Markup('<div class="wide"><table><thead><tr>{}</tr></thead><tbody>{}</tbody></table></div>')
    return frame.format(line(header, "th"), body)


def bullets(items: Iterable[str | Markup]) -> Markup:
    return Markup("<ul>{}</ul>").format(join(Markup("<li>{}</li>").format(worded(item)) for item in items))


def folded(summary: str, body: Markup) -> Markup:
    """Hide details until asked for; no script needed."""
    return Markup("<details><summary>{}</summary>{}</details>").format(summary, body)


def link(path: str, text: str | None = None) -> Markup:
    return Markup('<a href="{}">{}</a>').format(path, text or path)


# The frames of pages: header, navigation, sections, in `templates/`.


@cache
def template(name: str) -> Template:
    """Load one by its file name; a value that it lacks is an error, and text is escaped."""
    environment = Environment(loader=PackageLoader("rsr.reports"), autoescape=True, undefined=StrictUndefined)
    return environment.get_template(name)


# Numbers as people read them.

ABSENT = "–"


def number(value: float | None, digits: int = 3) -> str:
    return ABSENT if value is None else f"{value:.{digits}g}"


def millimetres(value_m: float | None) -> str:
    return ABSENT if value_m is None else f"{1000 * value_m:.1f} mm"


def percent(share: float | None) -> str:
    return ABSENT if share is None else f"{100 * share:.0f} %"


def seconds(value_s: float | None) -> str:
    if value_s is None:
        return ABSENT
    return f"{value_s:.1f} s" if value_s < 100 else f"{value_s / 60:.1f} min"


def counted(words: Iterable[str]) -> str:
    """Say how often each word occurs: `5 identified, 2 weak`."""
    return ", ".join(f"{count} {word}" for word, count in Counter(words).most_common()) or ABSENT


# Units as people read them: one rule for every figure, table and picture.


@dataclass(frozen=True)
class DisplayUnit:
    """A unit in which values are shown; `factor` of them are one of the unit that they are stored in."""

    name: str
    factor: float = 1.0

    def measured(self, value: float | None) -> str:
        """A measured value: `20.0 mm`."""
        if value is None:
            return ABSENT
        shown = self.factor * value
        plain = self.factor == 1.0 or abs(shown) < 1.0
        return self._with_unit(number(shown) if plain else f"{shown:.1f}")

    def stated(self, value: float) -> str:
        """A value that somebody chose: `15 degrees`."""
        return self._with_unit(number(self.factor * value))

    def axis(self, what: str) -> str:
        """A label with the unit in brackets, if there is one."""
        return f"{what} ({self.name})" if self.name else what

    def _with_unit(self, text: str) -> str:
        return f"{text} {self.name}".rstrip()


def shown_in(unit: str, *values: float | np.ndarray | None) -> DisplayUnit:
    """Choose how values in a unit are shown beside each other: the largest decides.

    Metres become mm below 0.1 m and cm below 1 m; rad become degrees; other units stay. "1" is not written.
    """
    sizes = [float(np.nanmax(np.abs(each))) for each in values if each is not None and np.size(each)]
    largest = max(sizes, default=0.0)
    if unit == "m" and largest < 1.0:
        return DisplayUnit("mm", 1000.0) if largest < 0.1 else DisplayUnit("cm", 100.0)
    if unit == "rad":
        return DisplayUnit("degrees", float(np.rad2deg(1.0)))
    return DisplayUnit("" if unit == "1" else unit)
