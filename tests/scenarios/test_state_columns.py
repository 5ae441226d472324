"""What InfoGap compares of a task that does not say it: measured positions, in continuous columns, with their noise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from own_arm import write_own_arm

from rsr.common.rotations import from_rotation_vector
from rsr.environments.measuring import at_rest
from rsr.scenarios import load_scenario, task_of
from rsr.scenarios.tasks.state_columns import MOST_COLUMNS, default_states
from rsr.scenarios.tasks.task import NOT_STATED


@pytest.fixture(scope="module")
def arm(tmp_path_factory):
    return load_scenario(write_own_arm(tmp_path_factory.mktemp("own")))


def test_a_task_that_says_nothing_gets_them_when_it_is_loaded(arm):
    states = task_of(arm).states
    assert states.names[0] == "cosine of q.base", "the base turns all around"
    assert len(states.names) == len(states.noise) == 6
    channels = at_rest(arm, task_of(arm), task_of(arm).reset(np.random.default_rng(0), 5))
    assert states.compute(channels).shape == (5, 6)
    np.testing.assert_allclose(states.compute(channels)[:, 0], np.cos(channels["q"][:, 0]))


def test_a_task_that_says_it_keeps_what_it_says():
    assert task_of(load_scenario("push_cube")).states.names == ("tip_x", "tip_y", "block_x", "block_y")


def test_figures_come_first_and_there_are_at_most_twelve():
    scenario = load_scenario("push_t")
    task = replace(task_of(scenario), states=NOT_STATED)
    states = default_states(scenario, task)
    assert states.names[:3] == ("block_position.x", "block_position.y", "block_position.z")
    assert states.names[5] == "joint_position.joint1"
    assert states.noise[:3] == (0.001,) * 3
    free = tuple(replace(each, noise_axis=None) for each in scenario.observed)
    many = default_states(replace(scenario, observed=free), task)
    assert len(many.names) == len(many.noise) == MOST_COLUMNS < 3 + 6 + 6
    channels = at_rest(scenario, task_of(scenario), task_of(scenario).reset(np.random.default_rng(0), 4))
    assert many.compute(channels).shape == (4, MOST_COLUMNS)


def test_columns_of_an_orientation_never_jump():
    """Along a turn by two whole rounds, on which the quaternion changes its sign and its angle its branch."""
    scenario, rng = load_scenario("push_t"), np.random.default_rng(0)
    task = replace(task_of(scenario), figures=task_of(scenario).figures[-1:])
    slanted = rng.normal(size=3)
    for observed, axis in (
        (scenario.observed, np.array([0.0, 0.0, 1.0])),
        (tuple(replace(each, noise_axis=None) for each in scenario.observed), slanted / np.linalg.norm(slanted)),
    ):
        states = default_states(replace(scenario, observed=observed), task)
        angle = np.linspace(0.0, 4 * np.pi, 2001)
        quaternion = from_rotation_vector(np.mod(angle, 2 * np.pi)[:, None] * axis)
        channels = {"block_orientation": quaternion, **{name: np.zeros((2001, 6)) for name in ("joint_position",)}}
        path = states.compute({**channels, "block_position": np.zeros((2001, 3))})
        assert np.abs(np.diff(path, axis=0)).max() < 1.1 * (angle[1] - angle[0])
        np.testing.assert_allclose(path[0], path[-1], atol=1e-9)
