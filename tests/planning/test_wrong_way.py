"""A mirrored axis, a flipped sign, an inverse rotation: the scene predicts the recording better with it corrected."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "sessions"))
sys.path.insert(0, str(Path(__file__).parents[1] / "simulators"))
from hinged_bars import elbow, throws
from test_traps_of_poses import tosses

from rsr.common import ignore
from rsr.planning import judge_directions
from rsr.realities import CollectionPlan, StandIn
from rsr.reports.session import examine_session
from rsr.scenarios import load_scenario
from rsr.sessions import Session, write_session
from tests.push_samples import ScriptedPusher
from tests.shared_data import pendulum_runs, tosses as cube_tosses

ELBOW = str(Path(__file__).parents[2] / "examples" / "elbow" / "scenario.yaml")


def changed(session: Session, channel: str, change) -> Session:
    wrong = [replace(each, values={**each.values, channel: change(each[channel])}) for each in session.episodes]
    return replace(session, episodes=tuple(wrong))


@pytest.mark.parametrize(
    ("channel", "change", "words", "remedy"),
    [
        ("link1_position", lambda place: place * [1, -1, 1], "'y' has the other sign", "`sign: [1, -1, 1]`"),
        ("elbow_angle", lambda angle: angle + np.pi / 2, "'joint' is -90 degrees off", "`offset: [-1.5708]`"),
        ("link1_orientation", lambda q: q * [1, -1, -1, -1], "its rotations are inverse", "invert the quaternions"),
    ],
    ids=["mirrored axis", "zero off", "inverse rotation"],
)
def test_real_tosses_recorded_the_wrong_way_round_are_named_with_the_remedy(channel, change, words, remedy):
    (finding,) = judge_directions(elbow(), changed(tosses(), channel, change))
    assert (finding.severity, finding.topic) == ("care", "physics")
    assert finding.where.endswith(f"channel '{channel}'")
    assert words in finding.got, finding.got
    assert remedy in finding.next_step, finding.next_step


def test_a_command_of_the_other_sign_is_named_too():
    scenario, runs = load_scenario("double_pendulum"), pendulum_runs()
    few = replace(runs, episodes=runs.episodes[:2])
    (finding,) = judge_directions(scenario, changed(few, scenario.command, lambda torque: -torque))
    assert "all columns have the other sign" in finding.got
    assert finding.where.endswith(f"channel '{scenario.command}'")
    assert "`sign: [-1, -1]` in the mapping, of this channel" in finding.next_step


def test_swapped_joints_and_swapped_axes_of_a_sensor_are_named():
    """Of a command, too: its drives then push the joints of each other."""
    scenario, runs = load_scenario("double_pendulum"), pendulum_runs()
    few = replace(runs, episodes=runs.episodes[:2])
    for channel in ("joint_position", scenario.command):
        (finding,) = judge_directions(scenario, changed(few, channel, lambda rows: rows[:, ::-1]))
        assert "are swapped" in finding.got, finding.got
        assert finding.where.endswith(f"channel '{channel}'")
        assert "the other way round in `columns` of the mapping" in finding.next_step
    (finding,) = judge_directions(elbow(), changed(tosses(), "link1_position", lambda place: place[:, [2, 1, 0]]))
    assert "'x' and 'z' are swapped" in finding.got, finding.got


def test_right_recordings_raise_nothing():
    assert list(judge_directions(elbow(), tosses())) == []
    assert list(judge_directions(elbow(), throws())) == []
    some = replace(cube_tosses(), episodes=cube_tosses().episodes[:60])
    assert list(judge_directions(load_scenario("cube_toss"), some)) == []
    runs = pendulum_runs()
    assert list(judge_directions(load_scenario("double_pendulum"), replace(runs, episodes=runs.episodes[:2]))) == []


def test_the_page_of_a_session_says_so_though_the_velocity_is_mirrored_too(tmp_path):
    wrong = throws()
    for channel in ("link1_position", "link1_velocity"):
        wrong = changed(wrong, channel, lambda rows: rows * [1, -1, 1])
    page = examine_session(write_session(tmp_path, wrong), ELBOW)
    assert any("'y' has the other sign" in finding.got for finding in page.findings), page.findings


def test_a_block_that_is_pushed_otherwise_than_nominal_is_not_put_where_nothing_touches_it():
    """Swapped or mirrored it would lie beside the arm, and stay: a better guess than a push that comes too early."""
    scenario = load_scenario("push_cube")
    pushed = StandIn(scenario, 1).collect(ScriptedPusher(), CollectionPlan("pushes", episodes=12, seed=0), ignore)
    assert list(judge_directions(scenario, pushed)) == []
