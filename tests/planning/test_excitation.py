"""Excitation with more parameters than the usual number of points: slopes are determined, noise is no information."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import rsr
from rsr.calibration import start_prior
from rsr.calibration.problem.loss import Loss
from rsr.calibration.problem.windows import cut
from rsr.calibration.search.refinement import linearise
from rsr.calibration.uncertainty.information_matrices import regressed_information
from rsr.planning.excitation import find_excitation
from rsr.scenarios import Scenario, load_scenario
from rsr.sessions import Card, Episode, Session
from rsr.simulators import MujocoSimulator

SLIDERS = 40
ROWS = 101


@pytest.fixture(scope="module")
def scenario(tmp_path_factory) -> Scenario:
    """Forty damped sliders, each with a damping of its own: forty parameters, of which each acts on one coordinate."""
    return load_scenario(str(_written(tmp_path_factory.mktemp("sliders"))))


def _written(folder: Path) -> Path:
    names = [f"slider{i}" for i in range(SLIDERS)]
    bodies = "".join(
        f'<body pos="{i} 0 0"><joint name="{name}" type="slide" axis="0 0 1" damping="1"/>'
        '<geom size=".05" mass="1" contype="0" conaffinity="0"/></body>'
        for i, name in enumerate(names)
    )
    (folder / "scene.xml").write_text(
        f'<mujoco><option timestep="0.01" gravity="0 0 0"/><worldbody>{bodies}</worldbody></mujoco>'
    )
    listed = ", ".join(names)
    parameters = "".join(
        f"  {name}_damping:\n    nominal: 1.0\n    lower: 0.01\n    upper: 100.0\n    unit: N s/m\n    prior_std: 1.0\n"
        f"    sets: [{{joint: {name}, field: damping}}]\n"
        for name in names
    )
    path = folder / "scenario.yaml"
    path.write_text(
        "name: sliders\ntitle: Forty sliders\nmjcf: scene.xml\ncontrol_dt_s: 0.01\nhistory_steps: 0\n"
        "episode_steps: 100\ngap_channel: position\nwindow_s: 0.2\ngap_horizon_s: 0.5\n"
        f"channels:\n  position:\n    columns: [{listed}]\n    unit: m\n    frame: joint\n"
        f"    reads: {{joints: [{listed}]}}\n    noise: 0.001\nparameters:\n{parameters}"
    )
    return path


def _session(scenario: Scenario, moving: np.ndarray) -> Session:
    """Six episodes in which the sliders that move are thrown."""
    rng = np.random.default_rng(0)
    start = np.concatenate([np.zeros((6, SLIDERS)), rng.choice([-2.0, 2.0], (6, SLIDERS)) * moving], axis=1)
    with MujocoSimulator(scenario) as simulator:
        states = simulator.rollout(start, np.zeros((6, ROWS - 1, 0)), scenario.space.nominal)
    noise = rng.normal(0.0, 0.001, (6, ROWS, SLIDERS))
    shown = states[..., :SLIDERS] + noise
    time_s = np.arange(ROWS) * scenario.control_dt_s
    episodes = tuple(Episode(index=i, time_s=time_s, values={"position": shown[i]}) for i in range(6))
    card = Card("session-001", scenario.name, "stand_in", simulated=True, control_dt_s=scenario.control_dt_s)
    return Session(card, scenario.channels, episodes)


def test_forty_parameters_are_observable_where_all_move(scenario):
    found = find_excitation(scenario, _session(scenario, np.ones(SLIDERS)))
    assert [each.observability for each in found] == ["high"] * SLIDERS
    assert all(each.correlated == () for each in found)


def test_of_forty_parameters_only_those_that_act_are_observable(scenario):
    moving = np.arange(SLIDERS) % 2 == 0
    found = find_excitation(scenario, _session(scenario, moving))
    assert [each.observability == "high" for each in found] == moving.tolist()
    assert [each.observability == "none" for each in found] == (~moving).tolist()


def test_noise_is_no_information_however_many_parameters():
    rng = np.random.default_rng(0)
    points, noise = rng.normal(size=(80, 40)), 30.0 * rng.normal(size=(80, 500))
    information = regressed_information(points, noise, rows_as_one=1)
    slopes = np.linalg.pinv(points) @ noise / 30.0  # of unit variance, as the weights make them
    assert np.linalg.eigvalsh(information).min() > -1e-9
    assert np.trace(information) < np.trace(slopes @ slopes.T) / 4


def test_as_many_points_as_parameters_are_refused():
    with pytest.raises(ValueError, match="40 points for 40 parameters leave no degree of freedom"):
        regressed_information(np.eye(40), np.ones((40, 3)), rows_as_one=1)


def test_linearisation_of_forty_parameters_recovers_the_slopes(scenario):
    session = _session(scenario, np.ones(SLIDERS))
    windows = cut(scenario, session.episodes, 20, stride=40)
    with MujocoSimulator(scenario) as simulator:
        loss = Loss(scenario, simulator, windows, start_prior(scenario))
        centre = np.zeros(SLIDERS)
        found = linearise(loss, centre, 1e-4 * np.eye(SLIDERS), np.random.default_rng(0))
        step = 0.01 * np.eye(SLIDERS)
        exact = np.moveaxis(loss.misfits(step) - loss.misfits(-step), 0, -1) / 0.02
    assert found.sensitivities.shape == exact.shape
    error = np.linalg.norm(found.sensitivities - exact) / np.linalg.norm(exact)
    assert error < 0.05


def test_a_strong_parameter_does_not_hide_a_weak_one(tmp_path):
    """A spring's stiffness moves the position by a hundred noises, and bends it; its damping by about three."""
    (tmp_path / "spring.xml").write_text(
        '<mujoco><option timestep="0.002" gravity="0 0 0"/><worldbody><body>'
        '<joint name="spring" type="slide" stiffness="60" damping="0.15"/><geom size=".05" mass="1"/>'
        "</body></worldbody></mujoco>"
    )
    scenario = rsr.Scenario.from_mjcf(
        tmp_path / "spring.xml",
        dt=0.01,
        measured={"q": rsr.joints("spring", noise=0.001)},
        tune={"stiffness": rsr.scale("joint.stiffness"), "damping": rsr.scale("joint.damping")},
    )
    rng = np.random.default_rng(0)
    start = np.stack([rng.uniform(-0.3, 0.3, 6), rng.uniform(-2.0, 2.0, 6)], axis=1)
    with MujocoSimulator(scenario) as simulator:
        states = simulator.rollout(start, np.zeros((6, 200, 0)), scenario.space.nominal)
    runs = [{"q": each[:, :1] + rng.normal(0.0, 0.001, (201, 1))} for each in states]
    stiffness, damping = find_excitation(scenario, rsr.session_from_arrays(scenario, runs, name="springs"))
    assert stiffness.observability == "high"
    assert damping.observability == "low"
