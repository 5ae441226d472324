"""CSV and parquet: one table a file, read block by block. Columns that hold no numbers are left out.

Stamps of parquet (`timestamp`, in whatever unit) become nanoseconds since 1970, like the int64 that others write. As
float64 they are exact to 256 ns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from rsr.sessions.importers.recording import (
    HEAD_ROWS,
    Format,
    Recording,
    Samples,
    Stream,
    Wanted,
    check_size,
    listed,
    printable,
    unreadable,
)

TABLE = "table"
"""The name of the one stream of such a file."""


def open_table(path: Path) -> Recording:
    """Open a CSV or parquet file, or a folder of them with the same columns (one part a file)."""
    files = _files(path)
    columns = _columns(files[0])
    head = _read(files[0], columns, HEAD_ROWS)
    kept = tuple(name for name, values in zip(columns, head.T, strict=True) if np.isfinite(values).any())
    if not kept:
        raise unreadable(path, "no column of numbers", "columns of numbers under a line of names")
    first = head[:, [columns.index(name) for name in kept]]
    places = {file.stem: file for file in files}
    damage = [f"{file.name}: {words}" for file in files if (words := _cut(file))]

    def load(part: str, wanted: Wanted, clock: str) -> dict[str, Samples]:
        values = _read(places[part], tuple(wanted[TABLE]), damage=damage)
        return {TABLE: Samples.unstamped(values)}

    blank = tuple(name for name in _all_columns(files[0], columns) if name not in kept)
    units = {name: "ns" for name in _stamps(files[0]) if name in kept}
    stream = Stream(TABLE, kept, Samples.unstamped(first), units=units, blank=blank)
    return Recording(files[0].suffix[1:].lower(), path, tuple(places), (stream,), load, damage=damage)


def _cut(path: Path) -> str:
    """Say that a text does not end as one that was written to its end; its last row may then lack digits."""
    if path.suffix.lower() == ".parquet":
        return ""
    with path.open("rb") as stream:
        stream.seek(-1, 2)
        whole = stream.read(1) in (b"\n", b"\r")
    return "" if whole else "no line break at the end, so that its last row may be cut and is left out"


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    return sorted(file for suffix in ("csv", "parquet") for file in path.glob(f"*.{suffix}"))


def _columns(path: Path) -> tuple[str, ...]:
    if path.suffix.lower() == ".parquet":
        file = pq.ParquetFile(path)
        check_size(path, file.metadata.num_rows, file.metadata.num_columns)
        names = [field.name for field in file.schema_arrow if _is_number(field.type) or _is_stamp(field.type)]
        if len(set(names)) < len(names):
            raise unreadable(path, f"columns {listed(names)}", "each name once")
        return tuple(names)
    with _csv(path, Counter()) as reader:
        columns = tuple(name.strip() for name in reader.schema.names)
    if len(set(columns)) < len(columns):
        raise unreadable(path, f"columns {listed(columns)}", "a first line that names each column once")
    if any(_is_float(name) for name in columns):
        raise unreadable(
            path,
            f"a first line of numbers ({listed(columns, 4)})",
            "a first line that names the columns",
            "Add a first line such as `time_s,shoulder,elbow`.",
        )
    check_size(path, 0, len(columns))
    return columns


def _all_columns(path: Path, columns: tuple[str, ...]) -> Iterable[str]:
    """What a person sees in the file: of parquet, also columns whose type is not a number's, as of an empty one."""
    return pq.read_schema(path).names if path.suffix.lower() == ".parquet" else columns


def _stamps(path: Path) -> list[str]:
    """Columns that the file itself declares to be stamps."""
    if path.suffix.lower() != ".parquet":
        return []
    return [field.name for field in pq.ParquetFile(path).schema_arrow if _is_stamp(field.type)]


def _read(path: Path, columns: tuple[str, ...], most: int | None = None, damage: list[str] | None = None) -> np.ndarray:
    """Rows [N, C] of some columns, NaN where a cell holds no number. Damage ends what is read."""
    blocks, count = [], 0
    lost: Counter[str] = Counter()
    try:
        for batch in _batches(path, columns, lost):
            blocks.append(np.stack([_numbers(column) for column in batch], axis=1))
            count += len(blocks[-1])
            check_size(path, count, len(columns))
            if most is not None and count >= most:
                break
    except (pa.ArrowException, OSError) as error:
        if not blocks:
            raise
        lost[
            f"block after {count} rows that cannot be read ({printable(str(error), 80)}); nothing after it was taken"
        ] += 1
    if damage is not None:
        damage += [f"{path.name}: {number} {what}" for what, number in lost.items()]
    rows = np.concatenate(blocks) if blocks else np.empty((0, len(columns)))
    if _cut(path) and (most is None or count < most):
        rows = rows[:-1]
    return rows if most is None else rows[:most]


def _batches(path: Path, columns: tuple[str, ...], lost: Counter[str]) -> Iterator[list[pa.Array]]:
    if path.suffix.lower() == ".parquet":
        file = pq.ParquetFile(path, page_checksum_verification=True)
        missing = [name for name in columns if name not in file.schema_arrow.names]
        _check_columns(path, missing, file.schema_arrow.names)
        for batch in file.iter_batches(batch_size=65536, columns=list(columns), use_threads=False):
            yield [batch.column(name) for name in columns]
        return
    with _csv(path, lost) as reader:
        places = {name.strip(): index for index, name in enumerate(reader.schema.names)}
        _check_columns(path, [name for name in columns if name not in places], places)
        for batch in reader:
            yield [batch.column(places[name]) for name in columns]


def _check_columns(path: Path, missing: list[str], there: Iterable[str]) -> None:
    if missing:
        raise unreadable(
            path,
            f"no column {listed(missing)}",
            f"one of {listed(there)}",
            "Correct `columns:` in the mapping, or leave this file out.",
        )


def _csv(path: Path, lost: Counter[str]) -> pyarrow.csv.CSVStreamingReader:
    """Open as text throughout: a column may turn from numbers to words anywhere, and streaming fixes types early."""
    with path.open("rb") as stream:
        names = stream.read(1 << 20).partition(b"\n")[0].decode("utf-8-sig", errors="replace").strip("\r\n")
    # Blanks divide where nothing else does: so UR's own recorder writes.
    delimiter = next((each for each in sorted(",;\t", key=names.count, reverse=True) if each in names), " ")
    check_size(path, 0, names.count(delimiter))
    columns = [name.strip().strip('"') for name in names.split(delimiter)]

    def unfit(row: pyarrow.csv.InvalidRow) -> str:
        lost["rows with another number of cells, left out"] += 1
        return "skip"

    return pyarrow.csv.open_csv(
        path,
        # Cells are numbers; what is none must not stop the reading, whatever its bytes: latin1 knows all of them.
        pyarrow.csv.ReadOptions(column_names=columns, skip_rows=1, block_size=4 << 20, encoding="latin1"),
        pyarrow.csv.ParseOptions(delimiter=delimiter, invalid_row_handler=unfit),
        pyarrow.csv.ConvertOptions(column_types=dict.fromkeys(columns, pa.binary())),
    )


def _numbers(column: pa.Array) -> np.ndarray:
    """One column as float64; what is no number becomes NaN."""
    if pa.types.is_binary(column.type):
        try:
            trimmed = pc.call_function("utf8_trim_whitespace", [column.cast(pa.string())])
            column = trimmed.cast(pa.float64())
        except pa.ArrowInvalid:
            return np.array([float(cell) if _is_float(cell) else np.nan for cell in column.to_pylist()])
    if _is_stamp(column.type):
        kind = pa.duration("ns") if pa.types.is_duration(column.type) else pa.timestamp("ns", column.type.tz)
        column = column.cast(kind, safe=False).cast(pa.int64())
    # Unsafe, because nanoseconds since 1970 are beyond the whole numbers that float64 tells apart: 256 ns are lost.
    return column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)


def _is_float(text: str | bytes | None) -> bool:
    try:
        float(text or "")
    except ValueError:
        return False
    return True


def _is_number(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)


def _is_stamp(kind: pa.DataType) -> bool:
    return pa.types.is_timestamp(kind) or pa.types.is_duration(kind)


def _recognises(suffix: str, path: Path) -> bool:
    return path.suffix.lower() == suffix or (path.is_dir() and any(path.glob(f"*{suffix}")))


CSV = Format("csv", "a CSV file with a line of names", lambda path: _recognises(".csv", path), open_table)
PARQUET = Format("parquet", "a parquet table", lambda path: _recognises(".parquet", path), open_table)
