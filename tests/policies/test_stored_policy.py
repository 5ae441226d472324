import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from rsr.common.errors import PolicyError
from rsr.common.files import sha256
from rsr.policies import Normaliser, Policy
from rsr.scenarios import load_scenario, task_of
from rsr.scenarios.built_in.push_cube import task
from tests.push_samples import channels_of


def policy(seed: int = 0) -> Policy:
    rng = np.random.default_rng(seed)
    sizes = (task.TASK.observation_size, 8, 8, 2)
    layers = tuple(
        (rng.normal(size=(out, into)).astype(np.float32), rng.normal(size=out).astype(np.float32))
        for into, out in pairwise(sizes)
    )
    normaliser = Normaliser(rng.normal(size=sizes[0]), rng.uniform(0.1, 1, sizes[0]), 5.0)
    return Policy(task_of(load_scenario("push_cube")), normaliser, layers, {"seed": seed})


def observations(count: int = 20) -> np.ndarray:
    starts = task.sample_starts(np.random.default_rng(0), count)
    return task.TASK.observe(channels_of(starts.qpos[:, 7:], starts.qpos[:, :3], starts.goal["target_position"]))


def test_saved_loaded_and_saved_again_is_the_same_bytes(tmp_path):
    policy().save(tmp_path / "first")
    loaded = Policy.load(tmp_path / "first")
    loaded.save(tmp_path / "second")
    assert sha256(tmp_path / "first") == sha256(tmp_path / "second")
    np.testing.assert_array_equal(loaded.act(observations()), policy().act(observations()))
    policy(1).save(tmp_path / "other")
    assert sha256(tmp_path / "other") != sha256(tmp_path / "first")


def test_actions_are_six_displacements_within_the_box():
    action = policy().act(observations())
    assert action.shape == (20, 6)
    assert np.abs(action).max() <= 1.0
    assert np.isfinite(action).all()


def test_networks_of_sac_have_relu_between_the_layers_and_tanh_behind(tmp_path):
    sac = replace(policy(), activation="relu", squashed=True)
    (first, b1), (second, b2), (last, b3) = [(weight.T, bias) for weight, bias in sac.layers]
    scaled = sac.normaliser(observations()).astype(np.float32)
    by_hand = np.tanh(np.maximum(np.maximum(scaled @ first + b1, 0) @ second + b2, 0) @ last + b3)
    np.testing.assert_allclose(sac.choose(observations()), by_hand, atol=1e-6)
    sac.save(tmp_path)
    np.testing.assert_array_equal(Policy.load(tmp_path).act(observations()), sac.act(observations()))


def test_policies_stored_before_there_was_a_choice_are_tanh_networks_with_a_clip(tmp_path):
    policy().save(tmp_path)
    card = json.loads((tmp_path / "policy.json").read_text())
    del card["activation"], card["squashed"]
    (tmp_path / "policy.json").write_text(json.dumps(card))
    np.testing.assert_array_equal(Policy.load(tmp_path).act(observations()), policy().act(observations()))


def test_one_observation_at_a_time_gives_the_same_actions():
    together = policy().act(observations())
    alone = np.concatenate([policy().act(row[None]) for row in observations()])
    np.testing.assert_allclose(alone, together, atol=1e-5)


def test_wrong_width():
    with pytest.raises(PolicyError) as caught:
        policy().act(np.zeros((3, 20), np.float32))
    assert str(caught.value) == (
        "policy for push_cube: got observations of width 20; expected 37 values (joints, fingertip, target, block, "
        "target - block, block - fingertip, fingertip on the way, distance, pushing point from fingertip, fingertip's "
        "distance, base of the arm, fingertip velocity, block velocity, setpoint from fingertip, last action from "
        "fingertip). Build observations with the task's `observe`."
    )


def test_missing_folder(tmp_path):
    with pytest.raises(PolicyError) as caught:
        Policy.load(tmp_path / "policy")
    assert str(caught.value) == (
        f"{tmp_path}/policy: got FileNotFoundError: [Errno 2] No such file or directory: "
        f"'{tmp_path}/policy/policy.json'; expected policy.npz and policy.json of one policy. "
        "Restore the folder with `dvc checkout`, or make it again with `dvc repro`."
    )


@pytest.mark.parametrize("size", [0, 3, 100, -30])
def test_cut_arrays(tmp_path, size):
    policy().save(tmp_path)
    file = tmp_path / "policy.npz"
    file.write_bytes(file.read_bytes()[:size])
    with pytest.raises(PolicyError, match="Restore the folder with `dvc checkout`"):
        Policy.load(tmp_path)


def test_unknown_activation(tmp_path):
    replace(policy(), activation="tan").save(tmp_path)
    with pytest.raises(PolicyError, match="KeyError: 'tan'"):
        Policy.load(tmp_path)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"layers": 9, "limit": 5, "scenario": "push_cube"}', '{"layers": '])
def test_cards_that_are_none(tmp_path, text):
    policy().save(tmp_path)
    (tmp_path / "policy.json").write_text(text)
    with pytest.raises(PolicyError, match="expected policy.npz and policy.json of one policy"):
        Policy.load(tmp_path)


def test_altered_arrays_are_noticed(tmp_path):
    policy().save(tmp_path)
    file = tmp_path / "policy.npz"
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 0xFF
    file.write_bytes(bytes(content))
    with pytest.raises(PolicyError, match="BadZipFile"):
        Policy.load(tmp_path)


def test_card_is_written_for_people(tmp_path):
    policy().save(tmp_path)
    assert json.loads((tmp_path / "policy.json").read_text()) == {
        "scenario": "push_cube",
        "limit": 5.0,
        "layers": 3,
        "activation": "tanh",
        "squashed": False,
        "seed": 0,
    }
