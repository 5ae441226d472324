import tempfile
from dataclasses import replace

import numpy as np
import pytest
import torch
from tiny_training import COPIES, ROLLOUTS, SETTINGS, still_pays, train_tiny

from rsr.common.errors import ConfigError, PolicyError
from rsr.common.files import read_json, sha256
from rsr.environments.vector import TaskVecEnv
from rsr.policies import Policy
from rsr.policies.training import (
    PPOSettings,
    SACSettings,
    load_state,
    make_learner,
    settings_from_scratch,
    settings_to_go_on,
)
from rsr.scenarios import load_scenario, task_of
from rsr.scenarios.built_in.push_cube import task
from tests.push_samples import channels_of, push_cube

WALLS = {"ppo": "net.action_net.weight", "sac": "net.actor.mu.weight"}
"""The last layer of each actor."""


@pytest.fixture(scope="module", params=["ppo", "sac"])
def algorithm(request) -> str:
    return request.param


@pytest.fixture(scope="module")
def trained(algorithm):
    return train_tiny(SETTINGS[algorithm])


@pytest.fixture
def settings(algorithm):
    return SETTINGS[algorithm]


def observations(count: int = 200) -> np.ndarray:
    rng = np.random.default_rng(0)
    starts = task.sample_starts(rng, count)
    seen = task.TASK.observe(channels_of(starts.qpos[:, 7:], starts.qpos[:, :3], starts.goal["target_position"]))
    return seen + rng.normal(0, 0.05, seen.shape).astype(np.float32)


def test_trained_twice_is_the_same_bytes(trained, settings, tmp_path):
    trained.save(tmp_path / "first")
    train_tiny(settings).save(tmp_path / "second")
    assert sha256(tmp_path / "first") == sha256(tmp_path / "second")
    names = {path.name for path in (tmp_path / "first").iterdir()}
    assert names == {"policy.npz", "policy.json", "training.npz", "curve.json"}


def test_nothing_is_left_in_the_temporary_folder(settings, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    train_tiny(settings)
    assert list(tmp_path.iterdir()) == []


def test_another_seed_is_another_policy(trained, settings):
    other = train_tiny(settings, seed=4)
    assert not np.array_equal(other.policy.layers[0][0], trained.policy.layers[0][0])


def test_curve_has_a_row_a_rollout_once_there_are_whole_episodes(trained, settings, tmp_path):
    trained.save(tmp_path)
    curve = read_json(tmp_path / "curve.json")
    assert [row["steps"] for row in curve][-1] == settings.train_steps
    assert len(curve) <= ROLLOUTS
    # Copies start in the middle of an episode: none can have run through one before that.
    assert curve[0]["steps"] >= COPIES * push_cube().episode_steps
    assert all(set(row) == {"steps", "mean_return", "success"} for row in curve)
    assert all(np.isfinite(row["mean_return"]) and 0 <= row["success"] <= 1 for row in curve)


def test_the_card_says_how_it_was_trained(trained, algorithm, settings):
    assert trained.policy.card["algorithm"] == algorithm.upper()
    assert trained.policy.card["settings"]["train_steps"] == settings.train_steps


def test_numpy_policy_is_sb3s_deterministic_prediction(trained, algorithm, settings):
    """Through the same head, to 1e-5 of a displacement."""
    with_envs = TaskVecEnv(push_cube(), push_cube().space.nominal, COPIES)
    learner = make_learner(with_envs, settings, seed=0)
    # A few seconds of training leave actions near zero: let some of them reach the box's walls.
    wall = WALLS[algorithm]
    learner.take_over({**trained.state, wall: 50 * trained.state[wall]})
    policy, seen = learner.policy(task_of(push_cube()), {}), observations()
    velocity, _ = learner.model.predict(learner.normaliser.normalize_obs(seen), deterministic=True)
    with_envs.close()
    assert 0.01 < (np.abs(velocity) > 0.999).mean() < 0.99
    np.testing.assert_allclose(policy.choose(seen), velocity, atol=1e-5)
    np.testing.assert_allclose(policy.act(seen), policy.task.act(seen, velocity), atol=1e-5)


def test_training_goes_on_from_all_that_was_learnt(trained, settings):
    """No step of training: everything is the earlier one's, and the statistics have seen one reset more."""
    further = train_tiny(replace(settings, train_steps=0), state=trained.state, seed=8)
    assert further.state.keys() == trained.state.keys()
    for name, array in trained.state.items():
        if name.startswith(("net.", "return.", "optimiser.")):
            np.testing.assert_array_equal(further.state[name], array, err_msg=name)
    seen = trained.state["observation.count"]
    assert further.state["observation.count"] == seen + settings.copies
    spread = np.sqrt(trained.state["observation.variance"])
    assert np.abs((further.state["observation.mean"] - trained.state["observation.mean"]) / spread).max() < 0.1


def test_training_on_differs_from_beginning_anew(trained, algorithm, settings, tmp_path):
    trained.save(tmp_path)
    further = train_tiny(settings, seed=5, state=load_state(tmp_path))
    anew = train_tiny(settings, seed=5)
    start = trained.state[WALLS[algorithm]]
    moved = [np.abs(made.state[WALLS[algorithm]] - start).max() for made in (further, anew)]
    assert 0 < moved[0] < moved[1]


def test_a_bonus_changes_what_is_learnt_and_what_is_returned(trained, settings):
    paid = train_tiny(settings, bonus=still_pays)
    assert not np.array_equal(paid.policy.layers[0][0], trained.policy.layers[0][0])
    # At most 10 a step and displacement is taken off; exploring moves all the time.
    assert paid.curve[-1]["mean_return"] < trained.curve[-1]["mean_return"] - 50


def test_ppo_explores_anew_when_it_goes_on():
    """A policy whose exploration has died down gets it back; the rest of the weights stays."""
    first = train_tiny()
    quiet = {**first.state, "net.log_std": np.full_like(first.state["net.log_std"], -4.0)}
    further = train_tiny(replace(SETTINGS["ppo"], train_steps=0), state=quiet)
    np.testing.assert_allclose(further.state["net.log_std"], np.log(SETTINGS["ppo"].continued_std), rtol=1e-6)


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


def test_trainings_stored_before_there_was_a_choice_are_ppos():
    """They hold neither the algorithm's name nor the optimiser's state."""
    first = train_tiny()
    old = {name: array for name, array in first.state.items() if name.startswith(("net.", "observation.", "return."))}
    assert isinstance(settings_to_go_on(old, push_cube()), PPOSettings)
    further = train_tiny(replace(SETTINGS["ppo"], train_steps=0), state=old)
    np.testing.assert_array_equal(further.state["net.action_net.weight"], first.state["net.action_net.weight"])


def test_one_algorithm_does_not_go_on_from_the_other(algorithm, trained):
    other = {"ppo": "sac", "sac": "ppo"}[algorithm]
    with pytest.raises(PolicyError) as caught:
        train_tiny(SETTINGS[other], state=trained.state)
    assert f"got a training with {algorithm}, networks 8x1" in str(caught.value)
    assert f"expected one with {other}, networks 8x1" in str(caught.value)


def test_another_network_does_not_go_on(settings, trained):
    with pytest.raises(PolicyError, match=r"networks 16x1.*Go on with the algorithm, scenario and network"):
        train_tiny(replace(settings, hidden=(16, 8)), state=trained.state)


@pytest.mark.parametrize("scenario", ["push_cube", "push_t"])
def test_settings_are_chosen_by_the_algorithms_name(scenario):
    scenario = load_scenario(scenario)
    first = settings_from_scratch("sac", scenario)
    assert isinstance(first, SACSettings)
    assert settings_from_scratch("sac", scenario, 5) == replace(first, train_steps=5)
    assert settings_to_go_on({"algorithm": np.array("sac")}, scenario, 7) == replace(first, train_steps=7)
    assert settings_to_go_on({"algorithm": np.array("sac")}, scenario).train_steps < first.train_steps
    assert isinstance(settings_from_scratch("ppo", scenario), PPOSettings)


def test_there_is_no_other_algorithm_and_no_other_task():
    with pytest.raises(ConfigError, match="got scenario cube_toss, which has no task to learn"):
        settings_from_scratch("ppo", load_scenario("cube_toss"))
    with pytest.raises(ConfigError) as caught:
        settings_from_scratch("td3", push_cube())
    assert str(caught.value) == "training: got algorithm 'td3'; expected one of ppo, sac. Choose one of these."


def test_stored_policy_acts_as_the_trained_one(trained, settings, tmp_path):
    trained.save(tmp_path)
    loaded = Policy.load(tmp_path)
    np.testing.assert_array_equal(loaded.act(observations()), trained.policy.act(observations()))
    assert loaded.card["settings"]["train_steps"] == settings.train_steps
