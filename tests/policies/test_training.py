from dataclasses import replace

import numpy as np
import pytest
import torch
from tiny_training import ROLLOUTS, SETTINGS, still_pays, train_tiny

from rsr.errors import PolicyError
from rsr.files import read_json, sha256
from rsr.policies import Policy, tool_plane
from rsr.policies.training import _learner, _policy, load_state
from rsr.policies.vec_env import PushCubeVecEnv
from rsr.scenarios.push_cube import task
from tests.push_samples import push_cube


@pytest.fixture(scope="module")
def trained():
    return train_tiny()


def observations(count: int = 200) -> np.ndarray:
    rng = np.random.default_rng(0)
    starts = task.sample_starts(rng, count)
    seen = task.observation(starts.qpos[:, 7:], starts.qpos[:, :3], starts.target)
    return seen + rng.normal(0, 0.05, seen.shape).astype(np.float32)


def test_trained_twice_is_the_same_bytes(trained, tmp_path):
    trained.save(tmp_path / "first")
    train_tiny().save(tmp_path / "second")
    assert sha256(tmp_path / "first") == sha256(tmp_path / "second")
    names = {path.name for path in (tmp_path / "first").iterdir()}
    assert names == {"policy.npz", "policy.json", "training.npz", "curve.json"}


def test_another_seed_is_another_policy(trained):
    other = train_tiny(seed=4)
    assert not np.array_equal(other.policy.layers[0][0], trained.policy.layers[0][0])


def test_curve_has_a_row_a_rollout(trained, tmp_path):
    trained.save(tmp_path)
    curve = read_json(tmp_path / "curve.json")
    assert [row["steps"] for row in curve][-1] == SETTINGS.train_steps
    assert len(curve) <= ROLLOUTS
    assert all(set(row) == {"steps", "mean_return", "success"} for row in curve)
    assert all(row["mean_return"] < 0 and 0 <= row["success"] <= 1 for row in curve)


def test_numpy_policy_is_sb3s_deterministic_prediction(trained):
    """Through the same analytic head, to 1e-5 of a displacement."""
    with_envs = PushCubeVecEnv(push_cube(), push_cube().space.nominal, 4)
    learner = _learner(with_envs, SETTINGS, seed=0)
    # A few seconds of training leave actions near zero: let some of them reach the box's walls.
    learner.take_over({**trained.state, "net.action_net.weight": 50 * trained.state["net.action_net.weight"]})
    policy, seen = _policy(push_cube(), learner, {}), observations()
    velocity, _ = learner.model.predict(learner.normaliser.normalize_obs(seen), deterministic=True)
    with_envs.close()
    assert 0.01 < (np.abs(velocity) == 1).mean() < 0.99
    np.testing.assert_allclose(policy.velocity(seen), velocity, atol=1e-5)
    np.testing.assert_allclose(policy.act(seen), tool_plane.displacements(seen, velocity), atol=1e-5)


def test_training_goes_on_from_the_weights_and_normalisers_it_is_given(trained):
    """No step of training: the weights are the earlier ones, and the statistics have seen one reset more."""
    further = train_tiny(replace(SETTINGS, train_steps=0), state=trained.state, seed=8)
    for name, array in trained.state.items():
        if name.startswith(("net.", "return.")):
            np.testing.assert_array_equal(further.state[name], array, err_msg=name)
    seen = trained.state["observation.count"]
    assert further.state["observation.count"] == seen + SETTINGS.copies
    spread = np.sqrt(trained.state["observation.variance"])
    assert np.abs((further.state["observation.mean"] - trained.state["observation.mean"]) / spread).max() < 0.1


def test_training_on_explores_anew(trained):
    """A policy whose exploration has died down gets it back; the rest of the weights stays."""
    quiet = {**trained.state, "net.log_std": np.full_like(trained.state["net.log_std"], -4.0)}
    further = train_tiny(replace(SETTINGS, train_steps=0), state=quiet)
    np.testing.assert_allclose(further.state["net.log_std"], np.log(SETTINGS.continued_std), rtol=1e-6)


def test_training_on_differs_from_beginning_anew(trained, tmp_path):
    trained.save(tmp_path)
    further = train_tiny(seed=5, state=load_state(tmp_path))
    anew = train_tiny(seed=5)
    start = trained.state["net.action_net.weight"]
    moved = [np.abs(made.state["net.action_net.weight"] - start).max() for made in (further, anew)]
    assert 0 < moved[0] < moved[1]


def test_a_bonus_changes_what_is_learnt_and_what_is_returned(trained):
    paid = train_tiny(bonus=still_pays)
    assert not np.array_equal(paid.policy.layers[0][0], trained.policy.layers[0][0])
    # At most 10 a step and displacement is taken off; exploring moves all the time.
    assert paid.curve[-1]["mean_return"] < trained.curve[-1]["mean_return"] - 50


def test_training_leaves_the_machine_one_thread(trained):
    assert torch.get_num_threads() == 1


def test_load_state_of_a_damaged_folder(trained, tmp_path):
    with pytest.raises(PolicyError, match="got FileNotFoundError"):
        load_state(tmp_path)
    trained.save(tmp_path)
    whole = (tmp_path / "training.npz").read_bytes()
    for size in (0, 50, len(whole) - 30):
        (tmp_path / "training.npz").write_bytes(whole[:size])
        with pytest.raises(PolicyError, match="Restore the folder with `dvc checkout`"):
            load_state(tmp_path)


def test_stored_policy_acts_as_the_trained_one(trained, tmp_path):
    trained.save(tmp_path)
    loaded = Policy.load(tmp_path)
    np.testing.assert_array_equal(loaded.act(observations()), trained.policy.act(observations()))
    assert loaded.card["settings"]["train_steps"] == SETTINGS.train_steps
