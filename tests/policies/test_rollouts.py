import numpy as np
import pytest

from rsr.policies.rollouts import recorded, run, starts_of
from rsr.progress import ignore
from rsr.randomness import generator
from rsr.realities import CollectionPlan, Twin
from rsr.scenarios.push_cube import task
from rsr.scenarios.pushing import kinematics
from tests.push_samples import ScriptedPusher, push_cube


@pytest.fixture(scope="module")
def session():
    return Twin(push_cube(), 1).collect(ScriptedPusher(), CollectionPlan("session-001", 6, seed=2), ignore)


def test_a_run_begins_where_it_is_told_and_has_a_row_more_than_steps():
    scenario, starts = push_cube(), task.sample_starts(np.random.default_rng(0), 5)
    seen = run(scenario, scenario.space.nominal, ScriptedPusher(), starts, np.random.default_rng(1))
    assert seen.block.shape == seen.tip.shape == (5, scenario.episode_steps + 1, 3)
    np.testing.assert_array_equal(seen.block[:, 0], starts.qpos[:, :3])
    np.testing.assert_allclose(seen.tip[:, 0], kinematics.fingertip(starts.qpos[:, 7:]))
    np.testing.assert_array_equal(seen.target, starts.target)
    np.testing.assert_array_equal(seen.success, task.succeeded(seen.block[:, -1], starts.target))
    assert (np.linalg.norm(seen.block[:, -1] - seen.block[:, 0], axis=1) > 0.02).all()


def test_equal_seeds_of_the_noise_give_equal_runs():
    scenario, starts = push_cube(), task.sample_starts(np.random.default_rng(0), 3)
    first, again, other = (
        run(scenario, scenario.space.nominal, ScriptedPusher(), starts, np.random.default_rng(seed))
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first.block, again.block)
    assert not np.array_equal(first.block, other.block)


def test_starts_of_a_recording_are_its_first_rows_within_the_noise(session):
    starts = starts_of(push_cube(), session)
    truth = task.sample_starts(generator(2, "starts"), 6)
    np.testing.assert_allclose(starts.qpos[:, :3], truth.qpos[:, :3], atol=0.003)
    np.testing.assert_allclose(starts.qpos[:, 7:], truth.qpos[:, 7:], atol=0.01)
    np.testing.assert_allclose(starts.target, truth.target)


def test_a_recording_in_the_same_form(session):
    real = recorded(session)
    assert real.block.shape == (6, push_cube().episode_steps + 1, 3)
    np.testing.assert_array_equal(real.block[2], session.episodes[2]["block_position"])
    np.testing.assert_array_equal(real.success, task.succeeded(real.block[:, -1], real.target))
