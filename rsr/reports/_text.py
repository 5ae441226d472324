"""Numbers as people read them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

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
