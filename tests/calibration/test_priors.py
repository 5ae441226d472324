"""What one iteration hands to the next."""

from dataclasses import replace

import numpy as np
import pytest

from rsr.calibration import next_prior, start_calibration, start_prior
from rsr.calibration.priors import FLOOR, FORGETTING
from rsr.common.errors import CalibrationError, ScenarioError
from tests.calibration.contract import quick_fit
from tests.push_samples import push_cube


def test_iteration_one_begins_with_the_scenarios_prior():
    scenario = push_cube()
    first = next_prior(scenario, start_calibration(scenario))
    np.testing.assert_allclose(first.mean, start_prior(scenario).mean)
    np.testing.assert_allclose(first.std, scenario.space.prior_std)
    np.testing.assert_allclose(start_calibration(scenario).vector(), scenario.space.nominal)


def test_later_iterations_know_what_earlier_sessions_say():
    scenario, previous = push_cube(), quick_fit("cmaes")
    prior = next_prior(scenario, previous)
    np.testing.assert_array_equal(prior.std, scenario.space.prior_std)
    assert prior.earlier is not None
    np.testing.assert_allclose(scenario.space.to_values(prior.earlier.mean), previous.vector())
    np.testing.assert_array_equal(prior.earlier.covariance, previous.covariance)
    assert prior.earlier.data_std.tolist() == [previous.data_std[name] for name in scenario.space.names]
    assert np.linalg.eigvalsh(previous.covariance - prior.earlier.shared).min() > -1e-9


def test_a_method_that_does_not_say_what_data_tell_forgets():
    scenario, sharp = push_cube(), replace(quick_fit("cmaes"), covariance=np.eye(7) * 1e-4, data_std={})
    prior = next_prior(scenario, sharp)
    np.testing.assert_allclose(prior.std, FORGETTING * 0.01 + FLOOR * scenario.space.prior_std)
    assert prior.earlier is None


def test_calibration_of_other_parameters():
    previous = quick_fit("cmaes")
    fewer = replace(previous, estimates={"friction": previous.estimates["table_friction"]})
    with pytest.raises(CalibrationError) as error:
        next_prior(push_cube(), fewer)
    assert str(error.value) == (
        "previous calibration of push_cube: got parameters friction; expected table_friction, finger_friction, "
        "cube_mass, joint_damping, actuator_gain, control_delay, contact_softness. Start a new workspace: the "
        "scenario's parameters have changed since."
    )


def test_estimate_outside_the_bounds():
    previous = quick_fit("cmaes")
    wrong = {**previous.estimates, "cube_mass": replace(previous.estimates["cube_mass"], value=7.0)}
    with pytest.raises(ScenarioError, match=r"got cube_mass = 7 kg; expected a value in \[0\.04, 1\]"):
        next_prior(push_cube(), replace(previous, estimates=wrong))
