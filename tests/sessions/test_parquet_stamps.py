"""Stamps of parquet, in whatever type a recorder writes them, become the recording's clock."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from foreign_files import EPOCH_NS, rows, truth
from test_foreign_formats import assert_true, taken

_FASTEST = 1000.0
"""Of all that changes here, velocities change fastest, in rad/s2: what 256 ns of rounding can make of them."""


def stamps_ns() -> np.ndarray:
    return EPOCH_NS + np.round(truth()["time_s"] * 1e9).astype(np.int64)


def write(folder: Path, name: str, stamps: pa.Array) -> Path:
    columns = {key: values for key, values in rows().items() if key != "time_s"}
    pq.write_table(pa.table({name: stamps, **columns}), folder / "run.parquet")
    return folder / "run.parquet"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("timestamp", pa.int64()),
        ("timestamp", pa.timestamp("ns")),
        ("recorded", pa.timestamp("ns")),
        ("recorded", pa.timestamp("us", "Europe/Berlin")),
        ("since_start", pa.duration("ns")),
    ],
    ids=str,
)
def test_nanoseconds_since_1970_are_the_clock(tmp_path, name, kind):
    stamps = stamps_ns() - (EPOCH_NS if pa.types.is_duration(kind) else 0)
    array = pa.array(stamps // 1000 if "us" in str(kind) else stamps).cast(kind)
    found, session = taken(write(tmp_path, name, array), tmp_path / "out")
    assert (found.mapping.time.column, found.mapping.time.unit) == (name, "ns")
    assert_true(session, 256e-9 * _FASTEST)


def test_rows_without_a_stamp_are_left_out_and_said(tmp_path):
    stamps = pa.array(stamps_ns()).cast(pa.timestamp("ns")).to_pylist()
    stamps[100] = None
    found, _ = taken(write(tmp_path, "recorded", pa.array(stamps, pa.timestamp("ns"))), tmp_path / "out")
    assert any("without a finite number" in words for words in found.damage)


def test_a_column_that_is_called_time_is_not_preferred_to_declared_stamps(tmp_path):
    """A counter may be called `t`; what the file itself declares to be stamps is no guess."""
    path = write(tmp_path, "recorded", pa.array(stamps_ns()).cast(pa.timestamp("ns")))
    table = pq.read_table(path).add_column(0, "t", pa.array(np.arange(len(stamps_ns()))))
    pq.write_table(table, path)
    found, _ = taken(path, tmp_path / "out")
    assert found.mapping.time.column == "recorded"
