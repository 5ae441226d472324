"""Spikes, tag jumps, saturation, repeats and duplicates are found where they are, and not where they are not."""

from dataclasses import replace

import numpy as np
import pytest
from sample_sessions import CHANNELS as SAMPLED, make_session, with_values
from shared_data import pendulum_runs, tosses

from rsr.sessions import Card, Channel, Episode, Session
from rsr.sessions.checks.duplicates import fingerprints, judge_duplicates
from rsr.sessions.checks.findings import verdict
from rsr.sessions.checks.inspection import inspect_session
from rsr.sessions.checks.rules import find_jumps, find_spikes, find_still
from rsr.sessions.checks.signals import judge_signals

STEP_S = 0.02
TORQUE = Channel("torque", ("one",), "N m", "joint")
PLACE = Channel("place", ("x", "y", "z"), "m", "world", clock="camera")
TURN = Channel("turn", ("qw", "qx", "qy", "qz"), "1", "world", clock="camera")
COMMAND = Channel("command", ("one",), "N m", "joint", stamp="held_until_next")


@pytest.fixture(scope="module")
def session():
    rng = np.random.default_rng(0)
    return Session(
        Card("made", "none", "stand_in", simulated=True, control_dt_s=STEP_S),
        (TORQUE, PLACE, TURN, COMMAND),
        tuple(_episode(index, rng) for index in range(4)),
    )


def _episode(index, rng):
    time_s = np.arange(300) * STEP_S
    phase = rng.uniform(0, 6, 3)
    wave = np.sin(2 * np.pi * 0.7 * time_s[:, None] + phase)
    half = wave[:, :1] / 2
    values = {
        "torque": wave[:, :1] + rng.normal(0, 5e-3, (300, 1)),
        "place": 0.2 * wave + rng.normal(0, 5e-4, (300, 3)),
        "turn": np.concatenate([np.cos(half), np.sin(half), 0 * half, 0 * half], axis=1),
        "command": wave[:, :1],
    }
    return Episode(index, time_s, values)


def _with(session, episode, name, change):
    values = session.episodes[episode][name].copy()
    change(values)
    return with_values(session, episode, **{name: values})


def test_a_sound_recording_is_quiet(session):
    assert list(judge_signals(session)) == []


def test_real_recordings_have_neither_spikes_nor_jumps():
    for recorded in (tosses(), pendulum_runs()):
        for channel in recorded.channels:
            assert find_jumps(recorded.episodes, channel).places == ()
            assert find_spikes(recorded.episodes, channel).places == ()


def test_spikes_are_found(session):
    def spike(values):
        values[120] += 3.0

    assert find_spikes(_with(session, 2, "torque", spike).episodes, TORQUE).places == ((2, 120),)
    (finding,) = judge_signals(_with(session, 2, "torque", spike))
    assert (finding.severity, finding.got) == ("care", "1 spike (episode 2 row 120)")


def test_tag_jumps_are_found(session):
    def jump(values):
        values[150:] += 0.5

    assert find_jumps(_with(session, 1, "place", jump).episodes, PLACE).places == ((1, 150),)

    def flip(values):
        values[200:] = values[200:][:, [2, 3, 0, 1]]

    assert find_jumps(_with(session, 3, "turn", flip).episodes, TURN).places == ((3, 200),)


def test_the_sign_of_a_quaternion_is_no_jump(session):
    def negate(values):
        values[100:200] *= -1

    assert list(judge_signals(_with(session, 0, "turn", negate))) == []


def test_saturation_is_found(session):
    def cut(values):
        np.clip(values, -0.8, 0.8, out=values)

    cut_off = session
    for episode in range(4):
        cut_off = _with(cut_off, episode, "torque", cut)
    (finding,) = judge_signals(cut_off)
    assert finding.severity == "care"
    assert "one at one end of its range in" in finding.got
    for episode in range(4):
        cut_off = _with(cut_off, episode, "command", cut)
    assert [each.severity for each in judge_signals(cut_off)] == ["care", "note"]


def test_a_slow_source_is_found(session):
    def every_third_again(values):
        values[2::3] = values[1:-1:3]

    slow = session
    for episode in range(4):
        slow = _with(slow, episode, "place", every_third_again)
    (finding,) = judge_signals(slow)
    assert (finding.severity, finding.topic) == ("care", "clock")
    assert "The source is slower" in finding.next_step.replace("Either the source", "The source")


def test_copies_under_another_name_are_found(session):
    own = fingerprints(session)
    copy = replace(session, card=replace(session.card, session="copy", notes="new words"))
    (finding,) = judge_duplicates(fingerprints(copy), own)
    assert (finding.severity, finding.got) == ("reject", "4 of 4 episodes that made holds as well")


def test_rounded_and_partial_copies_are_found(session):
    rounded = tuple(
        replace(each, index=0, values={name: values.astype(np.float32) for name, values in each.values.items()})
        for each in session.episodes[2:3]
    )
    other = make_session()
    mixed = Session(
        session.card, session.channels, (*rounded, replace(session.episodes[0], time_s=np.arange(300) * 1.0))
    )
    found = list(judge_duplicates(fingerprints(mixed), fingerprints(session)))
    assert len(found) == 1
    assert list(judge_duplicates(fingerprints(other), fingerprints(session))) == []


def test_an_episode_that_is_in_a_session_twice_is_found(session):
    twice = replace(session, episodes=(*session.episodes, replace(session.episodes[1], index=4)))
    (finding,) = judge_duplicates(fingerprints(twice), [])
    assert finding.got == "1 pair of equal episodes (4 and 1)"
    assert finding.severity == "care"


def test_real_tosses_seen_under_another_yaw_are_found():
    session = tosses()
    throws = [each.tags["physical_toss"] for each in session.episodes]
    repeats = sum(throws.count(throw) * (throws.count(throw) - 1) // 2 for throw in set(throws))
    (note,) = judge_duplicates(fingerprints(session), [])
    assert (note.severity, note.got) == ("note", f"{repeats} pairs of equal episodes, tagged as such")
    untold = replace(session, episodes=tuple(replace(each, tags={}) for each in session.episodes))
    (care,) = judge_duplicates(fingerprints(untold), [])
    assert care.severity == "care"
    assert care.got.startswith(f"{repeats} pairs of equal episodes (")


def test_equal_heights_alone_are_no_copy(session):
    place = session.episodes[1]["place"] * [0.9, 0.9, 1.0]
    moved = replace(session.episodes[1], index=2, values={**session.episodes[1].values, "place": place})
    twice = replace(session, episodes=(*session.episodes[:2], moved))
    assert list(judge_duplicates(fingerprints(twice), [])) == []


def test_repeated_trials_are_not_copies(session):
    rng = np.random.default_rng(5)
    again = tuple(
        replace(each, values={name: values + rng.normal(0, 2e-3, values.shape) for name, values in each.values.items()})
        for each in session.episodes
    )
    assert list(judge_duplicates(fingerprints(replace(session, episodes=again)), fingerprints(session))) == []


def test_an_inspection_says_it_all(session):
    inspection = inspect_session(session)
    assert (inspection.verdict, inspection.findings) == ("use", ())
    assert [row.channel.name for row in inspection.channels] == ["torque", "place", "turn", "command"]
    assert all(row.moving == 1.0 for row in inspection.channels)
    assert inspection.frames is not None
    assert inspection.frames.rate_hz == pytest.approx(50.0)


def test_an_inspection_stops_where_arrays_do_not_fit():
    broken = with_values(make_session(), 1, action=np.zeros((3, 6)))
    inspection = inspect_session(broken, SAMPLED)
    assert (inspection.verdict, inspection.channels) == ("reject", ())
    assert "episode 1: got values of shape (3, 6)" in str(inspection.findings[0])


def test_an_inspection_of_holes_rejects_without_crashing():
    holes = with_values(make_session(), 0, joint_position=np.full((21, 6), np.nan))
    inspection = inspect_session(holes, SAMPLED)
    assert inspection.verdict == "reject"
    assert inspection.channels[0].lowest != ()
    everywhere = replace(make_session(), channels=SAMPLED[:1])
    nothing = tuple(replace(each, values={"joint_position": np.full((21, 6), np.nan)}) for each in everywhere.episodes)
    assert inspect_session(replace(everywhere, episodes=nothing)).channels[0].lowest == ()


def test_verdicts_follow_the_worst_finding(session):
    (care,) = judge_signals(_with(session, 2, "torque", lambda values: values.__setitem__(120, 9.0)))
    assert verdict([]) == "use"
    assert verdict([replace(care, severity="note")]) == "use"
    assert verdict([replace(care, severity="note"), care]) == "use with care"
    assert verdict([care, replace(care, severity="reject")]) == "reject"


NOISE = {"torque": 5e-3, "place": 5e-4, "turn": 5e-3}


def _resting(session, index):
    """The session with an episode of noise alone, under one command."""
    rng, episode = np.random.default_rng(7), session.episodes[index]
    turned = 2.5e-3 * rng.normal(size=(300, 3))
    values = {
        "torque": 0.3 + rng.normal(0, NOISE["torque"], (300, 1)),
        "place": rng.normal(0, NOISE["place"], (300, 3)),
        # Trackers give either sign of a quaternion.
        "turn": np.column_stack([np.ones(300), turned]) * np.where(np.arange(300) % 2, 1, -1)[:, None],
        "command": np.full((300, 1), 0.4),
    }
    values["turn"] /= np.linalg.norm(values["turn"], axis=1, keepdims=True)
    episodes = list(session.episodes)
    episodes[index] = replace(episode, values=values)
    return replace(session, episodes=tuple(episodes))


def test_an_episode_in_which_nothing_moves_is_named_and_not_rejected(session):
    inspection = inspect_session(_resting(session, 2), noise=NOISE)
    (said,) = [finding for finding in inspection.findings if finding.topic == "excitation"]
    assert (said.severity, said.where) == ("note", "session 'made', episode 2")
    assert said.got == "nothing observed that moves by more than its noise, and no command that changes"
    assert inspection.verdict == "use"


@pytest.mark.parametrize(("channel", "change"), [("command", 1e-9), ("place", 5e-3), ("turn", 0.05)])
def test_an_episode_in_which_one_thing_moves_is_not_still(session, channel, change):
    moved = _with(_resting(session, 2), 2, channel, lambda values: values[150:, -1].__iadd__(change))
    assert find_still(moved.episodes, moved.channels, NOISE) == ()


def test_signs_of_four_joints_are_not_those_of_a_quaternion(session):
    joints = Channel("joints", ("a", "b", "c", "d"), "rad", "joint")
    steps = np.where(np.arange(300) % 2, 1.0, -1.0)[:, None] * np.ones(4)
    swapping = Episode(0, np.arange(300) * STEP_S, {"joints": steps})
    assert find_still([swapping], [joints], {"joints": 0.01}) == ()
