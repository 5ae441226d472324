"""A wrong zero, sign or geometry shows in the scene: bodies inside the board, or at rest in the air."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "sessions"))
from hinged_bars import elbow, throws

from rsr.scenarios import load_scenario
from rsr.sessions import Episode, Session
from rsr.sessions.checks.findings import Finding
from rsr.simulators.recorded_poses import judge_poses
from tests.shared_data import pendulum_runs, shared_data, tosses as cube_tosses


@cache
def tosses() -> Session:
    """Twenty real tosses of two hinged bars, as published: the angle wraps."""
    table = pq.read_table(shared_data("elbow_tosses.parquet"))
    columns = {name: table[name].to_numpy().astype(float) for name in table.column_names}
    numbers = np.unique(columns["toss_id"])[:20]
    return replace(throws(1), episodes=tuple(_toss(columns, number, i) for i, number in enumerate(numbers)))


def _toss(columns: dict[str, np.ndarray], number: int, index: int) -> Episode:
    rows = columns["toss_id"] == number
    values = {each.name: np.stack([columns[name][rows] for name in each.columns], 1) for each in elbow().channels}
    return Episode(index, columns["time_s"][rows] - columns["time_s"][rows][0], values)


def changed(channel: str, change) -> list[Finding]:
    session = tosses()
    wrong = [replace(each, values={**each.values, channel: change(each[channel])}) for each in session.episodes]
    return list(judge_poses(elbow(), replace(session, episodes=tuple(wrong))))


@pytest.mark.parametrize("turn", [-np.pi / 2, np.pi / 2], ids=["-90 degrees", "90 degrees"])
def test_a_joint_zero_off_by_90_degrees_puts_corners_into_the_board(turn):
    (finding,) = changed("elbow_angle", lambda angle: angle + turn)
    assert (finding.severity, finding.topic) == ("reject", "physics")
    assert finding.got.startswith("link2 inside board by up to 6"), finding.got
    assert "Check the zero, the sign and the unit of each joint" in finding.next_step


def test_a_joint_whose_sign_is_flipped_is_found_though_its_velocity_agrees():
    (finding,) = changed("elbow_angle", lambda angle: -angle)
    assert (finding.severity, finding.got.split(" by ")[0]) == ("reject", "link2 inside board")


def test_a_late_encoder_is_no_wrong_pose():
    """Swinging at 10 rad/s, a bar is drawn centimetres off by 27 ms: four frames of this camera."""

    def late(angle: np.ndarray) -> np.ndarray:
        return angle[np.maximum(np.arange(len(angle)) - 4, 0)]

    (finding,) = changed("elbow_angle", late)
    assert (finding.severity, finding.topic) == ("care", "clock")
    assert "in 0 % if 'elbow_angle' is stamped about 27 ms late" in finding.got, finding.got
    assert "`delay_s: 0.027" in finding.next_step, finding.next_step


def test_the_end_of_a_bar_may_dip_in_by_what_the_stated_noise_of_its_angle_explains():
    rng = np.random.default_rng(0)
    session = throws()
    noisy = [
        replace(each, values={**each.values, "elbow_angle": each["elbow_angle"] + rng.normal(0, 0.3, (len(each), 1))})
        for each in session.episodes
    ]
    session = replace(session, episodes=tuple(noisy))
    assert [finding.severity for finding in judge_poses(elbow(), session)] == ["reject"]
    stated = tuple(
        replace(each, noise=0.3) if each.channel.name == "elbow_angle" else each for each in elbow().observed
    )
    assert list(judge_poses(replace(elbow(), observed=stated), session)) == []


def test_a_table_that_is_lower_than_recorded_leaves_bodies_in_the_air():
    (finding,) = changed("link1_position", lambda place: place + np.array([0.0, 0.0, 0.03]))
    assert finding.severity == "care"
    assert "at rest where nothing holds it" in finding.got
    assert "mm from the nearest body" in finding.got


def test_a_table_that_is_higher_than_recorded_is_penetrated():
    (finding,) = changed("link1_position", lambda place: place - np.array([0.0, 0.0, 0.02]))
    assert finding.got.startswith("link1 inside board by up to 2")


def test_bodies_a_little_inside_each_other_are_named_and_not_refused():
    """Soft contact or play in a gearbox does that."""
    (finding,) = changed("link1_position", lambda place: place - np.array([0.0, 0.0, 0.008]))
    assert (finding.severity, finding.topic) == ("care", "physics")
    assert finding.got.startswith("link2 inside board by up to 13 mm")
    assert "Soft contact, play in a joint or a zero a little off do that" in finding.next_step


def test_right_recordings_raise_nothing():
    assert list(judge_poses(elbow(), tosses())) == []
    assert list(judge_poses(elbow(), throws())) == []
    some = replace(cube_tosses(), episodes=cube_tosses().episodes[:60])
    assert list(judge_poses(load_scenario("cube_toss"), some)) == []
    assert list(judge_poses(load_scenario("double_pendulum"), pendulum_runs())) == []
