"""rsr.train: a policy for a scenario's task, to save and to export."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import rsr
from rsr.calibration import start_calibration
from rsr.common.errors import ConfigError
from rsr.policies.policy_contract import ONNX_FILE
from tests.api.two_joints import ARM


def test_a_policy_is_trained_in_the_tuned_simulator_saved_and_exported(tmp_path):
    scenario = rsr.load_scenario("push_cube")
    fit = rsr.Fit(scenario, start_calibration(scenario))
    policy = rsr.train(scenario, fit, steps=4_000, progress=False)
    assert isinstance(policy, rsr.Policy)
    policy.save(tmp_path / "policy")
    again = rsr.Policy.load(tmp_path / "policy")
    observation = np.zeros((1, policy.normaliser.mean.size))
    assert np.array_equal(again.choose(observation), policy.choose(observation))
    assert (policy.export(tmp_path / "onnx") / ONNX_FILE).is_file()


def test_a_scenario_without_a_task_is_refused():
    arm = rsr.Scenario.from_mjcf(
        mujoco.MjSpec.from_string(ARM),
        dt=0.01,
        measured={"q": rsr.joints("shoulder", "elbow", noise=0.002)},
        tune={"damping": rsr.scale("joint.damping")},
    )
    with pytest.raises(ConfigError, match="has no task to learn"):
        rsr.train(arm, steps=1_000, progress=False)
