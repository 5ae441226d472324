"""Words about single episodes are stored with a session, and sessions without any keep the bytes they had."""

from dataclasses import replace

import pytest
from sample_sessions import assert_same, files, make_session

from rsr.common.errors import SessionError
from rsr.sessions import Session, read_session, write_session


def tagged(session: Session) -> Session:
    tags = [{"trial": "a", "surface": "wood, dry"}, {}, {"trial": "ä"}]
    episodes = (replace(e, tags=words) for e, words in zip(session.episodes, tags, strict=True))
    return replace(session, episodes=tuple(episodes))


def test_tags_come_back(tmp_path):
    session = tagged(make_session())
    read = read_session(write_session(tmp_path, session))
    assert_same(read, session)
    assert [e.tags for e in read.episodes] == [e.tags for e in session.episodes]


def test_other_tags_are_another_recording(tmp_path):
    write_session(tmp_path, tagged(make_session()))
    assert write_session(tmp_path, tagged(make_session())).is_dir()
    with pytest.raises(SessionError, match="another recording of this name"):
        write_session(tmp_path, make_session())


def test_without_tags_nothing_is_said_of_them(tmp_path):
    folder = write_session(tmp_path, make_session())
    assert all(b"episode_tags" not in path.read_bytes() for path in files(folder))
    assert all(e.tags == {} for e in read_session(folder).episodes)
