"""What is known of clocks lies beside the recording, and never passes for another one's."""

import json

import numpy as np
import pytest
from sample_sessions import make_session

from rsr.errors import SessionError
from rsr.sessions import list_sessions, write_session
from rsr.sessions.clocks import Signal, estimate_clock
from rsr.sessions.motion import MotionClock
from rsr.sessions.sidecar import alignment_path, read_alignment, write_alignment


@pytest.fixture
def folder(tmp_path):
    return write_session(tmp_path, make_session())


@pytest.fixture(scope="module")
def clock():
    rng, time_s = np.random.default_rng(0), np.arange(0, 10.0, 0.02)
    angle = np.cumsum(np.cumsum(rng.normal(0, 0.01, len(time_s))))
    found = estimate_clock([Signal(time_s, angle)], [Signal(time_s + 0.03, angle)], drift=False)
    session = make_session()
    return MotionClock(session.channel("joint_setpoint"), session.channel("joint_position"), "same", found)


def test_written_and_read_back(folder, clock):
    path = write_alignment(folder, [clock])
    assert path == folder.parent / "session-001.alignment.json" == alignment_path(folder)
    (stored,) = read_alignment(folder)
    assert (stored.reference, stored.other, stored.relation) == ("joint_setpoint", "joint_position", "same")
    assert (stored.offset_s, stored.offset_interval_s) == (clock.clock.offset_s, clock.clock.offset_interval_s)
    content = path.read_bytes()
    write_alignment(folder, [clock])
    assert path.read_bytes() == content
    assert list_sessions(folder.parent.parent).readable == (folder,)


def test_of_another_recording(folder, clock, tmp_path):
    path = write_alignment(folder, [clock])
    other = write_session(tmp_path, make_session("session-002", seed=1))
    path.rename(alignment_path(other))
    with pytest.raises(SessionError, match="got the sidecar of another recording"):
        read_alignment(other)


@pytest.mark.parametrize("content", [None, "{", "[]", '{"format": "rsr-alignment-9"}', '{"format": "rsr-alignment-1"}'])
def test_absent_or_damaged(folder, content):
    if content is not None:
        alignment_path(folder).write_text(content)
    with pytest.raises(SessionError, match="Make it anew: `rsr check --sidecar`."):
        read_alignment(folder)


def test_a_line_that_lacks_something(folder, clock):
    path = write_alignment(folder, [clock])
    document = json.loads(path.read_text())
    del document["clocks"][0]["status"]
    path.write_text(json.dumps(document))
    with pytest.raises(SessionError, match="a sidecar of format"):
        read_alignment(folder)
