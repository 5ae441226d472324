"""Each format, as its own library writes it, becomes the session that it holds; and says so where it cannot."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path

import h5py
import numpy as np
import pytest
from foreign_files import (
    DT_S,
    NAMES,
    ROWS,
    SAMPLES,
    pendulum,
    rows,
    truth,
    write_bag_of_ros_1,
    write_csv,
    write_npz,
)
from rosbags.rosbag1 import Writer as Writer1

from rsr.common.errors import ConfigError, RsrError, SessionError
from rsr.scenarios import load_scenario
from rsr.scenarios.channels.recorded import target_of
from rsr.sessions import Session, check_session, read_session
from rsr.sessions.importers.formats import FORMATS, open_recording
from rsr.sessions.ingest.session import Ingested, ingest


def taken(source: Path, root: Path, given: dict | None = None, **options: object) -> tuple[Ingested, Session]:
    found = ingest([source], pendulum(), root, given=given or {}, **options)
    return found, read_session(found.folder)


def assert_true(session: Session, tolerance: float) -> None:
    for episode in session.episodes:
        assert len(episode) == ROWS
        for name in episode.values:
            expected = truth()[name].copy()
            if name == "commanded_torque":
                expected[-1] = expected[-2]  # the last row repeats the command before it
            np.testing.assert_allclose(episode[name], expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_format_gives_what_was_written(name: str, tmp_path: Path) -> None:
    write, given, tolerance = SAMPLES[name]
    found, session = taken(write(tmp_path), tmp_path / "out", given)
    assert found.damage == ()
    assert_true(session, tolerance)
    complete = tuple(channel for channel in pendulum().channels if channel.name in session.episodes[0].values)
    check_session(session, complete)
    assert found.mapping.format in FORMATS


@pytest.mark.parametrize("name", SAMPLES)
def test_the_mapping_that_was_kept_needs_no_answers(name: str, tmp_path: Path) -> None:
    from rsr.sessions.ingest.mapping import read_lines

    write, given, tolerance = SAMPLES[name]
    source = write(tmp_path)
    first, _ = taken(source, tmp_path / "one", given)
    lines = read_lines(first.folder / "raw" / "mapping.yaml")
    second, session = taken(source, tmp_path / "two", lines)
    assert second.said == () or all("by name" not in words for words in second.said)
    assert_true(session, tolerance)


@pytest.mark.parametrize("name", SAMPLES)
def test_the_raw_files_stand_beside_the_session(name: str, tmp_path: Path) -> None:
    write, given, _ = SAMPLES[name]
    source = write(tmp_path)
    found, _ = taken(source, tmp_path / "out", given)
    files = [source] if source.is_file() else [file for file in source.rglob("*") if file.is_file()]
    for file in files:
        kept = found.folder / "raw" / "files" / file.relative_to(source.parent)
        assert kept.read_bytes() == file.read_bytes()
    assert len(json.loads((found.folder / "raw" / "source.json").read_text())["files"]) == len(files)


def test_what_was_stored_before_is_not_stored_again(tmp_path: Path) -> None:
    source = write_csv(tmp_path)
    first, _ = taken(source, tmp_path / "out")
    shutil.move(source, tmp_path / "renamed.csv")
    again, _ = taken(tmp_path / "renamed.csv", tmp_path / "out")
    assert again.known
    assert again.folder == first.folder


def test_units_signs_zeros_and_order_are_applied(tmp_path: Path) -> None:
    run = truth()
    table = {"clock_ms": 1e3 * run["time_s"] + 5e6}
    for index, joint in ((1, "a"), (0, "b")):
        table[f"{joint}_angle"] = -np.rad2deg(run["joint_position"][:, index] - 0.25)
    path = tmp_path / "odd.csv"
    np.savetxt(path, np.stack(list(table.values()), axis=1), delimiter=";", header=";".join(table), comments="")
    position = {
        "from": "table",
        "columns": ["b_angle", "a_angle"],
        "unit": "deg",
        "sign": [-1, -1],
        "offset": [0.25] * 2,
    }
    others = {name: {"leave_out": True} for name in NAMES[1:]}
    _, session = taken(path, tmp_path / "out", {"channels": {"joint_position": position, **others}})
    assert_true(session, 1e-9)


def test_a_column_that_was_held_and_not_recorded_is_stated(tmp_path: Path) -> None:
    path, shoulder = write_csv(tmp_path), {"from": "table", "columns": ["shoulder_torque_cmd_Nm"]}
    with pytest.raises(SessionError, match=r"expected 2 \(shoulder, elbow\).*unrecorded: {elbow: 0.0}"):
        taken(path, tmp_path / "no", {"channels": {"commanded_torque": shoulder}})
    given = {"channels": {"commanded_torque": shoulder | {"unrecorded": {"elbow": 0.5}, "sign": [-1]}}}
    _, session = taken(path, tmp_path / "out", given)
    recorded = session.episodes[0]["commanded_torque"]
    np.testing.assert_allclose(recorded[:-1, 0], -truth()["commanded_torque"][:-1, 0], atol=1e-8)
    np.testing.assert_array_equal(recorded[:, 1], 0.5)
    given["channels"]["commanded_torque"]["unrecorded"] = {"wrist": 0.0}
    with pytest.raises(SessionError, match="'wrist' in `unrecorded:`; expected one of shoulder, elbow"):
        taken(path, tmp_path / "wrong", given)


def test_a_gap_divides_and_nothing_is_drawn_across_it(tmp_path: Path) -> None:
    path = write_csv(tmp_path)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:151] + lines[201:]))
    _, session = taken(path, tmp_path / "out")
    assert [len(episode) for episode in session.episodes] == [150, ROWS - 200]
    np.testing.assert_allclose(session.episodes[1]["joint_position"], truth()["joint_position"][200:], atol=1e-8)
    assert session.episodes[1].tags["from_s"] == "0.400"


def test_a_column_that_numbers_the_episodes_divides(tmp_path: Path) -> None:
    table = rows() | {"episode": np.repeat([3.0, 7.0], ROWS // 2)}
    table["time_s"] = np.tile(table["time_s"][: ROWS // 2], 2)
    path = tmp_path / "two.csv"
    np.savetxt(path, np.stack(list(table.values()), axis=1), delimiter=",", header=",".join(table), comments="")
    _, session = taken(path, tmp_path / "out")
    assert [episode.tags["part"] for episode in session.episodes] == ["3", "7"]
    np.testing.assert_allclose(session.episodes[1]["joint_position"], truth()["joint_position"][ROWS // 2 :], atol=1e-8)


def test_quaternions_are_reordered_by_the_angular_velocity_beside_them(tmp_path: Path) -> None:
    toss = target_of(load_scenario("cube_toss"))
    half = 0.5 * 3.0 * toss.control_dt_s * np.arange(200) + 0.9
    wxyz = np.stack([np.cos(half), 0.6 * np.sin(half), 0.8 * np.sin(half), 0 * half], axis=1)
    path = tmp_path / "toss.npz"
    spin = np.tile([1.8, 2.4, 0.0], (200, 1))
    np.savez(path, cube_position=np.zeros((200, 3)), cube_quat=wxyz[:, [1, 2, 3, 0]], angular_velocity=spin)
    channels = {
        "cube_position": {"from": "cube_position", "columns": ["0", "1", "2"], "unit": "m"},
        "cube_orientation": {"from": "cube_quat", "columns": ["0", "1", "2", "3"]},
        "angular_velocity": {"from": "angular_velocity", "columns": ["0", "1", "2"], "unit": "rad/s"},
        "linear_velocity": {"constant": [0, 0, 0]},
    }
    given = {"time": {"rate_hz": 148}, "channels": channels}
    found = ingest([path], toss, tmp_path / "out", given=given)
    assert found.mapping.channels["cube_orientation"].quaternion == "xyzw"
    episode = read_session(found.folder).episodes[0]
    np.testing.assert_allclose(np.abs(np.sum(episode["cube_orientation"] * wxyz[: len(episode)], axis=1)), 1, atol=1e-6)


def test_a_bag_whose_recorder_crashed_is_read_without_its_metadata(tmp_path: Path) -> None:
    for name in ("rosbag2_sqlite", "rosbag2_mcap"):
        bag = SAMPLES[name][0](tmp_path)
        (bag / "metadata.yaml").unlink()
        _, session = taken(bag, tmp_path / name)
        assert_true(session, 1e-6)


@pytest.mark.parametrize("compression", list(Writer1.CompressionFormat))
def test_chunks_of_a_ros_1_bag_are_decompressed(tmp_path: Path, compression) -> None:
    found, session = taken(write_bag_of_ros_1(tmp_path, compression), tmp_path / "out")
    assert not found.damage
    assert_true(session, 1e-6)


def test_a_ros_1_bag_that_was_cut_or_never_closed_gives_what_came_before_and_says_so(tmp_path: Path) -> None:
    path = write_bag_of_ros_1(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    found, session = taken(path, tmp_path / "cut")
    assert any("is cut" in words for words in found.damage)
    length = len(session.episodes[0])
    assert ROWS // 4 < length < ROWS
    np.testing.assert_allclose(session.episodes[0]["joint_position"], truth()["joint_position"][:length], atol=1e-6)
    field = whole.index(b"index_pos=") + len(b"index_pos=")
    path.write_bytes(whole[:field] + bytes(8) + whole[field + 8 :])
    found, session = taken(path, tmp_path / "open")
    assert any("was not closed" in words for words in found.damage)
    assert_true(session, 1e-6)


def test_a_truncated_mcap_gives_what_came_before_and_says_so(tmp_path: Path) -> None:
    write, given, _ = SAMPLES["mcap_json"]
    path = write(tmp_path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    found, session = taken(path, tmp_path / "out", given)
    assert any("damaged or cut" in words for words in found.damage)
    length = len(session.episodes[0])
    assert ROWS // 4 < length < ROWS
    np.testing.assert_allclose(session.episodes[0]["joint_position"], truth()["joint_position"][:length], atol=1e-9)
    assert "damaged or cut" in session.card.notes


def test_a_truncated_database_gives_what_came_before_and_says_so(tmp_path: Path) -> None:
    bag = SAMPLES["rosbag2_sqlite"][0](tmp_path)
    database = next(bag.glob("*.db3"))
    with sqlite3.connect(database) as connection:
        connection.execute("DROP INDEX timestamp_idx")
    connection.close()
    database.write_bytes(database.read_bytes()[: 3 * database.stat().st_size // 5])
    found, session = taken(bag, tmp_path / "out")
    assert any("damaged or cut" in words for words in found.damage)
    length = len(session.episodes[0])
    assert 20 < length < ROWS
    np.testing.assert_allclose(session.episodes[0]["joint_velocity"], truth()["joint_velocity"][:length], atol=1e-9)


def test_a_damaged_demonstration_leaves_the_others_whole(tmp_path: Path) -> None:
    write, given, _ = SAMPLES["hdf5_robomimic"]
    path = write(tmp_path)
    with h5py.File(path) as file:
        place = file["data/demo_1/obs/robot0_joint_pos"].id.get_chunk_info(0).byte_offset
    content = bytearray(path.read_bytes())
    content[place + 100] ^= 0xFF
    path.write_bytes(content)
    found, session = taken(path, tmp_path / "out", given)
    assert len(session.episodes) == 2
    assert any("demo_1" in words or "part was left out" in words for words in found.damage)
    assert_true(session, 1e-12)


def test_links_out_of_an_hdf5_file_are_not_followed(tmp_path: Path) -> None:
    write, given, _ = SAMPLES["hdf5_robomimic"]
    secret = write(tmp_path)
    path = tmp_path / "linked.hdf5"
    with h5py.File(path, "w") as file:
        file["data/demo_0/obs/robot0_joint_pos"] = h5py.ExternalLink(secret.name, "data/demo_0/obs/robot0_joint_pos")
        file["data/demo_0/actions"] = np.zeros((9, 2))
        file["data/demo_0/soft"] = h5py.SoftLink("/data/demo_0/actions")
    recording = open_recording(path)
    assert [stream.name for stream in recording.streams] == ["actions"]
    assert sum("not followed" in words for words in recording.damage) == 2
    with pytest.raises(SessionError, match="robot0_joint_pos"):
        taken(path, tmp_path / "out", given)


def test_pickles_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "objects.npz"
    np.savez(path, dof_pos=np.array([{"a": 1}], dtype=object))
    with pytest.raises(RsrError, match="Python objects"):
        open_recording(path)


def test_a_header_that_promises_too_much_is_refused_before_it_is_believed(tmp_path: Path) -> None:
    import io
    import zipfile

    path = tmp_path / "huge.npz"
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (2**40, 4)})
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("dof_pos.npy", header.getvalue() + bytes(64))
    with pytest.raises(RsrError, match="rows of 4 columns"):
        open_recording(path)


def test_arrays_without_names_of_joints_are_asked_about(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        taken(write_npz(tmp_path), tmp_path / "out")
    text = str(caught.value)
    assert "their order is assumed" in text
    assert "  channels:\n    joint_position:\n      from: dof_pos\n      columns: ['0', '1']\n" in text


def test_the_lines_of_the_error_are_all_that_is_missing(tmp_path: Path) -> None:
    """Pasting what the error lists, again and again, ends in a session."""
    import yaml

    source, given = write_npz(tmp_path), {}
    for _ in range(4):
        try:
            _, session = taken(source, tmp_path / "out", given)
        except ConfigError as error:
            lines = [line for line in error.next_step.splitlines()[1:] if not line.startswith("  #")]
            given = _joined(given, yaml.safe_load("\n".join(lines)))
        else:
            assert_true(session, 1e-12)
            return
    pytest.fail("still asked after four answers")


def _joined(one: dict, other: dict) -> dict:
    merged = {**one, **other}
    for key in one.keys() & other.keys():
        if isinstance(one[key], dict) and isinstance(other[key], dict):
            merged[key] = _joined(one[key], other[key])
    return merged


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"scenario": "push_cube"}, "mapping for scenario"),
        ({"colour": "red"}, "colour"),
        ({"channels": {"joint_positoin": {"leave_out": True}}}, "joint_positoin"),
        ({"channels": {"joint_position": {"from": "table", "columns": ["elbow"]}}}, "elbow"),
        ({"channels": {"joint_position": {"unit": "furlong"}}}, "furlong"),
        ({"channels": {"joint_position": {"frame": "world"}}}, "frame 'world'"),
        ({"channels": {"joint_position": {"sign": [1]}}}, "sign"),
        ({"channels": {"commanded_torque": {"constant": [1.0]}}}, "constant"),
        ({"time": {"column": "time_s", "unit": "fortnight"}}, "fortnight"),
        ({"time": {"column": "time_s", "rate_hz": 5}}, "exactly one of column"),
        ({"longest_gap_s": -1}, "longest_gap_s"),
        ({"longest_gap_s": 0.0001}, "no time at which every channel"),
    ],
)
def test_wrong_lines_of_a_mapping_are_named(given: dict, words: str, tmp_path: Path) -> None:
    with pytest.raises(RsrError, match=words):
        taken(write_csv(tmp_path), tmp_path / "out", given)
    assert not list((tmp_path / "out").rglob("*.parquet"))


def test_a_source_in_no_known_format_lists_the_formats(tmp_path: Path) -> None:
    path = tmp_path / "notes.docx"
    path.write_text("dear diary")
    with pytest.raises(SessionError, match="rosbag2") as caught:
        open_recording(path)
    assert "--format" in caught.value.next_step
    with pytest.raises(ConfigError, match="format 'docx'"):
        open_recording(path, "docx")


def test_a_missing_library_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import sys

    path = SAMPLES["hdf5_isaac"][0](tmp_path)
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(ConfigError, match=r'pip install "rsr\[hdf5\]"'):
        open_recording(path)


def test_the_control_step_is_that_of_the_scenario(tmp_path: Path) -> None:
    _, session = taken(write_csv(tmp_path), tmp_path / "out")
    assert session.card.control_dt_s == DT_S
