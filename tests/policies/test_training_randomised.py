"""Training in simulators that differ by copy: a function of its arguments, stopped or not."""

from __future__ import annotations

import numpy as np
import pytest

from rsr.calibration import start_calibration
from rsr.common.errors import ConfigError
from rsr.common.progress import Advance, ignore
from rsr.config import RetrainConfig, parse_config
from rsr.pipelines.loop.stages import simulators
from rsr.policies.training import PPOSettings, Trained, train
from rsr.scenarios import load_scenario

COPIES = 4
SETTINGS = PPOSettings(12 * COPIES * 16, COPIES, 16, batch_size=32, epochs=2, hidden=(8, 8))
SCENARIO = load_scenario("push_t")


class Stopped(Exception):
    """What ends a training half way."""


def parameters(seed: int = 0, randomise: str = "posterior") -> np.ndarray:
    config = RetrainConfig.model_validate({"randomise": randomise, "randomise_factor": 0.5})
    return simulators(SCENARIO, start_calibration(SCENARIO), config, COPIES, seed)


def learn(params: np.ndarray, advance: Advance = ignore, checkpoint=None) -> Trained:
    return train(SCENARIO, params, SETTINGS, 3, advance, checkpoint=checkpoint)


def test_parameters_follow_from_the_seed_alone():
    assert parameters().shape == (COPIES, len(SCENARIO.space))
    np.testing.assert_array_equal(parameters(), parameters())
    assert (parameters() != parameters(seed=1)).any(axis=1).all()
    assert len(np.unique(parameters()[:, 0])) == COPIES
    np.testing.assert_array_equal(parameters(randomise="none"), SCENARIO.space.nominal)


def test_stopped_and_resumed_it_comes_to_the_same_policy(tmp_path):
    rows, checkpoint = parameters(), tmp_path / "training.npz"
    rollouts: list[float] = []

    def stop(share: float, words: str = "") -> None:
        if share > 0.6:
            raise Stopped

    with pytest.raises(Stopped):
        learn(rows, stop, checkpoint)
    assert checkpoint.exists()
    resumed = learn(rows, lambda share, words="": rollouts.append(share), checkpoint)
    assert rollouts[0] > 0.4, "it went on"
    for (ours, _), (theirs, _) in zip(resumed.policy.layers, learn(rows).policy.layers, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_a_checkpoint_of_other_draws_is_left_aside(tmp_path):
    checkpoint, rollouts = tmp_path / "training.npz", []

    def stop(share: float, words: str = "") -> None:
        if share > 0.6:
            raise Stopped

    with pytest.raises(Stopped):
        learn(parameters(), stop, checkpoint)
    learn(parameters(seed=1), lambda share, words="": rollouts.append(share), checkpoint)
    assert rollouts[0] < 0.2, "it began anew"


def test_a_word_that_is_no_choice_is_refused():
    with pytest.raises(ConfigError, match="got 'everything'; expected 'none' or 'posterior'"):
        parse_config({"retrain": {"randomise": "everything"}}, where="params.yaml")
