"""A recording loses at most the episode in progress, whenever the process is killed."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sample_sessions import assert_same, list_sessions, make_session

from rsr.common.errors import SessionError
from rsr.sessions import read_session
from rsr.sessions.journal import Journal, journal_folder

EPISODES = 3

KILL_AT_EVERY_SYNC = """
import os, sys
from pathlib import Path
from sample_sessions import list_sessions, make_session
from sync_kills import die_at_sync
from rsr.sessions.journal import Journal

session = make_session(episodes=3)

def record_and_die(root, at):
    die_at_sync(at)
    journal = Journal.open(root, session.card, session.channels)
    for episode in session.episodes[len(journal.episodes):]:
        print(at, len(journal.episodes), flush=True)
        journal.add(episode)
    print(at, len(journal.episodes), flush=True)
    journal.close()

at = int(sys.argv[2])
while True:
    child = os.fork()
    if child == 0:
        record_and_die(Path(sys.argv[1]) / str(at), at)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if not os.WIFSIGNALED(status):
        break
    at += 1
"""


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """One folder a moment of death, and how many episodes were finished by then."""
    root = tmp_path_factory.mktemp("killed")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    command = [sys.executable, "-c", KILL_AT_EVERY_SYNC, str(root), "1"]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    finished: dict[int, int] = {}
    for line in done.stdout.splitlines():
        at, count = map(int, line.split())
        finished[at] = count
    return root, finished


def test_a_kill_at_any_moment_costs_at_most_the_episode_in_progress(killed):
    """A real SIGKILL at every point where something reaches the disk; then what is there, and then the same again."""
    root, finished = killed
    session = make_session(episodes=EPISODES)
    assert len(list(root.iterdir())) > 2 * EPISODES, "it died at many moments"
    for folder in root.iterdir():
        recording = journal_folder(folder, session.card)
        before = Journal(recording).episodes if (recording / "recording.json").exists() else []
        stored = list_sessions(folder).readable
        assert stored or len(before) >= finished.get(int(folder.name), 0), "no finished episode is lost"
        if stored:
            assert_same(read_session(stored[0]), session)
        if not recording.exists() and stored:
            continue
        journal = Journal.open(folder, session.card, session.channels)
        for episode in session.episodes[len(journal.episodes) :]:
            journal.add(episode)
        journal.close()
        assert_same(read_session(folder / "push_cube" / "session-001"), session)
        assert not recording.exists()


def opened(root: Path, **changes) -> Journal:
    session = make_session(episodes=EPISODES)
    return Journal.open(root, replace(session.card, **changes), session.channels)


def test_what_was_recorded_so_far_can_be_made_a_session(tmp_path):
    journal = opened(tmp_path)
    journal.add(make_session().episodes[0])
    journal.note("Episode 1, attempt 1 was not kept.")
    recovered = Journal(journal.folder).close("And a summary.")
    assert len(recovered.episodes) == 1
    stored = read_session(tmp_path / "push_cube" / "session-001")
    assert stored.card.notes.endswith("Episode 1, attempt 1 was not kept. And a summary.")
    assert stored.episodes[0].tags == make_session().episodes[0].tags


def test_the_date_may_differ_when_it_goes_on_but_nothing_else(tmp_path):
    journal = opened(tmp_path, recorded_at="2026-01-01T10:00")
    journal.add(make_session().episodes[0])
    again = opened(tmp_path, recorded_at="2026-01-01T11:00")
    assert (len(again.episodes), again.card.recorded_at) == (1, "2026-01-01T10:00")
    with pytest.raises(SessionError) as caught:
        opened(tmp_path, policy_sha256="another")
    assert str(caught.value) == (
        f"{journal.folder}: got a recording that was begun otherwise (another policy, robot, seed or limits); "
        f"expected the same one, to go on with it. Finish it as it is (`rsr recover {journal.folder}`), "
        "or give the new recording another name."
    )


def test_a_name_that_is_taken(tmp_path):
    journal = opened(tmp_path)
    journal.add(make_session().episodes[0])
    journal.close()
    with pytest.raises(SessionError) as caught:
        opened(tmp_path)
    assert str(caught.value) == (
        f"{tmp_path}/push_cube/session-001: got a recording of this name; expected a new name: recordings are "
        "append-only. Give the new recording the next free number; nothing was overwritten."
    )


def test_a_damaged_episode_is_named(tmp_path):
    journal = opened(tmp_path)
    journal.add(make_session().episodes[0])
    file = journal.folder / "episode-0000.npz"
    file.write_bytes(file.read_bytes()[:-30])
    with pytest.raises(SessionError) as caught:
        Journal(journal.folder)
    assert caught.value.where == str(file)
    assert "Move this file away" in caught.value.next_step


def test_going_on_without_a_damaged_episode_overwrites_no_other(tmp_path):
    journal = opened(tmp_path)
    for episode in make_session().episodes[:2]:
        journal.add(episode)
    (journal.folder / "episode-0000.npz").unlink()
    again = opened(tmp_path)
    again.add(make_session().episodes[2])
    kept = Journal(journal.folder).episodes
    assert [episode.index for episode in kept] == [0, 1]
    for episode, recorded in zip(kept, make_session().episodes[1:], strict=True):
        np.testing.assert_array_equal(episode["joint_position"], recorded["joint_position"])


def test_no_journal_there(tmp_path):
    with pytest.raises(SessionError, match="expected a journal as it was written"):
        Journal(tmp_path)


def test_episodes_of_another_shape_are_refused(tmp_path):
    journal = opened(tmp_path)
    episode = make_session().episodes[0]
    with pytest.raises(SessionError):
        journal.add(replace(episode, time_s=np.arange(2.0)))
    assert journal.episodes == []
