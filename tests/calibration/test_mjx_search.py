"""Method `mjx`: the calibrator's contract, exact slopes, descent, and what it costs beside the other methods."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import mujoco
import numpy as np
import pytest

from rsr.calibration import Effort, Prior, calibrator, start_prior
from rsr.calibration.problem.loss import Loss
from rsr.calibration.problem.sensitivity import _bounded, choose_jacobian, jacobian
from rsr.calibration.problem.windows import choose, cut
from rsr.calibration.search.adam import search_adam
from rsr.calibration.search.descent import Descent, descend
from rsr.calibration.search.evolution import PATIENCE, SHORT_POPULATION, evolve, search_cmaes, tempered_root
from rsr.calibration.search.mjx import search_mjx
from rsr.common.errors import ScenarioError
from rsr.common.progress import ignore
from rsr.config import TuneConfig
from rsr.simulators import MujocoSimulator
from rsr.simulators.mjx import converged
from tests.calibration.contract import CalibratorContract
from tests.calibration.recordings import TRUTH, recording
from tests.push_samples import push_cube


@pytest.mark.slow
class TestMjx(CalibratorContract):
    method = "mjx"


@pytest.fixture(scope="module")
def loss() -> Iterator[Loss]:
    """Noisy recordings of known parameters, 16 windows of 0.4 s, solved to the end: differences need that."""
    scenario = push_cube()
    episodes = list(recording(episodes=8, steps=50).episodes)
    windows = choose(scenario, cut(scenario, episodes, 8, 4), 16, np.random.default_rng(0))
    with MujocoSimulator(converged(scenario)) as simulator:
        yield Loss(scenario, simulator, windows, start_prior(scenario))


def off_truth(loss: Loss) -> np.ndarray:
    return np.clip(0.8 * loss.points(loss.scenario.space.vector(TRUTH)), *loss.bounds.T)


def test_slopes_are_those_of_the_residuals(loss: Loss):
    """Through quaternions, wrapped angles, the robust loss and the prior, on recorded states."""
    point = off_truth(loss)
    _, slopes = choose_jacobian(loss.scenario, "mjx")
    exact = slopes(loss, point)
    steps = [jacobian(loss, point, step) for step in (3e-5, 1e-5, 3e-6)]
    for index, name in enumerate(loss.scenario.space.names):
        columns = [differences[:, index] for differences in steps]
        # Where two difference steps disagree, they step over a contact that opens or closes.
        apart = [np.linalg.norm(first - second) for first, second in pairwise(columns)]
        best = columns[int(np.argmin(apart))]
        assert np.linalg.norm(exact[:, index] - best) < max(1e-3 * np.linalg.norm(best), 3 * min(apart)), name


def test_differences_serve_where_mjx_cannot(loss: Loss):
    model = mujoco.MjModel.from_xml_path(str(loss.scenario.mjcf))
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
    scenario = replace(loss.scenario, base_model=model)
    with pytest.raises(ScenarioError, match="cmaes"):
        choose_jacobian(scenario, "mjx")
    picked, slopes = choose_jacobian(scenario, "auto")
    assert picked.startswith("differences: MJX lacks derivatives through the contact solves of integrator RK4")
    assert slopes is choose_jacobian(scenario, "differences")[1]
    assert choose_jacobian(loss.scenario, "auto") == choose_jacobian(loss.scenario, "mjx")


def test_descent_goes_down_and_stays_inside(loss: Loss):
    short = replace(loss, windows=loss.windows.shortened(2))
    counted: list[int] = []
    start = np.clip(np.zeros(len(loss.bounds)), *loss.bounds.T)
    _, slopes = choose_jacobian(loss.scenario, "mjx")
    found = descend(short, slopes, start[None], 8, 0.01, lambda _, points, __: counted.append(points))
    assert found.loss < 0.1 * short(start[None])[0]
    np.testing.assert_allclose(found.loss, short(found.point[None])[0])
    assert (found.point >= loss.bounds[:, 0]).all()
    assert (found.point <= loss.bounds[:, 1]).all()
    assert sum(counted) < 60


def test_evolution_is_wide_only_where_data_are_uninformative():
    informed, uninformed = np.square(
        tempered_root(Descent(np.zeros(2), 0.0, np.diag([1e4 + 1, 1.0]), True), 100.0)
    ).sum(1)
    np.testing.assert_allclose(informed, 1 / 101)
    np.testing.assert_allclose(uninformed, 1.0)


def test_evolution_stays_inside_is_never_worse_and_minds_the_budget(loss: Loss):
    few = replace(loss, windows=loss.windows.take(np.arange(4)).shortened(2))
    start = Descent(few.first, float(few(few.first[None])[0]), np.eye(len(few.first)), True)
    counted: list[int] = []
    found = evolve(few, start, 1.0, 9, 0, lambda _, points, __: counted.append(points), lambda: len(counted) < 3)
    assert counted == 3 * [SHORT_POPULATION]
    assert found.lowest < start.loss
    np.testing.assert_allclose(few(found.best[None])[0], found.lowest)
    lower, upper = few.bounds.T
    for point in (found.best, found.centre):
        assert ((lower <= point) & (point <= upper)).all()


def test_evolution_ends_when_nothing_better_comes(loss: Loss):
    few = replace(loss, windows=loss.windows.take(np.arange(4)).shortened(2))
    start = Descent(few.first, 0.0, np.eye(len(few.first)), True)  # no point is lower than that
    counted: list[int] = []
    found = evolve(few, start, 1.0, 99, 0, lambda _, points, __: counted.append(points), lambda: True)
    assert counted == PATIENCE * [SHORT_POPULATION]
    np.testing.assert_array_equal(found.best, start.point)


def test_descent_begins_at_the_lowest_initial_point(loss: Loss):
    starts = np.stack([loss.first, off_truth(loss)])
    counted: list[int] = []
    found = descend(loss, choose_jacobian(loss.scenario, "mjx")[1], starts, 0, 0.01, lambda _, n, __: counted.append(n))
    np.testing.assert_array_equal(found.point, starts[loss(starts).argmin()])
    assert counted == [2]


@pytest.mark.slow
def test_multi_start_recovers_from_a_wrong_prior_of_the_drive(loss: Loss):
    """60 ms late, nine times too stiff, an eighth of the damping."""
    truth, space = loss.scenario.space.vector(TRUTH), loss.scenario.space
    wrong = space.vector({**TRUTH, "control_delay": 0.139, "actuator_gain": 3.9, "joint_damping": 0.25})
    misled = replace(loss, prior=Prior(space.to_coordinates(wrong), space.prior_std))
    found = search_mjx(misled, 480, 0, ignore)
    at_start, at_truth, at_end = misled(
        np.clip(np.stack([misled.first, misled.points(truth), found.point]), *misled.bounds.T)
    )
    assert at_end < 1.1 * at_truth < 0.1 * at_start


def test_search_with_differences_converges_too(loss: Loss):
    found = search_mjx(loss, 60, 0, ignore, sensitivity="differences")
    assert loss(found.point[None])[0] < 0.1 * loss(np.zeros((1, len(found.point))))[0]


@pytest.mark.slow
def test_plain_descent_goes_down_but_not_as_far(loss: Loss):
    found = search_adam(loss, 60, 0, ignore)
    lower, upper = loss.bounds.T
    assert ((found.point >= lower) & (found.point <= upper)).all()
    assert found.sensitivity == "mjx"
    start, after = loss(np.stack([loss.first, found.point]))
    assert after < 0.7 * start
    np.testing.assert_allclose(found.trace[-1, 1], after, rtol=1e-6)
    assert search_mjx(loss, 60, 0, ignore).trace[-1, 1] < after


@pytest.mark.slow
def test_reaches_what_cmaes_ends_at_with_fewer_simulated_steps(loss: Loss):
    slow = search_cmaes(loss, 240, 0, ignore)
    fast = search_mjx(loss, 240, 0, ignore)
    target = slow.trace[-1, 1]
    reached = fast.trace[fast.trace[:, 1] <= target]
    assert len(reached), f"{fast.trace[-1]} against {slow.trace[-1]}"
    assert reached[0, 0] < 0.5 * slow.trace[-1, 0]


@pytest.mark.slow
def test_known_parameters_come_back():
    scenario = push_cube()
    fitting = calibrator(TuneConfig(method="mjx", fit_episodes=12), Effort(budget=360, max_windows=32))
    found = fitting.fit(scenario, (recording(episodes=24),), start_prior(scenario), 0, ignore)
    identified = {name: each for name, each in found.estimates.items() if each.verdict == "identified"}
    for name, each in identified.items():
        assert each.lower <= TRUTH[name] <= each.upper, name
    assert {"table_friction", "control_delay"} <= set(identified)
    assert found.evidence.gap_after < 0.5 * found.evidence.gap_before


def test_a_window_whose_derivatives_explode_says_nothing():
    slopes = np.random.default_rng(0).normal(size=(64, 10, 3))
    slopes[5] *= 1e4
    slopes[7, :, 2] *= 1e4  # a parameter of which few windows tell: large derivatives by it alone are no explosion
    kept = _bounded(slopes).reshape(64, 10)
    np.testing.assert_array_equal(np.flatnonzero(kept[:, 0] == 0.0), [5])
    np.testing.assert_array_equal(kept, np.repeat(kept[:, :1], 10, axis=1))
    assert _bounded(np.zeros((4, 10, 3))).all(), "nothing depends on anything"


@pytest.mark.parametrize(("windows", "bad"), [(5, 1), (16, 2), (64, 12)])
def test_explosion_is_found_among_few_windows_and_in_several(windows, bad):
    slopes = np.random.default_rng(0).normal(size=(windows, 10, 3))
    slopes[:bad] *= 1e4
    assert np.count_nonzero(_bounded(slopes) == 0.0) == 10 * bad
