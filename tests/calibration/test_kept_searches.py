"""A fit that was killed goes on after the last search that had ended; another question is searched anew."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rsr.calibration import start_prior
from rsr.calibration.estimate import _refined
from rsr.calibration.problem.loss import Loss
from rsr.calibration.problem.windows import Windows
from rsr.calibration.search.descent import SearchResult
from rsr.calibration.search.kept import kept
from rsr.common.progress import ignore
from rsr.simulators import MujocoSimulator
from tests.calibration.recordings import TRUTH
from tests.push_samples import push_cube, pushes

STEPS, COUNT = 6, 8


@pytest.fixture(scope="module")
def loss():
    scenario = push_cube()
    with MujocoSimulator(scenario, threads=1) as simulator:
        starts, commands = pushes(count=COUNT, steps=40)
        values, commands = scenario.space.vector(TRUTH), commands[:, : scenario.history_steps + STEPS]
        real = scenario.measure(simulator.rollout(starts, commands, values)[:, 1:])
        windows = Windows(starts, commands, real, np.arange(COUNT), np.zeros(COUNT, int))
        yield Loss(scenario, simulator, windows, start_prior(scenario))


class CountedSearch:
    """Ends at once, a little beside the truth, and counts how often it was asked."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, loss: Loss, budget: int, seed: int, advance) -> SearchResult:
        self.asked += 1
        point = np.full(len(loss.bounds), 0.01 * seed)
        return SearchResult(point, "converged", np.array([[1.0, 2.0]]), "mjx", "a second search did better")


def test_what_an_earlier_process_found_is_read_back_with_equal_bytes(loss, tmp_path):
    search = CountedSearch()
    first = kept(search, tmp_path, "mjx")(loss, 100, 3, ignore)
    again = kept(search, tmp_path, "mjx")(loss, 100, 3, ignore)
    assert search.asked == 1
    assert again.point.tobytes() == first.point.tobytes()
    assert again.trace.tobytes() == first.trace.tobytes()
    assert (again.status, again.sensitivity, again.remark) == (first.status, first.sensitivity, first.remark)


@pytest.mark.parametrize("changed", ["budget", "seed", "settings", "recordings", "prior", "weights"])
def test_another_question_is_searched_anew(loss, tmp_path, changed):
    search = CountedSearch()
    kept(search, tmp_path, "mjx")(loss, 100, 3, ignore)
    real = {name: rows + 1e-6 for name, rows in loss.windows.real.items()}
    other = {
        "recordings": replace(loss, windows=replace(loss.windows, real=real)),
        "prior": replace(loss, prior=replace(loss.prior, std=2.0 * loss.prior.std)),
        "weights": replace(loss, least_noises=5.0),
    }.get(changed, loss)
    settings, budget = ("cmaes" if changed == "settings" else "mjx"), (90 if changed == "budget" else 100)
    kept(search, tmp_path, settings)(other, budget, 4 if changed == "seed" else 3, ignore)
    assert search.asked == 2


def test_a_file_that_was_cut_is_searched_anew(loss, tmp_path):
    search = CountedSearch()
    kept(search, tmp_path, "mjx")(loss, 100, 3, ignore)
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:50])
    kept(search, tmp_path, "mjx")(loss, 100, 3, ignore)
    assert search.asked == 2


def test_averaging_roughness_never_ends_above_what_the_search_found(loss):
    """On real tosses a search had found 73,898, and its own refinement ended at 77,206."""
    truth = loss.points(push_cube().space.vector(TRUTH))
    found = SearchResult(truth, "converged", np.zeros((0, 2)))
    for seed in range(3):
        point, _, _ = _refined(loss, found, seed, ignore)
        assert loss(point[None])[0] <= loss(truth[None])[0]
