"""What the importers share: columns out of parquet and CSV files, and errors that name the file."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from rsr.errors import SessionError


def read_columns(path: Path, names: Iterable[str]) -> dict[str, np.ndarray]:
    """Read columns [N] of a parquet or CSV file as float64."""
    wanted = list(names)
    try:
        table = pq.ParquetFile(path).read() if path.suffix == ".parquet" else pyarrow.csv.read_csv(path)
        missing = [name for name in wanted if name not in table.column_names]
        if missing:
            raise unreadable(path, f"no column {', '.join(missing)}", f"columns {', '.join(wanted)}")
        return {name: table[name].to_numpy().astype(float) for name in wanted}
    except (OSError, ValueError, pa.ArrowException) as error:
        raise unreadable(
            path, f"content that cannot be read ({error})", "the file as its authors publish it"
        ) from error


def columns(table: dict[str, np.ndarray], names: Iterable[str], rows: np.ndarray | slice) -> np.ndarray:
    """Stack columns of some rows: [T, C]."""
    return np.stack([table[name][rows] for name in names], axis=1)


def unreadable(path: Path, got: str, expected: str) -> SessionError:
    return SessionError(
        got=got,
        expected=expected,
        where=str(path),
        next_step="Get the file again (`rsr data get`), or point to the folder or file that holds the recordings.",
    )
