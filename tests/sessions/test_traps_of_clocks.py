"""Backward differences are half a frame late: each velocity channel that is, is named, and none that is not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hinged_bars import elbow, throws
from test_traps_of_angles import cut_to_a_turn, written

from rsr.common.errors import ConfigError
from rsr.common.rotations import unwrapped
from rsr.scenarios.channels.recorded import joint_ranges, target_of
from rsr.sessions import Episode, Session
from rsr.sessions.checks.inspection import inspect_session
from rsr.sessions.checks.rotation import turning_speed
from rsr.sessions.ingest.session import ingest

VELOCITIES = ("link1_velocity", "link1_angular_velocity", "elbow_velocity")


def backward(episode: Episode) -> Episode:
    """The episode with velocities as differences of two rows, stamped with the later one."""
    step_s = elbow().control_dt_s
    quaternion = episode["link1_orientation"]
    changes = {
        "link1_velocity": np.diff(episode["link1_position"], axis=0) / step_s,
        "link1_angular_velocity": turning_speed(episode.time_s, quaternion, "body"),
        "elbow_velocity": np.diff(unwrapped(episode["elbow_angle"]), axis=0) / step_s,
    }
    changes = {name: np.concatenate([values[:1], values]) for name, values in changes.items()}
    return replace(episode, values={**episode.values, **changes})


def late(session: Session) -> set[str]:
    found = inspect_session(session, elbow().channels, joint_ranges(elbow()))
    return {
        name
        for each in found.findings
        for name in VELOCITIES
        if "half a frame late" in each.got and each.where.endswith(f"and '{name}'")
    }


def test_every_late_velocity_is_named_though_the_angle_wraps():
    session = cut_to_a_turn(throws())
    assert late(replace(session, episodes=tuple(map(backward, session.episodes)))) == set(VELOCITIES)


def test_velocities_on_time_are_not_called_late():
    assert late(throws()) == set()


def test_ingest_asks_about_every_late_velocity_and_takes_it_off(tmp_path):
    source, given = written(tmp_path, replace(throws(), episodes=tuple(map(backward, throws().episodes))))
    for entry in given["channels"].values():
        del entry["delay_s"]
    with pytest.raises(ConfigError) as asked:
        ingest([source], target_of(elbow()), tmp_path / "data", given=given)
    for name in VELOCITIES:
        assert f"'{name}' is stamped" in asked.value.next_step
    delay_s = [float(words.split()[0]) for words in asked.value.next_step.split("delay_s: ")[1:]]
    assert delay_s == pytest.approx([elbow().control_dt_s / 2] * 3, abs=2e-4)


def test_the_old_key_is_refused_with_the_new_one(tmp_path):
    source, given = written(tmp_path, throws())
    given["channels"][VELOCITIES[0]]["late_s"] = 0.0
    with pytest.raises(ConfigError, match=rf"{VELOCITIES[0]}.late_s: got 0.0; expected 'delay_s'. It is called"):
        ingest([source], target_of(elbow()), tmp_path / "data", given=given)
