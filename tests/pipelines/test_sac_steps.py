"""The steps `start` and `retrain` with SAC: what was seen before is learnt from again, paid by the present InfoGap."""

import numpy as np
import pytest
from sample_workspace import make_workspace

from rsr.common.progress import ignore
from rsr.config import LoopConfig, RetrainConfig, StartConfig, dump_config
from rsr.environments.measuring import at_rest
from rsr.environments.novelty import feature_noise
from rsr.infogap import InfoGapReward, fit_infogap, transitions
from rsr.pipelines.loop.stages import retrain, start
from rsr.policies import Policy
from rsr.policies.training import load_state
from rsr.scenarios import load_scenario, task_of

STEPS = 5120
"""Just beyond the random actions at the beginning."""


def gap(scenario) -> InfoGapReward:
    """An InfoGap of pushes that go a little farther in reality."""
    rng, task = np.random.default_rng(0), task_of(scenario)
    seen = task.states.compute(at_rest(scenario, task, task.reset(rng, 400)))
    then = seen + rng.normal(0, 0.01, seen.shape)
    action = rng.uniform(-1, 1, (400, 6))
    simulated, real = (transitions(seen, action, then + farther) for farther in (0.0, 0.02))
    return fit_infogap(real, simulated, simulated, feature_noise(task), task_reward_std=0.1, rng=rng)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    workspace = make_workspace(tmp_path_factory.mktemp("sac"), iterations=1)
    first = LoopConfig(start=StartConfig(algorithm="sac", train_steps=STEPS))
    dump_config(first, workspace.frozen_path(0))
    dump_config(LoopConfig(retrain=RetrainConfig(train_steps=1024)), workspace.frozen_path(1))
    gap(load_scenario("push_cube")).save(workspace.infogap_dir(1))
    start(workspace, 0, ignore)
    retrain(workspace, 1, ignore)
    return workspace


@pytest.mark.slow
def test_retrain_goes_on_with_the_algorithm_that_the_policy_is_of(workspace):
    """Iteration 1 says `ppo` under `start`, which it has no part in."""
    assert workspace.config(1).start.algorithm == "ppo"
    assert [Policy.load(workspace.policy_dir(k)).card["algorithm"] for k in (0, 1)] == ["SAC", "SAC"]


def test_the_replay_buffer_goes_on(workspace):
    before, after = (load_state(workspace.policy_dir(k)) for k in (0, 1))
    rows = int(before["experience.position"])
    assert int(after["experience.position"]) > rows
    for name in ("experience.observations", "experience.task_rewards"):
        np.testing.assert_array_equal(after[name][:rows], before[name])


def test_old_transitions_are_paid_by_the_new_infogap(workspace):
    before, after = (load_state(workspace.policy_dir(k)) for k in (0, 1))
    rows = int(before["experience.position"])
    np.testing.assert_array_equal(before["experience.rewards"], before["experience.task_rewards"])
    paid = after["experience.rewards"][:rows] - before["experience.rewards"]
    assert (np.abs(paid) > 1e-4).mean() > 0.5
