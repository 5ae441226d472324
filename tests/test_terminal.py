"""Tables on terminals of few columns: no number, word or path is cut."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from rsr.common import show_whole, titled_table


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
