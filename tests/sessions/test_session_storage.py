"""What is written comes back bit for bit, equal sessions have equal bytes, and recordings are append-only."""

import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra.numpy import arrays
from sample_sessions import CHANNELS, assert_same, files, list_sessions, make_session, with_values

from rsr.common.errors import SessionError
from rsr.common.files import sha256
from rsr.sessions import Card, Channel, Episode, Session, read_session, write_session

NAMES = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_-]{0,12}", fullmatch=True)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
ANY_FLOAT64 = st.floats(allow_nan=True, allow_infinity=True, width=64)


@st.composite
def sessions(draw) -> Session:
    """Any session that can be stored: odd texts, one-column channels, one-row episodes, NaN and infinities."""
    channels = tuple(
        Channel(name, tuple(columns), draw(st.text()), draw(st.text()), draw(st.text()), stamp)
        for name, columns, stamp in draw(
            st.lists(
                st.tuples(
                    st.just("action") | NAMES,
                    st.lists(st.text(), min_size=1, max_size=4),
                    st.sampled_from(["at_sample", "held_until_next"]),
                ),
                max_size=3,
                unique_by=lambda drawn: drawn[0],
            )
        )
    )
    episodes = []
    for index in range(draw(st.integers(1, 3))):
        rows = draw(st.integers(1, 4))
        values = {c.name: draw(arrays(np.float64, (rows, c.width), elements=ANY_FLOAT64)) for c in channels}
        episodes.append(Episode(index, draw(arrays(np.float64, rows, elements=ANY_FLOAT64)), values))
    card = Card(
        session=draw(NAMES),
        scenario=draw(NAMES),
        reality=draw(st.text()),
        simulated=draw(st.booleans()),
        control_dt_s=draw(st.floats(1e-6, 1e3)),
        operator=draw(st.none() | st.text()),
        gains=draw(st.dictionaries(st.text(), NUMBERS, max_size=2)),
        notes=draw(st.text()),
    )
    return Session(card, channels, tuple(episodes))


def test_round_trip_keeps_every_bit(tmp_path):
    session = make_session()
    folder = write_session(tmp_path, session)
    assert folder == tmp_path / "push_cube" / "session-001"
    assert_same(read_session(folder), session)
    assert [path.name for path in folder.parent.iterdir()] == ["session-001"]


@given(sessions())
@settings(max_examples=25, deadline=None)
def test_any_session_comes_back(session):
    with tempfile.TemporaryDirectory() as root:
        folder = write_session(Path(root), session)
        assert_same(read_session(folder), session)
        assert write_session(Path(root), session) == folder


def test_what_is_read_can_be_changed_without_touching_the_disk(tmp_path):
    folder = write_session(tmp_path, make_session())
    read_session(folder).episodes[0]["action"][:] = 0.0
    assert_same(read_session(folder), make_session())


def test_equal_sessions_have_equal_bytes(tmp_path):
    one = make_session()
    other = replace(one, card=replace(one.card, gains=dict(reversed(one.card.gains.items()))))
    here, there = write_session(tmp_path / "a", one), write_session(tmp_path / "b", other)
    assert sha256(here) == sha256(there)
    assert sha256(here) != sha256(write_session(tmp_path / "c", make_session(seed=1)))


def test_another_process_writes_the_same_bytes(tmp_path):
    here = write_session(tmp_path / "here", make_session())
    code = (
        "from pathlib import Path; from sample_sessions import make_session; from rsr.sessions import write_session;"
        f"write_session(Path({str(tmp_path / 'there')!r}), make_session())"
    )
    search = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    environment = {**os.environ, "PYTHONPATH": search, "PYTHONHASHSEED": "77"}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
    assert sha256(here) == sha256(tmp_path / "there" / "push_cube" / "session-001")


def test_writing_the_same_again_changes_nothing(tmp_path):
    folder = write_session(tmp_path, make_session())
    before = [(path, path.stat().st_mtime_ns) for path in files(folder)]
    assert write_session(tmp_path, make_session()) == folder
    assert [(path, path.stat().st_mtime_ns) for path in files(folder)] == before


def test_another_recording_is_never_overwritten(tmp_path):
    folder = write_session(tmp_path, make_session())
    with pytest.raises(SessionError) as raised:
        write_session(tmp_path, make_session(seed=1))
    assert str(raised.value) == (
        f"{folder}: got another recording of this name; expected a new name: recordings are append-only. "
        "Give this session the next free number; nothing was overwritten."
    )
    assert_same(read_session(folder), make_session())


def test_sessions_are_listed_by_scenario(tmp_path):
    second = write_session(tmp_path, make_session("session-002"))
    first = write_session(tmp_path, make_session("session-001"))
    elsewhere = replace(make_session(), card=replace(make_session().card, scenario="push_t"))
    other = write_session(tmp_path, elsewhere)
    (tmp_path / "push_cube" / ".cache").mkdir()
    (tmp_path / "push_cube" / "session-001.dvc").write_text("outs: []\n")
    assert list_sessions(tmp_path, "push_cube").readable == (first, second)
    assert list_sessions(tmp_path).readable == (first, second, other)
    assert list_sessions(tmp_path).damaged == {}
    assert list_sessions(tmp_path / "nothing_here").readable == ()


def _without_columns(session: Session) -> Session:
    return with_values(session, 1, action=np.zeros((21, 4)))


def _undescribed(session: Session) -> Session:
    return replace(session, channels=CHANNELS[:-1])


def _renumbered(session: Session) -> Session:
    return replace(session, episodes=session.episodes[1:])


def _escaping(session: Session) -> Session:
    return replace(session, card=replace(session.card, session="../elsewhere"))


def _infinite_gain(session: Session) -> Session:
    return replace(session, card=replace(session.card, gains={"kp": float("inf")}))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (_without_columns, r"episode 1: got values of shape \(21, 4\); expected 21 rows .* by 6 columns"),
        (_undescribed, "got values without a channel: clipped"),
        (_renumbered, "got episodes numbered 1, 2; expected 0, 1, 2"),
        (_escaping, "got the name '../elsewhere'"),
        (_infinite_gain, "expected finite numbers and a positive control_dt_s"),
        (lambda session: replace(session, episodes=()), "got no episodes; expected at least one"),
        (lambda session: replace(session, channels=(*CHANNELS, CHANNELS[0])), "expected each name once"),
    ],
)
def test_what_could_not_be_read_back_is_not_written(tmp_path, spoil, message):
    with pytest.raises(SessionError, match=message):
        write_session(tmp_path, spoil(make_session()))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads are counted in /proc")
def test_reading_starts_no_thread(tmp_path):
    """A thread of pyarrow that lets go of Python's bytes while Python ends aborts the process."""
    where = write_session(tmp_path, make_session())
    code = (
        "import os, sys; from pathlib import Path; import rsr.sessions, pyarrow.parquet; "
        "threads = lambda: len(os.listdir('/proc/self/task')); before = threads(); "
        "rsr.sessions.read_session(Path(sys.argv[1])); print(threads() - before)"
    )
    done = subprocess.run([sys.executable, "-c", code, where], capture_output=True, text=True, check=True, timeout=100)
    assert done.stdout.strip() == "0"
