"""The baseline of `benchmarks/policy.py` on push_t: a pusher that nobody had to train."""

import numpy as np

from benchmarks.baselines.scripted_pusher import ScriptedPusher
from rsr.policies import rollouts
from rsr.scenarios import load_scenario, task_of


def test_it_succeeds_more_often_than_not():
    """Measured on 768 starts: 75 %."""
    scenario = load_scenario("push_t")
    task = task_of(scenario)
    starts = task.reset(np.random.default_rng(11), 128)
    nominal = scenario.space.nominal
    seen = rollouts.run(scenario, nominal, ScriptedPusher(task), starts, np.random.default_rng(12))
    assert 0.6 < seen.success.mean() < 0.9
    yaw = np.abs(seen.figures()["yaw"])
    assert yaw[:, -1].mean() < yaw[:, 0].mean()
