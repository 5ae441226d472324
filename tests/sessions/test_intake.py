"""What comes from outside is data: what could run, fill the disk, lead out or lie is refused before it is read."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from rsr.common.errors import Refused, SessionError, WorkspaceError
from rsr.sessions import read_session, write_session
from rsr.sessions.intake.gate import admitted, check_stored, quarantine
from rsr.sessions.intake.screening import IntakeLimits, screen
from tests.sessions import hostile_files
from tests.sessions.hostile_files import ALLOWED_MB, ARCHIVES, LIES, UNSAFE
from tests.sessions.sample_sessions import make_session

LIMITS = IntakeLimits(ALLOWED_MB)


@pytest.fixture
def session(tmp_path) -> Path:
    return write_session(tmp_path / "lab", make_session())


@pytest.mark.parametrize("name", UNSAFE)
def test_what_is_not_safe_is_refused_unread(session, tmp_path, name):
    make, words = UNSAFE[name]
    make(session, tmp_path / "sprung")
    with pytest.raises(Refused) as caught, admitted([session], LIMITS):
        pytest.fail("was let in")
    assert words in str(caught.value)
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize("name", ARCHIVES)
def test_an_archive_writes_nothing_outside_and_no_more_than_allowed(tmp_path, name):
    make, words = ARCHIVES[name]
    (tmp_path / "inbox").mkdir()
    archive = make(tmp_path / "inbox")
    with pytest.raises(Refused) as caught, admitted([archive], LIMITS):
        pytest.fail("was let in")
    assert words in str(caught.value)
    assert str(archive) in caught.value.where
    assert [path.name for path in tmp_path.rglob("*")] == ["inbox", archive.name]
    assert not Path("/tmp/evil.csv").exists()


@pytest.mark.parametrize("name", LIES)
def test_a_stored_session_is_what_its_card_says_or_refused(session, name):
    change, words = LIES[name]
    change(session)
    with pytest.raises(Refused) as caught:
        check_stored(session)
    assert words in str(caught.value)


@pytest.mark.parametrize("suffix", [".zip", ".tar.gz", ".tar"])
def test_an_honest_archive_is_read_like_the_folder_in_it(session, tmp_path, suffix):
    archive = hostile_files.packed(session, tmp_path / f"visit{suffix}")
    with admitted([archive, session], LIMITS) as (unpacked, folder):
        assert folder == session
        assert check_stored(unpacked).card == read_session(session).card
    assert not unpacked.exists()


@pytest.mark.parametrize("suffix", [".zip", ".tar.gz"])
def test_half_an_archive_is_damaged_and_may_still_be_arriving(session, tmp_path, suffix):
    archive = hostile_files.packed(session, tmp_path / f"visit{suffix}")
    archive.write_bytes(archive.read_bytes()[:-2000])
    with pytest.raises(SessionError, match="an archive that cannot be read") as caught, admitted([archive], LIMITS):
        pytest.fail("was let in")
    assert not isinstance(caught.value, Refused)


def test_of_many_archives_the_right_one_is_named(session, tmp_path):
    archives = [hostile_files.packed(session, tmp_path / f"visit-{number}.zip") for number in range(11)]
    with pytest.raises(SessionError) as caught, admitted(archives, LIMITS) as folders:
        raise SessionError(got="a", expected="b", where=f"{folders[10]}/meta", next_step="c")
    assert caught.value.where.startswith(f"{archives[10]}/")


def test_limits_are_settings(session):
    (session / "camera.raw").write_bytes(bytes(3 << 20))
    screen(session, IntakeLimits(largest_mb=4))
    with pytest.raises(Refused, match=r"allow more with `--largest-mb` \(in a campaign: reality.largest_mb\)"):
        screen(session, IntakeLimits(largest_mb=2))
    with pytest.raises(Refused, match="got more than 3 files; expected at most 3"):
        screen(session, IntakeLimits(most_files=3))


def test_an_ordinary_link_within_the_folder_is_none_of_our_business(session):
    (session / "again").symlink_to("meta")
    screen(session, LIMITS)


class TestQuarantine:
    REASON = SessionError(got="a pickle", expected="data", where="here", next_step="Stop.")

    def test_nothing_is_lost_and_the_reason_stands_beside_it(self, session):
        content = {path.relative_to(session): path.read_bytes() for path in session.rglob("*") if path.is_file()}
        moved = quarantine(session, self.REASON)
        assert moved == session.parent / "quarantine" / f"{session.name}-1"
        assert not session.exists()
        assert {p.relative_to(moved): p.read_bytes() for p in moved.rglob("*") if p.is_file()} == content
        assert (moved.parent / f"{moved.name}.txt").read_text() == "here: got a pickle; expected data. Stop.\n"

    def test_a_second_one_of_the_name_stands_beside_the_first(self, session, tmp_path):
        kept = shutil.copytree(session, tmp_path / "copy")
        first = quarantine(session, self.REASON, tmp_path / "aside")
        shutil.move(kept, session)
        assert quarantine(session, self.REASON, tmp_path / "aside").name == f"{session.name}-2"
        assert first.exists()

    def test_where_it_cannot_be_moved_it_stays(self, session, tmp_path):
        (tmp_path / "aside").write_text("a file in the way")
        with pytest.raises(WorkspaceError):
            quarantine(session, self.REASON, tmp_path / "aside")
        assert read_session(session)
