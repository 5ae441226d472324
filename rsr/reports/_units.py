"""Units as people read them: one rule for every figure, table and picture."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rsr.reports._html import ABSENT, number


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
