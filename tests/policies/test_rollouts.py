from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from rsr.common.progress import ignore
from rsr.common.randomness import generator
from rsr.policies.rollouts import recorded, run, starts_of
from rsr.realities import CollectionPlan, StandIn
from rsr.scenarios import load_scenario, task_of
from rsr.scenarios.built_in.push_cube import task
from rsr.scenarios.built_in.pushing import kinematics
from rsr.sessions import Episode, Session
from tests.push_samples import ScriptedPusher, channels_of, push_cube


@pytest.fixture(scope="module")
def session():
    return StandIn(push_cube(), 1).collect(ScriptedPusher(), CollectionPlan("session-001", 6, seed=2), ignore)


def test_a_run_begins_where_it_is_told_and_has_a_row_more_than_steps():
    scenario, starts = push_cube(), task.sample_starts(np.random.default_rng(0), 5)
    seen = run(scenario, scenario.space.nominal, ScriptedPusher(), starts, np.random.default_rng(1))
    block, tip = seen.channels["block_position"], seen.channels["tip_position"]
    assert block.shape == tip.shape == (5, scenario.episode_steps + 1, 3)
    np.testing.assert_array_equal(block[:, 0], starts.qpos[:, :3])
    np.testing.assert_allclose(tip[:, 0], kinematics.fingertip(starts.qpos[:, 7:]))
    target = starts.goal["target_position"]
    np.testing.assert_array_equal(seen.channels["target_position"], np.tile(target[:, None], (1, block.shape[1], 1)))
    np.testing.assert_array_equal(seen.success, task.succeeded(channels_of(None, block[:, -1], target)))
    assert (np.linalg.norm(block[:, -1] - block[:, 0], axis=1) > 0.02).all()


def test_equal_seeds_of_the_noise_give_equal_runs():
    scenario, starts = push_cube(), task.sample_starts(np.random.default_rng(0), 3)
    first, again, other = (
        run(scenario, scenario.space.nominal, ScriptedPusher(), starts, np.random.default_rng(seed))
        for seed in (1, 1, 2)
    )
    first, again, other = (each.channels["block_position"] for each in (first, again, other))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_starts_of_a_recording_are_its_first_rows_within_the_noise(session):
    starts = starts_of(push_cube(), session)
    truth = task.sample_starts(generator(2, "starts"), 6)
    np.testing.assert_allclose(starts.qpos[:, :3], truth.qpos[:, :3], atol=0.003)
    np.testing.assert_allclose(starts.qpos[:, 7:], truth.qpos[:, 7:], atol=0.01)
    np.testing.assert_allclose(starts.goal["target_position"], truth.goal["target_position"])


def test_a_recording_in_the_same_form(session):
    real = recorded(push_cube(), session)
    block = real.channels["block_position"]
    assert block.shape == (6, push_cube().episode_steps + 1, 3)
    np.testing.assert_array_equal(block[2], session.episodes[2]["block_position"])
    target = real.channels["target_position"][:, 0]
    np.testing.assert_array_equal(real.success, task.succeeded(channels_of(None, block[:, -1], target)))


def shortened(session: Session, rows: Sequence[int]) -> Session:
    """Cut the episodes after so many rows each, as ingest does at a gap."""
    cut = (
        Episode(each.index, each.time_s[:count], {name: values[:count] for name, values in each.values.items()})
        for each, count in zip(session.episodes, rows, strict=True)
    )
    return replace(session, episodes=tuple(cut))


def test_episodes_of_unequal_lengths_hold_their_last_row(session):
    rows = [41, 101, 12, 101, 30, 5]
    real, whole = recorded(push_cube(), shortened(session, rows)), recorded(push_cube(), session)
    assert real.rows.tolist() == rows
    for index, count in enumerate(rows):
        for name in ("block_position", "tip_position"):
            mine, all_of_it = real.channels[name][index], whole.channels[name][index]
            np.testing.assert_array_equal(mine[:count], all_of_it[:count])
            np.testing.assert_array_equal(mine[count:], np.tile(all_of_it[count - 1], (101 - count, 1)))
        part = whole.task.reward({name: values[index, :count] for name, values in whole.channels.items()})
        assert real.mean_reward()[index] == pytest.approx(part.mean())
    last = whole.channels["block_position"][np.arange(6), np.array(rows) - 1]
    target = whole.channels["target_position"][:, 0]
    np.testing.assert_array_equal(real.success, task.succeeded(channels_of(None, last, target)))


def test_simulated_episodes_end_where_the_recorded_ones_end(session):
    rows = np.array([41, 101, 12, 101, 30, 5])
    whole, real = recorded(push_cube(), session), recorded(push_cube(), shortened(session, rows.tolist()))
    ended = whole.ended_after(rows)
    assert ended.channels.keys() == real.channels.keys()
    for name in real.channels:
        np.testing.assert_array_equal(ended.channels[name], real.channels[name])
    for name in ("success", "rows"):
        np.testing.assert_array_equal(getattr(ended, name), getattr(real, name))
    assert whole.ended_after(whole.rows + 1) is whole


class Thrust:
    """The same share of the command's range for every motor."""

    def __init__(self, share: float) -> None:
        self.share, self.task = share, task_of(load_scenario("quadrotor"))

    def act(self, observation: np.ndarray) -> np.ndarray:
        return np.full((len(observation), 4), self.share)


def test_the_first_recorded_command_was_not_in_force_before():
    """A quadrotor that is recorded under full thrust had hovered until then."""
    scenario = load_scenario("quadrotor")
    session = StandIn(scenario, 1).collect(Thrust(1.0), CollectionPlan("session-001", 2, seed=2), ignore)
    assert all((episode[str(scenario.command)][0] > 4.0).all() for episode in session.episodes)
    starts = starts_of(scenario, session)
    height = run(scenario, scenario.space.nominal, Thrust(0.0), starts, np.random.default_rng(1), 5).channels[
        "position"
    ]
    np.testing.assert_allclose(height[:, 5, 2], height[:, 0, 2], atol=0.01)
