"""Structures: applied to the model, refused where wrong, selected without the held-out episodes, stored."""

from __future__ import annotations

from dataclasses import replace

import mujoco
import numpy as np
import pytest

from rsr.calibration import Effort, calibrator, load_calibration, save_calibration, start_prior
from rsr.calibration.search.halving import describe, select_structure
from rsr.common.errors import CalibrationError, ScenarioError
from rsr.common.progress import ignore
from rsr.config import TuneConfig
from rsr.scenarios import load_scenario, structured
from rsr.scenarios.structure import candidates, parse_structure
from rsr.sessions import Card, Episode, Session
from rsr.simulators import MujocoSimulator
from tests.calibration.recordings import recording
from tests.push_samples import push_cube


def tosses_of(scenario, count: int = 8, rows: int = 60) -> Session:
    """A cube thrown onto the board of this simulator, with the scenario's noise."""
    rng, model = np.random.default_rng(0), scenario.base_model
    start = np.tile(np.concatenate([model.qpos0, np.zeros(model.nv)]), (count, 1))
    turned = rng.normal(size=(count, 4))
    start[:, 2], start[:, 3:7] = 0.15, turned / np.linalg.norm(turned, axis=1, keepdims=True)
    start[:, 7:9], start[:, 10:] = rng.normal(0.0, 0.5, (count, 2)), rng.normal(0.0, 3.0, (count, 3))
    with MujocoSimulator(scenario) as simulator:
        states = simulator.rollout(start, np.zeros((count, rows - 1, 0)), scenario.space.nominal)
    values = {
        "cube_position": states[..., :3] + rng.normal(0.0, 0.0002, (count, rows, 3)),
        "cube_orientation": states[..., 3:7],
        "linear_velocity": states[..., 7:10],
        "angular_velocity": states[..., 10:],
    }
    time_s = np.arange(rows) * scenario.control_dt_s
    episodes = tuple(
        Episode(i, time_s, {name: rows[i] for name, rows in values.items()}, {"physical_toss": str(i)})
        for i in range(count)
    )
    card = Card("session-001", scenario.name, "stand_in", simulated=True, control_dt_s=scenario.control_dt_s)
    return Session(card, scenario.channels, episodes)


def two_cones(first: str, second: str):
    return replace(load_scenario("cube_toss"), structure=(("cone", (first, second)),))


def test_choices_reach_the_model_and_leave_the_scenario_alone():
    scenario = load_scenario("cube_toss")
    chosen = {"cone": "pyramidal", "condim": 3, "integrator": "Euler", "tolerance": 1e-6}
    model = structured(scenario, chosen).model(scenario.space.nominal)
    assert model.opt.cone == mujoco.mjtCone.mjCONE_PYRAMIDAL
    assert model.opt.integrator == mujoco.mjtIntegrator.mjINT_EULER
    assert (model.pair_dim == 3).all()
    assert model.opt.tolerance == 1e-6
    assert scenario.base_model.opt.cone == mujoco.mjtCone.mjCONE_ELLIPTIC
    assert (scenario.base_model.pair_dim == 4).all()
    assert structured(scenario, {}) is scenario


def test_the_first_candidate_is_what_the_mjcf_says():
    scenario = load_scenario("cube_toss")
    first, *others = candidates(scenario.structure)
    assert first == {"cone": "elliptic", "condim": 4, "integrator": "implicitfast"}
    assert len(others) == 11
    again = structured(scenario, first).base_model
    assert (again.opt.cone, again.opt.integrator) == (scenario.base_model.opt.cone, scenario.base_model.opt.integrator)
    np.testing.assert_array_equal(again.pair_dim, scenario.base_model.pair_dim)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"cones": ["elliptic"]}, "got 'cones'; expected one of cone, condim, integrator, tolerance"),
        ({"cone": ["round"]}, "structure, cone: got 'round'; expected one of pyramidal, elliptic"),
        ({"condim": [2]}, "got '2'; expected one of 1, 3, 4, 6"),
        ({"tolerance": ["tight"]}, "got 'tight'; expected a number above 0 and below 1"),
        (["cone"], "got list instead of a mapping"),
    ],
)
def test_wrong_choices_are_refused(entry, message):
    with pytest.raises(ScenarioError) as error:
        parse_structure(entry, "scenario.yaml, structure")
    assert message in str(error.value)


@pytest.mark.parametrize("true", ["pyramidal", "elliptic"])
def test_successive_halving_finds_the_cone_that_made_the_recordings(true):
    other = {"pyramidal": "elliptic", "elliptic": "pyramidal"}[true]
    made = structured(load_scenario("cube_toss"), {"cone": true})
    scenario = two_cones(other, true)
    selection = select_structure(scenario, tosses_of(made).episodes, start_prior(scenario), 0, ignore)
    assert selection.chosen == {"cone": true}
    assert selection.scores[f"cone {true}"] < selection.scores[f"cone {other}"]


@pytest.mark.slow
def test_the_choice_is_kept_with_the_calibration(tmp_path):
    made = structured(load_scenario("cube_toss"), {"cone": "pyramidal"})
    scenario = two_cones("elliptic", "pyramidal")
    fitting = calibrator(TuneConfig(method="cmaes", fit_episodes=4, structure=True), Effort(budget=24, max_windows=8))
    found = fitting.fit(scenario, (tosses_of(made),), start_prior(scenario), 0, ignore)
    # So small an effort may choose either; what it chose is what fits better, and what is kept.
    assert set(found.structure_losses) == {"cone elliptic", "cone pyramidal"}
    assert found.structure == {"cone": min(found.structure_losses, key=found.structure_losses.__getitem__)[5:]}
    save_calibration(found, tmp_path)
    again = load_calibration(tmp_path)
    assert (again.structure, again.structure_losses, again.checks) == (
        found.structure,
        found.structure_losses,
        found.checks,
    )


def test_structure_selection_needs_candidates():
    fitting = calibrator(TuneConfig(method="cmaes", fit_episodes=4, structure=True), Effort(budget=24, max_windows=8))
    with pytest.raises(CalibrationError, match="got no `structure`; expected options and the values to compare"):
        fitting.fit(push_cube(), (recording(),), start_prior(push_cube()), 0, ignore)


def test_choices_in_describe():
    assert describe({"cone": "elliptic", "condim": 4}) == "cone elliptic, condim 4"
