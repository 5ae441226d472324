"""Every built-in task keeps its contract: starts, observations, rewards, limits, and a session of its stand-in."""

from __future__ import annotations

import numpy as np
import pytest
import yaml

from rsr.common.progress import ignore
from rsr.environments import World
from rsr.environments.measuring import at_rest
from rsr.realities import CollectionPlan, StandIn
from rsr.scenarios import Scenario, built_in_tasks, load_scenario, task_of
from rsr.scenarios.motion.commands import command_range
from rsr.sessions import check_session

COPIES = 8


@pytest.fixture(params=built_in_tasks())
def scenario(request) -> Scenario:
    return load_scenario(request.param)


class Wild:
    """Asks for anything."""

    def __init__(self, size: int) -> None:
        self._rng, self._size = np.random.default_rng(0), size

    def act(self, observation: np.ndarray) -> np.ndarray:
        return self._rng.uniform(-1, 1, (len(observation), self._size))


def test_the_families_that_are_promised_are_there():
    assert {"push_cube", "push_t", "reach", "swing_up", "quadrotor"} <= set(built_in_tasks())


def test_starts_lie_inside_the_joints_ranges_and_are_drawn_by_the_seed_alone(scenario):
    model, task = scenario.base_model, task_of(scenario)
    starts = task.reset(np.random.default_rng(1), 200)
    for joint in np.flatnonzero(model.jnt_limited):
        values = starts.qpos[:, model.jnt_qposadr[joint]]
        assert (values >= model.jnt_range[joint, 0]).all()
        assert (values <= model.jnt_range[joint, 1]).all()
    np.testing.assert_array_equal(starts.qpos, task.reset(np.random.default_rng(1), 200).qpos)
    widths = {channel.name: channel.width for channel in scenario.channels}
    assert {name: values.shape for name, values in starts.goal.items()} == {n: (200, widths[n]) for n in task.goal}


def test_an_episode_under_wild_actions_stays_finite_and_inside_the_command_s_range(scenario):
    task, lower_upper = task_of(scenario), command_range(scenario.base_model)
    wild = Wild(task.action.size)
    with World.simulated(scenario, scenario.space.nominal, COPIES) as world:
        world.place(np.arange(COPIES), task.reset(np.random.default_rng(2), COPIES))
        for _ in range(60):
            world.step(wild.act(np.zeros((COPIES, 1))))
            assert world.observation().shape == (COPIES, task.observation_size)
            assert np.isfinite(world.observation()).all()
            assert np.isfinite(world.reward()).all()
            assert (world.command >= lower_upper[0] - 1e-9).all()
            assert (world.command <= lower_upper[1] + 1e-9).all()


def test_figures_and_states_are_numbers_an_episode(scenario):
    task = task_of(scenario)
    channels = at_rest(scenario, task, task.reset(np.random.default_rng(3), COPIES))
    assert task.succeeded(channels).shape == (COPIES,)
    assert not task.succeeded(channels).all(), "some start has something to do"
    assert {figure.compute(channels).shape for figure in task.figures} == {(COPIES,)}
    assert task.states is None or task.states.compute(channels).shape == (COPIES, len(task.states.names))
    known = {channel.name for channel in scenario.channels}
    assert {figure.channel for figure in task.figures} <= known


def test_the_stand_in_records_a_session_that_passes_the_checks(scenario):
    task = task_of(scenario)
    session = StandIn(scenario, 1).collect(Wild(task.action.size), CollectionPlan("session-001", 2, seed=4), ignore)
    check_session(session, scenario.channels)
    assert len(session.episodes) == 2
    assert session.card.simulated


def test_what_a_stand_in_hides_is_off_the_nominal_model(scenario):
    ranges = yaml.safe_load(scenario.file.read_text())["stand_in"]["ranges"]
    assert set(ranges) <= set(scenario.space.names)
    for name, (lower, upper) in ranges.items():
        parameter = scenario.space[name]
        assert parameter.lower <= lower < upper <= parameter.upper


def test_the_tool_of_reach_is_where_mujoco_says():
    import mujoco

    scenario = load_scenario("reach")
    task, model = task_of(scenario), scenario.base_model
    starts, data = task.reset(np.random.default_rng(5), COPIES), mujoco.MjData(scenario.base_model)
    found = at_rest(scenario, task, starts)["tool_position"]
    for row in range(COPIES):
        data.qpos[:] = starts.qpos[row]
        mujoco.mj_kinematics(model, data)
        np.testing.assert_allclose(found[row], data.site("tool").xpos, atol=1e-12)
