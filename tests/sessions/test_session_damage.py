"""Damage of every kind gives an error that names the file, and one bad session never hides the others."""

import json
import os
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st
from sample_sessions import assert_same, files, list_sessions, make_session

from rsr.common.errors import SessionError
from rsr.sessions import read_session, recover_session, write_session

DATA = "data/chunk-000/file-000.parquet"
SUMS = "meta/rsr_checksums.json"
EVERY_FILE = (
    DATA,
    SUMS,
    "meta/episodes/chunk-000/file-000.parquet",
    "meta/info.json",
    "meta/rsr_card.json",
    "meta/stats.json",
    "meta/tasks.parquet",
)


def _truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def _empty(path: Path) -> None:
    os.truncate(path, 0)


def _flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)


def _replace_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    return write_session(tmp_path_factory.mktemp("sample"), make_session())


@pytest.fixture
def folder(tmp_path, sample):
    """A copy to damage: writing syncs to the disk, which is slow where the disk is busy."""
    return Path(shutil.copytree(sample, tmp_path / "push_cube" / "session-001"))


def test_every_file_is_known(folder):
    assert {str(path.relative_to(folder)) for path in files(folder)} == set(EVERY_FILE)


@pytest.mark.parametrize("damage", [_truncate, _empty, _flip, Path.unlink, _replace_by_folder])
@pytest.mark.parametrize("name", EVERY_FILE)
def test_the_error_names_the_damaged_file(folder, name, damage):
    damage(folder / name)
    with pytest.raises(SessionError) as raised:
        read_session(folder)
    assert raised.value.where == str(folder / name) or name == SUMS
    assert "Restore it" in raised.value.next_step


def test_golden_text_of_a_changed_file(folder):
    _flip(folder / DATA)
    with pytest.raises(SessionError) as raised:
        read_session(folder)
    assert str(raised.value) == (
        f"{folder / DATA}: got bytes that do not match their checksum; expected a session as it was written. "
        "Restore it (`dvc checkout`, or a copy) or leave this session out; other sessions are not affected."
    )


def test_an_absent_session_says_so(tmp_path):
    with pytest.raises(SessionError, match="session-404: got no such folder"):
        read_session(tmp_path / "push_cube" / "session-404")


def test_checksums_that_forget_the_recording_are_damage(folder):
    (folder / SUMS).write_text(json.dumps({"algorithm": "sha256", "files": {}}))
    with pytest.raises(SessionError, match="do not match their checksum"):
        read_session(folder)


def test_without_verification_what_can_be_decoded_is_returned(folder):
    (folder / SUMS).unlink()
    (folder / "meta/stats.json").write_text("{")
    assert_same(read_session(folder, verify=False), make_session())
    _truncate(folder / DATA)
    with pytest.raises(SessionError, match=r"file-000.parquet: got content that cannot be read \(ArrowInvalid"):
        read_session(folder, verify=False)


def test_a_card_of_another_format_is_refused(folder):
    card = folder / "meta/rsr_card.json"
    card.write_text(card.read_text().replace("rsr-session-1", "rsr-session-9"))
    with pytest.raises(SessionError, match="format 'rsr-session-9' instead of 'rsr-session-1'"):
        read_session(folder, verify=False)


def test_one_damaged_session_never_loses_the_rest(tmp_path):
    good = [write_session(tmp_path, make_session(f"session-{number:03d}", seed=number)) for number in (1, 3, 5)]
    truncated = write_session(tmp_path, make_session("session-002"))
    _truncate(truncated / DATA)
    emptied = tmp_path / "push_cube" / "session-004"
    emptied.mkdir()
    unfinished = tmp_path / "push_cube" / ".session-006.x1y2.part"
    shutil.copytree(good[0], unfinished)
    found = list_sessions(tmp_path)
    assert found.readable == tuple(good)
    assert set(found.damaged) == {truncated, emptied, unfinished}
    assert found.damaged[truncated].where == str(truncated / DATA)
    assert found.damaged[emptied].got == "no such file"
    assert found.damaged[unfinished].got == "a half-written session: its writing was interrupted"
    for path, number in zip(good, (1, 3, 5), strict=True):
        assert_same(read_session(path), make_session(f"session-{number:03d}", seed=number))


def test_a_half_written_session_with_its_data_can_be_finished(tmp_path, folder):
    unfinished = folder.with_name(".session-001.x1y2.part")
    folder.rename(unfinished)
    (unfinished / SUMS).unlink()
    assert recover_session(unfinished) == folder
    assert_same(read_session(folder), make_session())
    assert not unfinished.exists()


def test_a_half_written_session_without_its_data_cannot(folder):
    unfinished = folder.with_name(".session-001.x1y2.part")
    folder.rename(unfinished)
    (unfinished / DATA).unlink()
    with pytest.raises(SessionError, match=r"file-000.parquet: got no such file"):
        recover_session(unfinished)
    assert unfinished.exists()


def test_recovering_a_finished_session_leaves_it_alone(folder):
    assert recover_session(folder) == folder
    assert_same(read_session(folder), make_session())
    _flip(folder / SUMS)
    with pytest.raises(SessionError):
        recover_session(folder)
    assert_same(read_session(folder, verify=False), make_session())


def test_writing_clears_its_own_leftovers_but_no_other_recording(tmp_path):
    parent = tmp_path / "push_cube"
    same = write_session(tmp_path, make_session()).rename(parent / ".session-001.a.part")
    other = write_session(tmp_path, make_session(seed=1)).rename(parent / ".session-001.b.part")
    broken = write_session(tmp_path, make_session(seed=2)).rename(parent / ".session-001.c.part")
    (broken / DATA).unlink()
    neighbour = write_session(tmp_path, make_session("session-0011")).rename(parent / ".session-0011.d.part")
    write_session(tmp_path, make_session())
    assert [path.exists() for path in (same, other, broken, neighbour)] == [False, True, False, True]


@given(name=st.sampled_from(EVERY_FILE), place=st.floats(0, 1, exclude_max=True), change=st.integers(1, 255))
@settings(max_examples=100, deadline=None)
def test_no_changed_byte_ever_changes_a_recording(sample, name, place, change):
    whole = (sample / name).read_bytes()
    content = bytearray(whole)
    content[int(place * len(content))] ^= change
    try:
        (sample / name).write_bytes(content)
        session = read_session(sample)
        assert name == SUMS  # white space, or the word "algorithm"
        assert_same(session, make_session())
    except SessionError:
        pass
    finally:
        (sample / name).write_bytes(whole)
