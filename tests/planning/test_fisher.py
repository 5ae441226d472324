"""Fisher information: what sessions can tell follows physics, adds up, and predicts nats as the formula says."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from benchmarks._information import fisher_information, log_determinant
from rsr.calibration import expected_nats
from rsr.calibration.uncertainty.information_matrices import posterior_covariance
from rsr.scenarios import load_scenario
from tests.calibration.recordings import recording
from tests.planning.imagined import recorded, swings
from tests.push_samples import push_cube

CONTACT = ("table_friction", "finger_friction", "cube_mass", "contact_softness")


@cache
def free_motion():
    """The arm waves well above the cube, which does not move but for what its noisy sensor makes of it."""
    scenario, rng = push_cube(), np.random.default_rng(0)
    start = np.concatenate([scenario.base_model.qpos0, np.zeros(scenario.base_model.nv)])
    start[8] -= 0.6  # the shoulder, upwards
    waves = 0.1 * np.sin(np.linspace(0, 12, 60)[:, None] * rng.uniform(0.5, 1.5, 6))
    return recorded(scenario, start[None], (start[7:13] + waves)[None])


def named(information, names):
    rows = [push_cube().space.names.index(name) for name in names]
    return information[rows, rows]


def test_without_contact_nothing_is_told_of_friction_and_mass():
    scenario = push_cube()
    information = fisher_information(scenario, free_motion(), scenario.space.nominal)
    told = named(information, ("joint_damping", "actuator_gain", "control_delay"))
    assert (told > 1).all()
    assert (named(information, ("finger_friction", "cube_mass")) < 1e-9).all()


def test_pushing_tells_what_waving_does_not():
    scenario = push_cube()
    pushed = fisher_information(scenario, recording(2, 60), scenario.space.nominal)
    waved = fisher_information(scenario, free_motion(), scenario.space.nominal)
    assert (named(pushed, CONTACT) > 10 * named(waved, CONTACT)).all()
    assert np.isfinite(log_determinant(pushed))


def test_episodes_add_up():
    scenario, session = push_cube(), recording(3, 60)
    each = [
        fisher_information(scenario, replace(session, episodes=(e,)), scenario.space.nominal) for e in session.episodes
    ]
    together = fisher_information(scenario, session, scenario.space.nominal)
    np.testing.assert_allclose(together, sum(each), rtol=1e-9)
    assert log_determinant(together) > max(log_determinant(one) for one in each)


def test_information_is_symmetric_and_not_negative():
    scenario = push_cube()
    information = fisher_information(scenario, recording(2, 60), scenario.space.nominal)
    np.testing.assert_allclose(information, information.T)
    assert np.linalg.eigvalsh(information).min() > -1e-6 * np.linalg.eigvalsh(information).max()


def test_the_step_of_the_differences_does_not_matter_where_nothing_touches():
    scenario = load_scenario("double_pendulum")
    session = swings(scenario, episodes=1)
    fine, coarse = (fisher_information(scenario, session, scenario.space.nominal, step=step) for step in (0.02, 0.1))
    np.testing.assert_allclose(np.diag(fine), np.diag(coarse), rtol=0.1)


def test_a_parameter_at_its_bound_is_differentiated_from_inside():
    scenario = push_cube()
    values = scenario.space.nominal
    assert values[scenario.space.names.index("control_delay")] == 0.0
    assert named(fisher_information(scenario, free_motion(), values), ("control_delay",))[0] > 1


def test_nats_are_those_of_the_formula(rng):
    root, data = rng.normal(size=(4, 4)), rng.normal(size=(9, 4))
    covariance, information = root @ root.T, data.T @ data
    half = np.linalg.cholesky(covariance)
    whole = 0.5 * np.linalg.slogdet(np.eye(4) + half.T @ information @ half)[1]
    assert expected_nats(information, covariance) == pytest.approx(whole)
    after = np.linalg.inv(np.linalg.inv(covariance) + information)
    np.testing.assert_allclose(posterior_covariance(covariance, information), after)
    part = 0.5 * np.log(np.linalg.det(covariance[:2, :2]) / np.linalg.det(after[:2, :2]))
    assert expected_nats(information, covariance, np.array([0, 1])) == pytest.approx(part)
    assert expected_nats(np.zeros((4, 4)), covariance) == pytest.approx(0)


def test_what_is_not_told_at_all_has_no_determinant():
    assert log_determinant(np.diag([1.0, 0.0])) == -np.inf
    assert log_determinant(np.diag([np.e, np.e])) == pytest.approx(2.0)


@pytest.fixture
def rng():
    return np.random.default_rng(3)
