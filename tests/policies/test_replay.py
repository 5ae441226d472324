"""SAC's transitions outlive a training: stored whole, paid anew, never strung together across two trainings."""

from dataclasses import replace

import numpy as np
import pytest
from tiny_training import COPIES, SETTINGS, still_pays, train_tiny

from rsr.common.errors import PolicyError
from rsr.environments.vector import TaskVecEnv
from rsr.policies.snapshots import under
from rsr.policies.training import make_learner
from rsr.scenarios.built_in.push_cube import task
from tests.push_samples import push_cube

SAC = SETTINGS["sac"]
PAID_FOR = ("observations", "actions", "features", "next_features")
UNFILLED = replace(SAC, train_steps=5 * 64, buffer=1000)


@pytest.fixture(scope="module")
def trained():
    return train_tiny(SAC)


def learner_with(bonus=None, settings=SAC):
    envs = TaskVecEnv(push_cube(), push_cube().space.nominal, COPIES, bonus=bonus)
    return envs, make_learner(envs, settings, seed=0)


def experience(state):
    return under("experience", state)


def test_the_buffer_is_bounded_and_the_newest_are_kept(trained):
    kept = experience(trained.state)
    rows = SAC.buffer // COPIES
    assert kept["observations"].shape == (rows, COPIES, 37)
    assert kept["position"] == SAC.train_steps // COPIES - rows, "the ring began again at its start"


def test_what_is_not_filled_is_not_stored():
    kept = experience(train_tiny(UNFILLED).state)
    assert kept["observations"].shape[0] == kept["position"] == UNFILLED.train_steps // COPIES
    assert np.abs(kept["observations"]).max(axis=-1).min() > 0


def test_no_pickle_and_368_bytes_a_transition(trained):
    kept = experience(trained.state)
    assert all(array.dtype.kind in "fi" for array in kept.values())
    assert sum(array.nbytes for array in kept.values()) - kept["position"].nbytes == 368 * SAC.buffer


def test_the_tasks_part_of_a_reward_is_kept_apart(trained):
    """Without a bonus both are the same; with one, their difference is what it pays for the transition."""
    np.testing.assert_array_equal(experience(trained.state)["rewards"], experience(trained.state)["task_rewards"])
    paid = experience(train_tiny(SAC, bonus=still_pays).state)
    envs, learner = learner_with(still_pays)
    envs.close()
    flat = [paid[name].reshape(SAC.buffer, -1) for name in PAID_FOR]
    expected = learner.envs.bonus(*flat).reshape(-1, COPIES)
    assert np.abs(expected).max() > 1
    np.testing.assert_allclose(paid["rewards"] - paid["task_rewards"], expected, atol=1e-4)


def test_a_training_that_goes_on_pays_old_transitions_by_its_own_bonus(trained):
    further = train_tiny(replace(SAC, train_steps=0), state=trained.state, bonus=still_pays)
    before, after = experience(trained.state), experience(further.state)
    envs, learner = learner_with(still_pays)
    envs.close()
    for row in (0, 17, 149):
        bonus = learner.envs.bonus(*(before[name][row] for name in PAID_FOR))
        np.testing.assert_allclose(after["rewards"][row], before["task_rewards"][row] + bonus, rtol=1e-6)
    back = experience(train_tiny(replace(SAC, train_steps=0), state=further.state).state)
    np.testing.assert_array_equal(back["rewards"], before["task_rewards"])  # the bonus is gone without a trace


def test_the_true_state_is_kept_beside_what_the_sensors_saw(trained):
    kept = experience(trained.state)
    for seen, true in (("observations", "features"), ("next_observations", "next_features")):
        block, target = kept[true][..., 2:4], kept[seen][..., 9:11]  # the target is not measured
        noise = kept[seen][..., 12:14] - block
        assert 2e-4 < noise.std() < 5e-3, "the block's position"
        off = np.linalg.norm(block - target, axis=-1) / task.SUCCESS_M
        np.testing.assert_allclose(kept[true][..., 4], off, atol=1e-4)


def test_a_buffer_stored_without_the_true_state_is_left_aside_and_the_rest_goes_on(trained):
    older = {name: array for name, array in trained.state.items() if "features" not in name}
    further = train_tiny(replace(SAC, train_steps=0), state=older)
    assert experience(further.state)["position"] == 0
    wall = "net.actor.mu.weight"
    np.testing.assert_array_equal(further.state[wall], trained.state[wall])


def test_returns_do_not_reach_into_another_training():
    """Sampling the last row of the earlier training stops there, though rows of the next one follow it in the ring."""
    first = train_tiny(UNFILLED)
    last = int(experience(first.state)["position"]) - 1
    assert not experience(first.state)["timeouts"][last].all(), "the training ended in the middle of episodes"
    further = train_tiny(UNFILLED, state=first.state)
    kept = experience(further.state)
    np.testing.assert_array_equal(kept["observations"][: last + 1], experience(first.state)["observations"])
    assert kept["timeouts"][last].all()
    envs, learner = learner_with(settings=UNFILLED)
    learner.take_over(further.state)
    batch = learner.model.replay_buffer._get_samples(np.array([last]))
    envs.close()
    assert float(batch.discounts) == pytest.approx(UNFILLED.gamma), "one reward, though three are added up elsewhere"
    assert float(batch.dones) == 0, "cut, not over: the critic's estimate takes its place"


def test_training_on_takes_no_random_actions():
    """Less than the warm-up, so that a training from scratch learns nothing, and one that goes on does."""
    short = replace(SAC, train_steps=64, warm_up_steps=10_000)
    scratch = train_tiny(short)
    assert not any(name.startswith("optimiser.actor") for name in scratch.state)
    further = train_tiny(short, state=scratch.state)
    assert any(name.startswith("optimiser.actor") for name in further.state)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"copies": 2}, r"got a replay buffer of 150 x 4 x 37 numbers; expected at most 300 x 2 x 37"),
        ({"buffer": 400}, r"got a replay buffer of 150 x 4 x 37 numbers; expected at most 100 x 4 x 37"),
    ],
    ids=["copies", "smaller"],
)
def test_a_buffer_that_does_not_fit(trained, changed, message):
    with pytest.raises(PolicyError, match=message):
        train_tiny(replace(SAC, train_steps=0, **changed), state=trained.state)
