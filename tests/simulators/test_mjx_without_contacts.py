"""A robot of others that touches nothing, with the elliptic cones its makers like: MJX and C go the same way."""

import numpy as np
import pytest
from own_arm import write_own_arm

from rsr.scenarios import load_scenario
from rsr.simulators import MujocoSimulator
from rsr.simulators.mjx import MjxSimulator


@pytest.mark.slow
def test_elliptic_cones_without_contacts(tmp_path):
    path = write_own_arm(tmp_path)
    arm = (tmp_path / "arm.xml").read_text()
    option = '<option timestep="0.005" integrator="implicitfast"'
    assert option in arm
    disabled = f'{option} cone="elliptic" impratio="10"><flag contact="disable"/></option>'
    (tmp_path / "arm.xml").write_text(arm.replace(f"{option}/>", disabled))
    scenario = load_scenario(path)
    rng = np.random.default_rng(0)
    states = np.concatenate([rng.uniform(-0.5, 0.5, (2, 3)), np.zeros((2, 3))], axis=1)
    commands = rng.uniform(-0.5, 0.5, (2, scenario.history_steps + 4, 3))
    params = scenario.space.nominal
    found, slopes = MjxSimulator(scenario).sensitivities(states, commands, params)
    with MujocoSimulator(scenario) as simulator:
        np.testing.assert_allclose(found, simulator.rollout(states, commands, params), atol=1e-8)
    assert np.isfinite(slopes).all()
