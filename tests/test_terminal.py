"""Tables on terminals of few columns: no number, word or path is cut."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from rsr.common import progress, show_whole, titled_table


@pytest.mark.parametrize("columns", [20, 40, 80])
def test_a_table_too_wide_for_the_terminal_keeps_every_letter(columns):
    path, number = "/campaigns/block_on_table/.venv/bin/dvc", "123456789.123456"
    table = titled_table("found", ("where", "how much", "how often"), [(path, number, "7"), ("here", "2", "31")])
    show_whole(console := Console(width=columns, file=io.StringIO()), table)
    said = console.file.getvalue()
    assert "…" not in said
    assert number in said, "a number stands in one line"
    first = "".join(line.split("│")[1].strip() for line in said.splitlines() if line.startswith("│"))
    assert first == f"{path}here"


@pytest.mark.parametrize("columns", [60, 80])
def test_no_word_is_folded_where_there_is_room_for_each_column_s_longest(columns):
    words = "by MuJoCo's name: actuator_dampingpoly, actuator_armature, geom_surfacevel"
    table = titled_table("found", ("what", "one", "two"), [(words, "exact derivatives", "by differences")])
    show_whole(console := Console(width=columns, file=io.StringIO()), table)
    said = console.file.getvalue().split()
    assert set(words.split()) | {"derivatives", "differences"} <= set(said)
    assert max(map(len, console.file.getvalue().splitlines())) <= columns


def test_a_bar_in_80_columns_shortens_words_and_no_time(monkeypatch):
    monkeypatch.setattr(progress, "terminal", screen := io.StringIO())
    screen.isatty = lambda: True
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm")
    with progress.bar("evaluate 1") as advance:
        advance(0.9, "retrained policy in the tuned simulator, and what else there is to say of it")
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.getvalue())
    shown = [line for line in re.split(r"[\r\n]", plain) if "retrained policy in the tuned" in line]
    assert shown
    assert all(re.search(r"% \d:\d\d:\d\d (\d:\d\d:\d\d|-:--:--) retrained", line) for line in shown)
