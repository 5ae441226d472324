"""The reality `inbox`: waiting, arriving, taken, rejected."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from rsr.common.errors import Waiting
from rsr.common.progress import ignore
from rsr.realities import CollectionPlan, Inbox, StandIn
from rsr.realities.inbox import SETTLED_S
from rsr.scenarios import load_scenario
from rsr.sessions import Session, write_session
from tests.push_samples import ScriptedPusher, push_cube

PLAN = CollectionPlan("session-001", episodes=2, seed=3, policy_sha256="abc" * 8)


@pytest.fixture(scope="module")
def recorded() -> Session:
    return StandIn(push_cube(), 1).collect(ScriptedPusher(), PLAN, ignore)


@pytest.fixture
def folder(tmp_path) -> Path:
    (tmp_path / "inbox").mkdir()
    return tmp_path / "inbox"


def collect(folder: Path, later_s: float = 2 * SETTLED_S, robot: str | None = None) -> Session:
    import time

    inbox = Inbox(push_cube(), folder, robot, now_s=lambda: time.time() + later_s)
    return inbox.collect(ScriptedPusher(), PLAN, ignore)


def drop(folder: Path, session: Session) -> Path:
    stored = write_session(folder.parent / "lab", session)
    return Path(shutil.move(stored, folder / PLAN.session))


def test_nothing_there_yet(folder):
    with pytest.raises(Waiting) as caught:
        collect(folder)
    assert str(caught.value) == (
        f"{folder}/session-001: got no such folder yet; expected a session of 2 episodes recorded with policy "
        "abcabcabcabc. Record what session-001.request.json asks for and put it here, by `rsr answer RECORDINGS` "
        "where it has another format; then run this again."
    )


def test_the_request_says_what_to_record(folder, recorded):
    with pytest.raises(Waiting):
        collect(folder)
    request = json.loads((folder / "session-001.request.json").read_text())
    assert (request["scenario"], request["episodes"], request["rows"]) == ("push_cube", 2, 101)
    assert request["policy_sha256"] == PLAN.policy_sha256
    assert set(request["channels"]) == {channel.name for channel in push_cube().channels}
    for episode, target in zip(recorded.episodes, request["goal"]["target_position"], strict=True):
        assert episode["target_position"][0].tolist() == target


def test_without_a_task_the_request_asks_for_no_starts(folder):
    with pytest.raises(Waiting):
        Inbox(load_scenario("double_pendulum"), folder).collect(None, PLAN, ignore)
    request = json.loads((folder / "session-001.request.json").read_text())
    assert request["scenario"] == "double_pendulum"
    assert not {"starts_qpos", "goal"} & set(request)


def test_what_was_dropped_is_taken_and_left_where_it_is(folder, recorded):
    dropped = drop(folder, recorded)
    for _ in range(2):
        session = collect(folder)
        assert session.card == recorded.card
        assert len(session.episodes) == 2
    assert dropped.is_dir()


def test_a_lab_need_not_know_the_policys_hash(folder, recorded):
    drop(folder, replace(recorded, card=replace(recorded.card, policy_sha256=None)))
    assert collect(folder).card.policy_sha256 is None


def test_half_a_copy_is_waited_for_while_it_may_still_arrive(folder, recorded):
    next((drop(folder, recorded) / "data").rglob("*.parquet")).unlink()
    with pytest.raises(Waiting, match="a folder that may still be arriving \\(no such file\\)"):
        collect(folder, later_s=0.0)
    assert (folder / "session-001").is_dir()


def test_a_damaged_drop_is_rejected_with_the_reason(folder, recorded):
    for number in (1, 2):
        file = next((drop(folder, recorded) / "data").rglob("*.parquet"))
        file.write_bytes(file.read_bytes()[:-10])
        with pytest.raises(Waiting) as caught:
            collect(folder)
        moved = folder / "rejected" / f"session-001-{number}"
        assert caught.value.got.endswith("bytes that do not match their checksum)")
        assert caught.value.next_step.startswith(f"It was moved to {moved}. ")
        assert moved.is_dir()
        assert "bytes that do not match their checksum" in moved.with_suffix(".txt").read_text()
        with pytest.raises(Waiting):
            collect(folder)


def without_block(session: Session) -> Session:
    channels = tuple(channel for channel in session.channels if channel.name != "block_position")
    episodes = tuple(
        replace(e, values={name: rows for name, rows in e.values.items() if name != "block_position"})
        for e in session.episodes
    )
    return replace(session, channels=channels, episodes=episodes)


@pytest.mark.parametrize(
    ("change", "got"),
    [
        (lambda s: replace(s, card=replace(s.card, session="session-002")), "session session-002"),
        (lambda s: replace(s, card=replace(s.card, scenario="push_t")), "scenario push_t"),
        (lambda s: replace(s, card=replace(s.card, policy_sha256="other")), "policy_sha256 other"),
        (lambda s: replace(s, card=replace(s.card, robot="the second")), "robot the second"),
        (lambda s: replace(s, card=replace(s.card, control_dt_s=0.1)), "control_dt_s 0.1"),
        (without_block, "channels joint_position, block_orientation, joint_setpoint, action"),
    ],
)
def test_another_session_than_the_one_asked_for_is_rejected(folder, recorded, change, got):
    drop(folder, change(recorded))
    with pytest.raises(Waiting) as caught:
        collect(folder, robot=recorded.card.robot)
    assert f": {got}" in caught.value.got
    assert (folder / "rejected" / "session-001-1").is_dir()
    assert not (folder / "session-001").exists()


def test_a_file_in_the_place_of_a_folder_is_rejected(folder):
    (folder / "session-001").write_text("our data")
    with pytest.raises(Waiting, match="no such folder"):
        collect(folder)
    assert (folder / "rejected" / "session-001-1").read_text() == "our data"
