"""Columns of the observation that are for the action head alone: the network is blind to them, the head is not."""

import numpy as np
import pytest

from rsr.environments.vector import TaskVecEnv
from rsr.policies import Policy, export
from rsr.policies.learner import Learner
from rsr.policies.ppo import PPOSettings
from rsr.policies.training import make_learner
from rsr.scenarios import load_scenario

SETTINGS = PPOSettings(train_steps=2048, copies=4, rollout_steps=64, batch_size=64, epochs=2, hidden=(8, 8))


@pytest.fixture(scope="module")
def trained():
    envs = TaskVecEnv(
        load_scenario("push_t"), load_scenario("push_t").space.nominal, SETTINGS.copies, seed=1, threads=1
    )
    learner = make_learner(envs, SETTINGS, seed=1)
    learner.model.learn(2048)
    yield learner, learner.policy(envs.task, {})
    envs.close()


def observations(count: int) -> np.ndarray:
    scenario = load_scenario("push_t")
    envs = TaskVecEnv(scenario, scenario.space.nominal, count, seed=7, threads=1)
    seen = envs.reset()
    envs.close()
    return seen


def predicted(learner: Learner, seen: np.ndarray) -> np.ndarray:
    return learner.model.predict(learner.normaliser.normalize_obs(seen), deterministic=True)[0]


def test_the_network_learns_without_them_and_acts_without_them(trained):
    learner, policy = trained
    seen = observations(64)
    other = seen.copy()
    other[:, : policy.task.unseen] += np.random.default_rng(0).normal(0, 0.3, (64, policy.task.unseen))
    np.testing.assert_array_equal(policy.choose(seen), policy.choose(other))
    np.testing.assert_array_equal(predicted(learner, seen), predicted(learner, other))
    assert np.abs(policy.act(seen) - policy.act(other)).max() > 0.1, "the head looks at them"


def test_the_stored_policy_chooses_what_the_learner_s_network_chooses(trained, tmp_path):
    learner, policy = trained
    seen = observations(64)
    np.testing.assert_allclose(policy.choose(seen), predicted(learner, seen), atol=1e-5)
    policy.save(tmp_path)
    np.testing.assert_array_equal(Policy.load(tmp_path).act(seen), policy.act(seen))


def test_the_exported_network_is_blind_to_them_too(trained, tmp_path):
    """`export_policy` compares 1000 observations of real rollouts with the stored policy, and refuses a difference."""
    _, policy = trained
    policy.save(tmp_path / "policy")
    described = export.export_policy(load_scenario("push_t"), tmp_path / "policy", tmp_path / "onnx")
    assert described.parity["max_error"] < 1e-4
