"""Write the tosses of one parquet table with an elbow angle that does not jump: it was recorded between -pi and pi.

Two rows on both sides of a jump seem a whole turn apart, and whatever smooths or differentiates them believes it.

    python examples/elbow/prepare.py elbow_tosses.parquet tosses.parquet
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq


def without_jumps(table: pa.Table) -> pa.Table:
    """Add whole turns to `joint` so that it is continuous within each toss, by `toss_id` and `frame`."""
    table = table.sort_by([("toss_id", "ascending"), ("frame", "ascending")])
    first = np.unique(table["toss_id"].to_numpy(), return_index=True)[1][1:]
    angle = np.concatenate([np.unwrap(toss) for toss in np.split(table["joint"].to_numpy().astype(float), first)])
    return table.set_column(table.column_names.index("joint"), "joint", pa.array(angle))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("source", type=Path)
    parser.add_argument("out", type=Path)
    arguments = parser.parse_args()
    table = without_jumps(pq.read_table(arguments.source))
    pq.write_table(table, arguments.out)
    print(f"{arguments.out}: {table.num_rows} rows")


if __name__ == "__main__":
    main()
