"""One rule says in which unit a value is shown."""

from __future__ import annotations

import numpy as np
import pytest

from rsr.reports._html import shown_in


@pytest.mark.parametrize(
    ("unit", "values", "name", "text"),
    [
        ("m", (0.0123,), "mm", "12.3 mm"),
        ("m", (0.0996, -0.02), "mm", "99.6 mm"),
        ("m", (0.12, 0.003), "cm", "12.0 cm"),
        ("m", (1.5,), "m", "1.5 m"),
        ("rad", (np.pi / 2,), "degrees", "90.0 degrees"),
        ("rad", (0.001,), "degrees", "0.0573 degrees"),
        ("N m", (0.25,), "N m", "0.25 N m"),
        ("1", (0.25,), "", "0.25"),
    ],
)
def test_the_largest_value_decides(unit, values, name, text):
    shown = shown_in(unit, *values)
    assert shown.name == name
    assert shown.measured(values[0]) == text


def test_what_was_chosen_is_written_without_needless_digits():
    assert shown_in("rad", np.deg2rad(15)).stated(np.deg2rad(15)) == "15 degrees"
    assert shown_in("m", 0.03).stated(0.03) == "30 mm"


def test_what_is_missing_is_a_dash_and_decides_nothing():
    assert shown_in("m", None, 0.02).measured(None) == "–"
    assert shown_in("m").name == "mm"
    assert shown_in("m", np.array([np.nan, 0.5])).name == "cm"


def test_labels_have_the_unit_in_brackets_where_there_is_one():
    assert shown_in("m", 0.02).axis("distance") == "distance (mm)"
    assert shown_in("1", 0.02).axis("share") == "share"
