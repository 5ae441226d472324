"""Tables that users bring: what is right passes, what is wrong gets a clear answer."""

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from rsr.common.errors import SessionError
from rsr.learned.clash import read_strikes, write_strikes
from rsr.learned.clash.tables import POST_COLUMNS, REST_COLUMNS
from rsr.realities.strikes import StrikeStandIn
from rsr.scenarios.built_in.strike import load_shape


@pytest.fixture(scope="module")
def recorded(square):
    return StrikeStandIn(square, 0).record(12)


@pytest.fixture
def table(recorded, tmp_path):
    """Write the recording with some columns changed; returns the path."""

    def write(rows=slice(None), without=(), **changes):
        path = tmp_path / "strikes.csv"
        write_strikes(path, recorded.take(rows))
        columns = {name: column.to_numpy() for name, column in zip(*_parts(path), strict=True)}
        changed = {name: change(columns) for name, change in changes.items()}
        kept = {name: values for name, values in (columns | changed).items() if name not in without}
        pyarrow.csv.write_csv(pa.table(kept), path)
        return path

    return write


def _parts(path):
    read = pyarrow.csv.read_csv(path)
    return read.column_names, read.columns


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_table_comes_back_as_it_was(recorded, square, tmp_path, ending):
    path = tmp_path / f"strikes.{ending}"
    write_strikes(path, recorded)
    read = read_strikes(path, square)
    for name in ("speed_m_s", "angle_rad", "point_m", "normal"):
        assert getattr(read.strikes, name) == pytest.approx(getattr(recorded.strikes, name), abs=1e-9)
    assert read.after == pytest.approx(recorded.after)
    assert read.rest == pytest.approx(recorded.rest)


def test_where_blocks_came_to_rest_may_be_left_out(table, square):
    assert read_strikes(table(without=("rest_x", "rest_y", "rest_yaw")), square).rest is None
    with pytest.raises(SessionError, match="all or none"):
        read_strikes(table(without=("rest_yaw",)), square)


def test_velocities_may_be_left_out_where_it_is_known_where_blocks_came_to_rest(table, recorded, square, tmp_path):
    read = read_strikes(table(without=POST_COLUMNS), square)
    assert np.isnan(read.after).all()
    assert read.rest == pytest.approx(recorded.rest)
    write_strikes(tmp_path / "again.csv", read)
    assert read_strikes(tmp_path / "again.csv", square).rest == pytest.approx(recorded.rest)
    for changes, message in (
        ({"rest_yaw": lambda table: -table["rest_yaw"]}, "turns against the push"),
        ({name: lambda table, name=name: 1000 * table[name] for name in ("rest_x", "rest_y")}, "in the median"),
        ({"pre_vx": lambda table: 1000 * table["pre_vx"]}, "pre_vx, pre_vy in m/s"),
    ):
        with pytest.raises(SessionError, match=message):
            read_strikes(table(without=POST_COLUMNS, **changes), square)


def test_three_strikes_are_too_few(table, square):
    with pytest.raises(SessionError, match="3 strikes; expected at least 5"):
        read_strikes(table(rows=slice(0, 3)), square)


def test_copies_are_named(table, square):
    with pytest.raises(SessionError, match="2 of 8 strikes that are copies"):
        read_strikes(table(rows=np.array([0, 1, 2, 3, 4, 5, 0, 1])), square)


def test_strikes_of_another_object_are_named(table, recorded):
    with pytest.raises(SessionError, match="off the outline of 'triangle'"):
        read_strikes(table(), load_shape("triangle"))


def test_rows_with_nan_are_named(table, square):
    def hole(columns):
        values = columns["post_wz"].copy()
        values[[2, 5]] = np.nan
        return values

    with pytest.raises(SessionError, match=r"rows 3, 6 with empty cells or NaN in post_wz"):
        read_strikes(table(post_wz=hole), square)


@pytest.mark.parametrize(
    ("columns", "factor", "words"),
    [
        (("point_x", "point_y"), 1000, "point_x, point_y in m"),
        (("pre_vx", "pre_vy"), 1000, "pre_vx, pre_vy in m/s"),
        (("post_vx", "post_vy"), 1000, "post_vx, post_vy in m/s"),
        (("post_wz",), 180 / np.pi, "post_wz in rad/s, not degrees"),
    ],
)
def test_other_units_are_recognised(table, square, columns, factor, words):
    changes = {name: lambda table, name=name: factor * table[name] for name in columns}
    with pytest.raises(SessionError, match=words):
        read_strikes(table(**changes), square)


def test_swapped_columns_are_recognised(table, square):
    swapped = {"post_vx": lambda table: table["post_wz"], "post_wz": lambda table: table["post_vx"]}
    with pytest.raises(SessionError, match="columns may also be swapped"):
        read_strikes(table(**swapped), square)


def test_normals_that_point_outward_or_are_no_unit_vectors(table, square):
    turned = {name: lambda table, name=name: -table[name] for name in ("normal_x", "normal_y")}
    with pytest.raises(SessionError, match="points outward"):
        read_strikes(table(**turned), square)
    long = {name: lambda table, name=name: 20 * table[name] for name in ("normal_x", "normal_y")}
    with pytest.raises(SessionError, match="length 20"):
        read_strikes(table(**long), square)


def test_velocities_before_and_after_confused(table, square):
    back = {name: lambda table, name=name: -table[name] for name in ("post_vx", "post_vy")}
    with pytest.raises(SessionError, match="towards what struck it"):
        read_strikes(table(**back), square)


def test_missing_columns_words_and_files(table, square, tmp_path):
    with pytest.raises(SessionError, match="no column normal_x"):
        read_strikes(table(without=("normal_x",)), square)
    with pytest.raises(SessionError, match="only post_vx, post_vy; expected post_vx, post_vy, post_wz, all or none"):
        read_strikes(table(without=("post_wz",)), square)
    with pytest.raises(SessionError, match="no column post_vx, post_vy, post_wz; expected .* or at least rest_x"):
        read_strikes(table(without=(*POST_COLUMNS, *REST_COLUMNS)), square)
    with pytest.raises(SessionError, match="words in column pre_vx"):
        read_strikes(table(pre_vx=lambda table: np.array(["fast"] * 12)), square)
    with pytest.raises(SessionError, match="Correct the path"):
        read_strikes(tmp_path / "nothing.csv", square)


def test_a_table_with_turnings_mirrored_is_refused_and_one_with_glitches_is_not(table, square):
    message = "rows .* in which the block turns against the push at its impact point"
    with pytest.raises(SessionError, match=message):
        read_strikes(table(post_wz=lambda columns: -columns["post_wz"]), square)
    with pytest.raises(SessionError, match=message):  # the points in a frame whose x axis runs the other way
        read_strikes(table(point_x=lambda columns: -columns["point_x"]), square)

    def glitched(columns):
        return np.where(np.arange(12) < 3, -columns["post_wz"], columns["post_wz"])

    assert len(read_strikes(table(post_wz=glitched), square)) == 12
