"""Plans: candidates of every kind of scenario, their ranking, and what the files say."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from rsr.calibration import start_calibration
from rsr.common.errors import CalibrationError, ConfigError, SessionError
from rsr.infogap import diagnose
from rsr.planning import ObservedTransitions, TransitionPairs, make_candidates, make_plan, novelty_map
from rsr.reports.plan import plan_figure
from rsr.scenarios import load_scenario
from rsr.simulators import MujocoSimulator
from tests.calibration.recordings import TRUTH, recording
from tests.planning.imagined import swings, tosses
from tests.policies.hand_made import pushing_policy
from tests.push_samples import push_cube

SESSIONS = {"push_cube": lambda _: recording(4, 60), "double_pendulum": swings, "cube_toss": tosses}
FRESH = {"push_cube": "push", "double_pendulum": "sines", "cube_toss": "throw"}


@cache
def planned(name):
    scenario = load_scenario(name)
    session = SESSIONS[name](scenario)
    return make_plan(scenario, (session,), start_calibration(scenario), candidates=8, seed=1)


@pytest.mark.parametrize("name", SESSIONS)
def test_every_scenario_gets_its_candidates(name):
    plan = planned(name)
    kinds = [each.candidate.kind for each in plan.ranked]
    assert sorted(set(kinds)) == sorted({"repeat", FRESH[name]})
    assert kinds.count("repeat") == 2
    assert len({each.candidate.name for each in plan.ranked}) == 8
    assert plan.weak == plan.scenario.space.names


@pytest.mark.parametrize("name", SESSIONS)
def test_measures_lie_where_they_must(name):
    for each in planned(name).ranked:
        assert 0 < each.novelty < 1
        assert each.nats > 0
        assert each.weak_nats == pytest.approx(each.nats), "all parameters are weak before any fit"
        assert each.most_informed in planned(name).weak
        assert each.infogap >= 0


@pytest.mark.parametrize("name", SESSIONS)
def test_what_was_recorded_is_less_new_than_what_was_not(name):
    novelty = {kind: [] for kind in ("repeat", FRESH[name])}
    for each in planned(name).ranked:
        novelty[each.candidate.kind].append(each.novelty)
    assert np.mean(novelty["repeat"]) < np.mean(novelty[FRESH[name]])


def test_a_session_tells_more_with_each_episode_and_less_than_the_sum():
    plan = planned("push_cube")
    nats = [reached for _, reached in plan.session]
    assert nats[0] == pytest.approx(max(each.weak_nats for each in plan.ranked))
    gains = np.diff([0.0, *nats])
    assert (gains > 0).all()
    assert (np.diff(gains) < 1e-9).all(), "diminishing"


def test_equal_arguments_make_equal_plans():
    again = make_plan(push_cube(), (recording(4, 60),), start_calibration(push_cube()), candidates=8, seed=1).document()
    assert again == planned("push_cube").document()
    other = make_plan(push_cube(), (recording(4, 60),), start_calibration(push_cube()), candidates=8, seed=2)
    assert other.document() != again


def test_what_is_known_is_not_asked_for():
    """Only the cube's mass is weak: waving candidates would tell nothing, and the ranking goes by the mass."""
    scenario, start = push_cube(), start_calibration(push_cube())
    estimates = {
        name: replace(each, verdict="weak" if name == "cube_mass" else "identified")
        for name, each in start.estimates.items()
    }
    plan = make_plan(scenario, (recording(4, 60),), replace(start, estimates=estimates), candidates=6, seed=1)
    assert plan.weak == ("cube_mass",)
    assert {each.most_informed for each in plan.ranked} == {"cube_mass"}
    assert all(each.weak_nats < each.nats for each in plan.ranked)


def test_candidates_stay_within_what_was_commanded():
    scenario = load_scenario("double_pendulum")
    session = swings(scenario)
    sent = np.concatenate([scenario.commands(episode) for episode in session.episodes])
    for each in make_candidates(scenario, (session,), scenario.space.nominal, 8, seed=0):
        assert (each.commands >= sent.min(axis=0)).all()
        assert (each.commands <= sent.max(axis=0)).all()
        assert each.commands.shape[1] == 2


def test_pushes_push():
    scenario = push_cube()
    pushes = [each for each in planned("push_cube").ranked if each.candidate.kind == "push"]
    moved = [np.linalg.norm(each.path[-1, :2] - each.path[0, :2]) for each in pushes]
    assert np.median(moved) > 0.05
    assert all(len(each.path) == scenario.episode_steps + 1 for each in pushes)


def test_a_policy_may_act_from_fresh_starts():
    scenario = push_cube()
    made = make_candidates(scenario, (recording(2, 60),), scenario.space.nominal, 8, seed=0, policy=pushing_policy())
    kinds = [each.kind for each in made]
    assert (kinds.count("repeat"), kinds.count("push"), kinds.count("policy")) == (2, 3, 3)
    pendulum = load_scenario("double_pendulum")
    with pytest.raises(ConfigError, match="scenario double_pendulum, which has no task"):
        make_candidates(pendulum, (swings(pendulum),), pendulum.space.nominal, 8, seed=0, policy=pushing_policy())


def test_pairs_see_the_gap_close():
    scenario = push_cube()
    pairs = TransitionPairs(scenario, (recording(6, 80),), 300, np.random.default_rng(0))
    noise = ObservedTransitions(scenario).noise()
    nominal, truth = scenario.space.nominal, scenario.space.vector(TRUTH)
    with MujocoSimulator(scenario) as simulator:
        found = [
            diagnose(pairs.real, pairs.simulated(simulator, nominal + share * (truth - nominal)), noise=noise)
            for share in (0.0, 0.5, 1.0)
        ]
    for estimator in range(len(found[0].estimates)):
        values = [each.estimates[estimator].value for each in found]
        assert values[0] > values[1] > values[2], found[0].estimates[estimator].estimator


def test_the_picture_shades_what_is_far_from_the_recordings():
    recorded = np.random.default_rng(0).normal(0, 0.1, (200, 2))
    shade = novelty_map(recorded, np.array([0.0, 2.0]), np.array([0.0]))
    assert shade.shape == (1, 2)
    assert shade[0, 0] < 0.8 * shade[0, 1] <= 0.8


@pytest.mark.parametrize("name", SESSIONS)
def test_every_plan_has_its_picture(name):
    assert plan_figure(planned(name))[:8] == b"\x89PNG\r\n\x1a\n"


def test_bad_input_is_explained():
    scenario, session = push_cube(), recording(4, 60)
    with pytest.raises(ConfigError, match=r"1 candidates.*--candidates 32"):
        make_candidates(scenario, (session,), scenario.space.nominal, 1, seed=0)
    with pytest.raises(SessionError, match="1 episodes of at most 3 rows; expected an episode of 5 rows or more"):
        TransitionPairs(scenario, (recording(1, 2),), 10, np.random.default_rng(0))
    few = replace(session, episodes=(recording(1, 7).episodes[0],))
    with pytest.raises(CalibrationError, match="estimator doctor: real: got 4 samples"):
        make_plan(scenario, (few,), start_calibration(scenario), candidates=2)
