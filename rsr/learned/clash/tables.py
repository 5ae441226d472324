"""A user's table of strikes, CSV or parquet, and all that may be wrong with it."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from rsr.common import SessionError, write_bytes
from rsr.learned.clash.sliding import USUAL, sliding_at, velocities_known, with_velocities
from rsr.scenarios.built_in.strike import RecordedStrikes, Shape, Strikes

COLUMNS = {
    "pre_vx": "m/s",
    "pre_vy": "m/s",
    "point_x": "m",
    "point_y": "m",
    "normal_x": "1",
    "normal_y": "1",
}
"""In the frame of the struck block at the moment of impact: origin in its centre of mass, axes as in its drawing.

`pre_`: the striking block before; the struck one is at rest.
"""
POST_COLUMNS = {"post_vx": "m/s", "post_vy": "m/s", "post_wz": "rad/s"}
"""The struck block, when the two have just parted. May be left out where it is known where blocks came to rest."""
REST_COLUMNS = {"rest_x": "m", "rest_y": "m", "rest_yaw": "rad"}
"""May be left out: how far the block had moved and turned when it came to rest, in the same frame."""
UNITS = COLUMNS | POST_COLUMNS | REST_COLUMNS
FEWEST = 5

_OFF_OUTLINE_M = 0.003
_SLOWEST_M_S, _FASTEST_M_S = 0.02, 5.0
_STEEPEST_RAD = np.radians(60)  # steeper, the nose slides along the face rather than striking it
_FASTEST_AFTER = 3.0  # times as fast as the striker; a light block leaves at 1 + e, at most twice
_FASTEST_SPIN = 12.0
_SAME_SHARE = 1e-6
_CLEAR_LEVER, _CLEAR_ROWS, _AGREEING = 0.15, 4, 0.3


def read_strikes(path: Path, shape: Shape, fewest: int = FEWEST) -> RecordedStrikes:
    """Read and check a table of strikes on this shape."""
    columns = numbers_of(path, list(COLUMNS), list(POST_COLUMNS), list(REST_COLUMNS))
    if "post_vx" not in columns and "rest_x" not in columns:
        wanted = f"{', '.join(POST_COLUMNS)}, or at least {', '.join(REST_COLUMNS)}"
        raise _wrong(
            path, f"no column {', '.join(POST_COLUMNS)}", wanted, "Rename the columns, or add what is missing."
        )
    recorded = _strikes(path, columns)
    # On a usual table, places of rest tell of wrong units and signs as velocities do.
    checked = with_velocities(recorded, sliding_at(shape, USUAL))
    _refuse_units(path, checked, shape)
    _refuse_other_object(path, checked, shape)
    refuse_mirrored(path, checked, shape)
    refuse_copies(path, columns, fewest)
    return recorded


def write_strikes(path: Path, recorded: RecordedStrikes) -> None:
    """Write strikes as a table that `read_strikes` reads, CSV or parquet."""
    strikes = recorded.strikes
    values = [strikes.direction * strikes.speed_m_s[:, None], strikes.point_m, strikes.normal]
    names = list(COLUMNS)
    if velocities_known(recorded):
        values.append(recorded.after)
        names += POST_COLUMNS
    if recorded.rest is not None:
        values.append(recorded.rest)
        names += REST_COLUMNS
    table = pa.table(dict(zip(names, np.hstack(values).T, strict=True)))
    buffer = io.BytesIO()
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(table, buffer)
    else:
        pyarrow.csv.write_csv(table, buffer)
    write_bytes(path, buffer.getvalue())


def numbers_of(
    path: Path, required: Sequence[str], *together: Sequence[str], called: Mapping[str, str] | None = None
) -> dict[str, np.ndarray]:
    """Read columns of numbers.

    Args:
        together: groups of columns, of each of which all or none are there.
        called: names in the file of columns that have another one there.
    """
    names = {name: (called or {}).get(name, name) for name in (*required, *chain(*together))}
    try:
        if path.suffix == ".parquet":
            table = pyarrow.parquet.ParquetFile(path).read(use_threads=False)
        else:
            table = pyarrow.csv.read_csv(path)
    except (OSError, pa.ArrowException) as error:
        raise _wrong(
            path, str(error).splitlines()[0], "a table, .csv or .parquet", "Correct the path or the file."
        ) from error
    missing = [names[name] for name in required if names[name] not in table.column_names]
    if missing:
        wanted = ", ".join(f"{names[name]} ({unit})" if (unit := UNITS.get(name)) else names[name] for name in required)
        raise _wrong(path, f"no column {', '.join(missing)}", wanted, "Rename the columns, or add what is missing.")
    found = list(required)
    for group in together:
        some = [name for name in group if names[name] in table.column_names]
        if some and len(some) < len(group):
            raise _wrong(
                path, f"only {', '.join(some)}", f"{', '.join(group)}, all or none", "Add the others or drop them."
            )
        found += some
    columns = {name: _numbers(path, table, names[name]) for name in found}
    _refuse_holes(path, columns)
    return columns


def _numbers(path: Path, table: pa.Table, name: str) -> np.ndarray:
    try:
        return table[name].cast(pa.float64()).to_numpy(zero_copy_only=False)
    except pa.ArrowException as error:
        raise _wrong(path, f"words in column {name}", "numbers", "Remove what is not a number.") from error


def _refuse_holes(path: Path, columns: dict[str, np.ndarray]) -> None:
    holes = ~np.isfinite(np.column_stack(list(columns.values())))
    holed = [name for name, values in columns.items() if not np.isfinite(values).all()]
    if holes.any():
        rows = np.flatnonzero(holes.any(axis=1))
        raise _wrong(
            path,
            f"{name_rows(rows)} with empty cells or NaN in {', '.join(holed)}",
            "a number in every cell",
            "Remove these strikes.",
        )


def _strikes(path: Path, columns: dict[str, np.ndarray]) -> RecordedStrikes:
    def pair(name: str) -> np.ndarray:
        return np.column_stack([columns[f"{name}x"], columns[f"{name}y"]])

    motion, normal = pair("pre_v"), pair("normal_")
    lengths = np.linalg.norm(normal, axis=1)
    if (np.abs(lengths - 1) > 0.05).any():
        rows = np.flatnonzero(np.abs(lengths - 1) > 0.05)
        raise _wrong(
            path,
            f"{name_rows(rows)} with a normal of length {lengths[rows[0]]:.3g}",
            "unit vectors",
            "Divide by the length.",
        )
    normal = normal / lengths[:, None]
    # Speed and angle are kept, in place of a velocity: a strike and its mirror image then differ in a sign.
    along = (motion * normal).sum(axis=1)
    across = (motion * np.column_stack([-normal[:, 1], normal[:, 0]])).sum(axis=1)
    strikes = Strikes(np.hypot(along, across), np.arctan2(across, along), pair("point_"), normal)
    after = np.full((len(lengths), 3), np.nan)
    if "post_vx" in columns:
        after = np.column_stack([columns[name] for name in POST_COLUMNS])
    rest = np.column_stack([columns[name] for name in REST_COLUMNS]) if "rest_x" in columns else None
    return RecordedStrikes(strikes, after, rest)


def _refuse_units(path: Path, recorded: RecordedStrikes, shape: Shape) -> None:
    """Millimetres, degrees and swapped columns are wrong by factors that no block shows."""
    # Medians: one glitched row must not hide, nor feign, a wrong unit of the whole column.
    strikes, speed = recorded.strikes, np.median(recorded.strikes.speed_m_s)
    reach = float(np.median(np.linalg.norm(strikes.point_m, axis=1)))
    size = float(np.linalg.norm(shape.outline, axis=1).max())
    if reach > 10 * size:
        _refuse_unit(
            path, f"impact points {reach:.3g} from the centre of mass", f"at most {size:.3g} m", "point_x, point_y in m"
        )
    if not _SLOWEST_M_S < speed < _FASTEST_M_S:
        _refuse_unit(path, f"a striking speed of {speed:.3g}", "0.02 to 5 m/s", "pre_vx, pre_vy in m/s")
    after = float(np.median(np.linalg.norm(recorded.after[:, :2], axis=1) / strikes.speed_m_s))
    if not 0.05 < after < _FASTEST_AFTER:
        _refuse_unit(
            path, f"blocks {after:.3g} times as fast as what struck them", "0.05 to 3", "post_vx, post_vy in m/s"
        )
    spin = float(np.median(np.abs(recorded.after[:, 2]) * shape.gyration_m / strikes.speed_m_s))
    if spin > _FASTEST_SPIN:
        found = f"a turning of {np.median(np.abs(recorded.after[:, 2])):.3g} rad/s"
        _refuse_unit(path, found, "what such a strike can cause", "post_wz in rad/s, not degrees")


def _refuse_unit(path: Path, got: str, expected: str, columns: str) -> None:
    raise _wrong(path, f"{got}, in the median", expected, f"Give {columns}; columns may also be swapped.")


def _refuse_other_object(path: Path, recorded: RecordedStrikes, shape: Shape) -> None:
    strikes = recorded.strikes
    off = shape.distances(strikes.point_m)
    if (off > _OFF_OUTLINE_M).any():
        rows = np.flatnonzero(off > _OFF_OUTLINE_M)
        found = f"{name_rows(rows)} with points up to {1000 * off.max():.0f} mm off the outline of '{shape.name}'"
        raise _wrong(path, found, "points on its outline", "Is it the right --shape, its frame in the centre of mass?")
    outward = (strikes.point_m * strikes.normal).sum(axis=1) > 0
    if outward.any():
        found = f"{name_rows(np.flatnonzero(outward))} with a normal that points outward"
        raise _wrong(path, found, "normals into the struck block", "Turn them about.")
    steep = np.abs(strikes.angle_rad) > _STEEPEST_RAD
    if steep.any():
        most = np.degrees(np.abs(strikes.angle_rad).max())
        found = f"{name_rows(np.flatnonzero(steep))} with a motion {most:.0f} degrees off"
        raise _wrong(
            path, found, "at most 60 degrees between motion and normal", "Check frame and signs of pre_ and normal_."
        )
    # A fifth may be: noise of slow, glancing strikes. Swapped columns turn nearly all of them round.
    backward = (recorded.after[:, :2] * strikes.normal).sum(axis=1) < -0.1 * strikes.speed_m_s
    if backward.mean() > 0.2:
        found = f"{name_rows(np.flatnonzero(backward))} in which the block comes towards what struck it"
        raise _wrong(path, found, "blocks that are driven away", "Are pre_ and post_ swapped, or in different frames?")


def refuse_mirrored(
    path: Path,
    recorded: RecordedStrikes,
    shape: Shape,
    advice: str = "Turn the sign of post_wz and rest_yaw about, or that of one axis: is the frame z up, right-handed?",
) -> None:
    """Refuse turnings against the moment of the impulse at the impact point: one axis or one sign is turned about."""
    strikes, after = recorded.strikes, recorded.after
    # m (r x v) = I w of an impulse at r, whatever the law of contact; in shares of the striking speed.
    lever = strikes.point_m[:, 0] * after[:, 1] - strikes.point_m[:, 1] * after[:, 0]
    clear = np.abs(lever) > _CLEAR_LEVER * shape.gyration_m * strikes.speed_m_s
    agreeing = np.sign(lever) == np.sign(after[:, 2])
    if clear.sum() >= _CLEAR_ROWS and agreeing[clear].mean() < _AGREEING:
        rows = np.flatnonzero(clear & ~agreeing)
        found = f"{name_rows(rows)} in which the block turns against the push at its impact point"
        raise _wrong(path, found, "turnings by the moment of the impulse, point times velocity", advice)


def refuse_copies(path: Path, columns: Mapping[str, np.ndarray], fewest: int) -> None:
    """Refuse strikes that stand there twice, and too few of them."""
    values = np.column_stack(list(columns.values()))
    scale = np.abs(values).max(axis=0) + 1e-12
    # Rounded to a millionth of each column's scale: exports print the same strike with other last digits.
    different = np.unique(np.round(values / scale / _SAME_SHARE), axis=0)
    if len(different) < len(values):
        found = f"{len(values) - len(different)} of {len(values)} strikes that are copies of others"
        raise _wrong(path, found, "each strike once", "Remove the copies: counted twice, they feign certainty.")
    if len(values) < fewest:
        found = f"{len(values)} strikes"
        raise _wrong(path, found, f"at least {fewest}, better 10", "Record more, at other places and speeds.")


def name_rows(rows: np.ndarray) -> str:
    """Name the first rows, counted from 1 without the header."""
    named = ", ".join(str(row + 1) for row in rows[:5])
    return f"row{'s' if len(rows) > 1 else ''} {named}{' ...' if len(rows) > 5 else ''}"


def _wrong(path: Path, got: str, expected: str, next_step: str) -> SessionError:
    return SessionError(got=got, expected=expected, where=str(path), next_step=next_step)
