"""Model error that all episodes share: nothing where the model is right, wide intervals where it is not."""

from dataclasses import replace

import numpy as np
import pytest

from rsr.calibration import start_prior
from rsr.calibration.problem.loss import Loss
from rsr.calibration.problem.windows import choose, cut
from rsr.calibration.search.marginalise import with_initial_states
from rsr.calibration.search.refinement import Linearisation, linearise
from rsr.calibration.uncertainty.shared_error import _joined, conflict, shared_error
from rsr.simulators import MujocoSimulator
from tests.calibration.recordings import TRUTH, recording
from tests.push_samples import push_cube

STEPS = 12


@pytest.fixture(scope="module")
def right():
    """A loss with initial states marginalised at the parameters that the recording was made with; and these [P]."""
    scenario = push_cube()
    every = cut(scenario, recording(8, steps=60).episodes, STEPS, stride=6)
    windows = choose(scenario, every, 40, np.random.default_rng(0))
    with MujocoSimulator(scenario, 1) as simulator:
        loss = Loss(scenario, simulator, windows, start_prior(scenario))
        truth = loss.points(scenario.space.vector(TRUTH))
        yield with_initial_states(loss, truth), truth


def systematic(loss: Loss, point: np.ndarray) -> np.ndarray:
    slope = linearise(loss, point, 0.01 * np.eye(len(point)), np.random.default_rng(0))
    return np.sqrt(np.diag(shared_error(loss, point, slope)))


def test_a_right_model_has_no_shared_error(right):
    assert systematic(*right).max() == 0.0


def test_an_error_in_all_episodes_makes_what_the_channel_tells_uncertain(right):
    """Every block drifts by 3 cm a window, as no parameter makes it: friction is known less, the drive is not."""
    loss, truth = right
    drifting = loss.windows.real["block_position"] + np.linspace(0.0, 0.03, STEPS)[None, :, None]
    wrong = replace(loss, windows=replace(loss.windows, real={**loss.windows.real, "block_position": drifting}))
    found = dict(zip(push_cube().space.names, systematic(wrong, truth), strict=True))
    assert found["table_friction"] > 0.1
    assert found["control_delay"] < 0.01, "the joints tell it, and they move as simulated"


def test_one_episode_in_which_a_contact_came_out_otherwise_is_no_error_that_all_share(right):
    loss, truth = right
    thrown = loss.windows.real["block_position"].copy()
    thrown[loss.windows.episode == loss.windows.episode[0]] += np.linspace(0.0, 0.03, STEPS)[:, None]
    wild = replace(loss, windows=replace(loss.windows, real={**loss.windows.real, "block_position": thrown}))
    assert systematic(wild, truth).max() == 0.0


def test_where_the_model_errs_a_surprising_parameter_reaches_back_to_the_prior_and_takes_others_along():
    scatter = np.array([[0.04, -0.01, 0.0], [-0.01, 0.01, 0.0], [0.0, 0.0, 0.01]])
    # Residuals whose information, with the prior's, has this scatter.
    sensitivities = np.linalg.cholesky(np.linalg.inv(scatter) - np.eye(3)).T
    slope = Linearisation(np.zeros(3), np.zeros((1, 3)), sensitivities[None])
    nothing = conflict(np.array([2.4, 2.4, 2.4]), slope)
    assert not nothing.any(), "within what is expected"
    found = conflict(np.array([-4.0, 0.5, 0.5]), slope)
    assert np.sqrt(np.diag(found)) == pytest.approx([4.0, 1.0, 0.0])
    assert found[0, 1] < 0.0, "where the first goes up, the second goes down"


def test_what_errs_in_position_counts_in_the_same_body_s_orientation():
    """The orientation alone is explained: parameters absorb there what pushes the body in both."""
    variances = [0.1, 0.5, 0.0]  # the arm's joints; the block's position and orientation
    assert _joined(push_cube(), iter(variances)) == [0.1, 0.5, 0.5]
