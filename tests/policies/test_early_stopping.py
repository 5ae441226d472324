"""A training ends when success has levelled off; what it learns until then, and its bytes, do not depend on checks."""

from dataclasses import replace

import numpy as np
import pytest
from own_arm import write_own_arm
from stable_baselines3.common.callbacks import CallbackList

from rsr.common.files import sha256
from rsr.environments.vector import TaskVecEnv
from rsr.policies.early_stopping import (
    EPISODES,
    LAST_CHECKS,
    Check,
    EarlyStopping,
    distance_of_checks,
    ended,
    judge_in,
    levelled_off,
    standard_error,
    within_error_of_best,
)
from rsr.policies.training import PPOSettings, SACSettings, Trained, make_learner, train
from rsr.scenarios import Scenario, load_scenario

STEPS, CHECKS = 40_960, 16
"""Of the budget: 20 rollouts of 64 copies."""
SETTINGS = {
    "ppo": PPOSettings(STEPS, 64, 32, epochs=1, hidden=(8, 8), checkpoint_rollouts=3, checks=CHECKS),
    "sac": SACSettings(STEPS, 64, 32, gradient_steps=1, hidden=(8, 8), checkpoint_rollouts=3, checks=CHECKS),
}
EASY, HOPELESS = "tolerance=7.0", "tolerance=1e-9"


@pytest.fixture(scope="module", params=["ppo", pytest.param("sac", marks=pytest.mark.slow)])
def settings(request) -> PPOSettings | SACSettings:
    return SETTINGS[request.param]


def arm(folder, tolerance: str) -> Scenario:
    """Three joints that count as arrived within a tolerance; episodes of half a second."""
    path = write_own_arm(folder)
    path.write_text(path.read_text().replace("episode_steps: 40", "episode_steps: 10"))
    task = folder / "task.py"
    task.write_text(task.read_text().replace("tolerance=0.1", tolerance))
    return load_scenario(path)


@pytest.fixture(scope="module")
def easy(tmp_path_factory) -> Scenario:
    return arm(tmp_path_factory.mktemp("easy"), EASY)


def trained(scenario: Scenario, settings, said: list[str] | None = None, **more) -> Trained:
    def advance(fraction: float, words: str = "") -> None:
        if said is not None:
            said.append(words)

    return train(scenario, more.pop("params", scenario.space.nominal), settings, 3, advance, **more)


def test_success_that_rises_has_not_levelled_off():
    assert not levelled_off([0.1 * number for number in range(10)])


def test_success_that_does_not_rise_for_some_checks_has_levelled_off():
    level = [0.9] * LAST_CHECKS
    assert levelled_off([0.1, 0.5, *level])
    assert not levelled_off([0.1, 0.5, *level[1:]])
    assert not levelled_off(level[1:]), "too few checks"


def test_success_that_falls_has_levelled_off():
    assert levelled_off([0.9] * 4 + [0.5] * 4)


def test_a_rise_that_is_lost_in_the_scatter_of_the_checks_is_none():
    jitter = np.array([1, -1, -1, 1, 1, -1, -1, 1]) * 0.02  # has no trend of its own
    error = np.sqrt(jitter @ jitter / 6 / 42)
    rising = 0.7 + np.outer([0.9, 1.1], error * np.arange(LAST_CHECKS)) + jitter
    assert [levelled_off(each.tolist()) for each in rising] == [True, False]


def ended_early(curve, scatter: float, trainings: int = 200) -> float:
    """Share of trainings ended before their budget, whose success follows a curve and scatters from check to check."""
    rng, early = np.random.default_rng(0), 0
    for _ in range(trainings):
        checks = []
        for number in range(20):
            share = np.clip(curve(number) + scatter * rng.normal(), 0.0, 1.0)
            checks.append(rng.binomial(EPISODES, share) / EPISODES)
            early += levelled_off(checks)
            if levelled_off(checks):
                break
    return early / trainings


def test_scatter_of_the_policy_itself_does_not_end_a_training_that_rises():
    def rising(number):
        return 0.1 + 0.03 * number

    assert ended_early(rising, 0.0) < 0.02
    assert ended_early(rising, 0.06) < 0.2
    assert ended_early(rising, 0.10) < 0.5


def test_success_that_scatters_about_a_level_has_levelled_off():
    assert ended_early(lambda number: 0.8 * (1 - np.exp(-number / 1.5)), 0.06) > 0.98


def test_less_than_one_more_episode_is_no_rise():
    once = 1 / EPISODES
    assert levelled_off([1 - once] * 7 + [1.0])
    assert not levelled_off([1 - (7 - number) * once for number in range(LAST_CHECKS)])


def test_a_policy_that_ends_just_within_the_tolerance_goes_on_while_it_ends_nearer():
    high = [0.97] * LAST_CHECKS
    nearer = [0.30 + 0.01 * number for number in range(LAST_CHECKS)]
    assert not levelled_off(high, nearer)
    assert levelled_off(high, [0.33] * LAST_CHECKS), "no nearer"
    assert levelled_off(high, [0.3 + each for each in nearer]), "near enough"
    assert levelled_off([0.6] * LAST_CHECKS, nearer), "far from success: that alone decides"


def test_the_room_that_is_left_is_of_the_tolerance(easy, tmp_path):
    """One policy, judged by two tolerances; where success is a function of one's own, no tolerance says it."""
    made = trained(easy, replace(SETTINGS["ppo"], train_steps=2048))
    own = arm(tmp_path / "own", "tolerance=7.0")
    task = tmp_path / "own" / "task.py"
    task.write_text(
        task.read_text().replace("reset=reset,", "reset=reset, success=lambda each: each['q'][..., 0] < 9,")
    )
    rooms = {}
    for name, scenario in (
        ("easy", easy),
        ("half", arm(tmp_path / "half", "tolerance=3.5")),
        ("own", load_scenario(own.file)),
    ):
        envs = TaskVecEnv(scenario, scenario.space.nominal, 64, 3)
        learner = make_learner(envs, SETTINGS["ppo"], 3)
        learner.go_on_from(made.state)
        rooms[name] = judge_in(scenario, scenario.space.nominal, 3)(learner).room
        envs.close()
    assert 1.0 - rooms["half"] == pytest.approx(2 * (1.0 - rooms["easy"]), rel=1e-6)
    assert rooms["own"] == 1.0


@pytest.mark.parametrize(("tolerance", "anew"), [(EASY, False), (HOPELESS, True)])
def test_a_training_that_goes_on_explores_anew_only_where_the_earlier_policy_fails(tmp_path, tolerance, anew):
    scenario = arm(tmp_path, tolerance)
    first = trained(scenario, replace(SETTINGS["ppo"], train_steps=2048))
    quiet = {**first.state, "net.log_std": np.full_like(first.state["net.log_std"], -3.0)}
    slow = replace(SETTINGS["ppo"], train_steps=STEPS // 2, checks=2, learning_rate=1e-9)
    further = trained(scenario, slow, state=quiet)
    expected = np.log(slow.continued_std) if anew else -3.0
    np.testing.assert_allclose(further.state["net.log_std"], expected, atol=1e-3)


def test_a_slow_rise_is_seen_in_checks_that_scatter_as_much():
    """As push_t went on in its second training, seed 0, stand-in 1: 0.7 points a check."""
    assert not levelled_off([0.45, 0.59, 0.62, 0.69, 0.66, 0.69, 0.73, 0.68, 0.72, 0.70, 0.74])


def test_a_task_in_which_nothing_succeeds_yet_has_not_levelled_off():
    assert not levelled_off([0.0] * 20)
    assert not levelled_off([0.0, 1 / EPISODES] + [0.0] * 20), "once by chance"


def test_a_share_of_none_or_all_is_uncertain_too():
    assert 0 < standard_error(0.0) < 2 / EPISODES
    assert standard_error(1.0) == pytest.approx(standard_error(0.0))


def test_the_newest_is_kept_unless_the_best_is_better_than_chance_explains():
    assert within_error_of_best([0.2, 0.9, 0.87])
    assert not within_error_of_best([0.2, 0.9, 0.85])
    assert within_error_of_best([1.0, 1.0 - 1 / EPISODES]), "one episode of 128 may fail"
    assert not within_error_of_best([1.0, 1.0 - 3 / EPISODES])


def test_checks_take_no_more_steps_than_what_they_check(easy):
    assert distance_of_checks(easy, 1_000_000, 20) == 50_000
    assert distance_of_checks(easy, 1_000, 20) == EPISODES * easy.episode_steps


def test_training_ends_where_success_has_levelled_off_and_says_so(easy, settings, tmp_path):
    said: list[str] = []
    first = trained(easy, settings, said)
    first.save(tmp_path / "first")
    trained(easy, settings).save(tmp_path / "second")
    assert sha256(tmp_path / "first") == sha256(tmp_path / "second")
    steps = [check["steps"] for check in first.policy.card["checks"]]
    assert steps[0] == 0
    assert len(steps) == LAST_CHECKS
    assert steps[-1] < STEPS / 2
    assert [check["success"] for check in first.policy.card["checks"]] == [1.0] * len(steps)
    assert first.ended == (
        f"{steps[-1]:,} of {STEPS:,} steps, as success had levelled off; policy of step {steps[-1]:,} kept, "
        "100% success without exploring"
    )
    assert said[-1] == f"ended after {first.ended}"
    assert first.policy.card["ended"] == first.ended


def test_checks_change_nothing_of_what_is_learnt(easy, settings):
    checked, whole = trained(easy, settings), trained(easy, replace(settings, checks=0))
    assert len(checked.curve) < len(whole.curve)
    assert whole.curve[: len(checked.curve)] == checked.curve
    assert whole.ended == ""
    assert whole.policy.card["checks"] == []


def test_a_training_that_was_killed_ends_at_the_same_bytes(easy, settings, tmp_path):
    path, copy = tmp_path / ".training.npz", tmp_path / "copy.npz"

    def keep_the_first(fraction: float, words: str = "") -> None:
        if path.exists() and not copy.exists():
            copy.write_bytes(path.read_bytes())

    nominal = easy.space.nominal
    train(easy, nominal, settings, 3, keep_the_first, checkpoint=path).save(tmp_path / "whole")
    copy.rename(path)
    trained(easy, settings, checkpoint=path).save(tmp_path / "resumed")
    assert sha256(tmp_path / "resumed") == sha256(tmp_path / "whole")


def test_where_nothing_succeeds_all_of_the_budget_is_used(tmp_path):
    found = trained(arm(tmp_path, HOPELESS), SETTINGS["ppo"])
    assert found.curve[-1]["steps"] == STEPS
    assert found.ended == f"all of {STEPS:,} steps; policy of step {STEPS:,} kept, 0% success without exploring"


def test_copies_with_parameters_of_their_own_are_all_judged(easy):
    nominal = easy.space.nominal
    params = np.stack([nominal * factor for factor in np.linspace(0.9, 1.1, 64)])
    assert trained(easy, SETTINGS["ppo"], params=params).ended == trained(easy, SETTINGS["ppo"]).ended


def test_a_policy_that_is_lost_again_is_not_the_one_that_is_kept(easy, monkeypatch):
    """The checks of this training are given; it must end with what it knew at the best of them."""
    shares = iter([0.1, 0.9, 0.5, 0.4, 0.3, 0.2, 0.2, 0.2])
    states = []

    def judge(learner):
        states.append({name: array.copy() for name, array in learner.knowledge().items()})
        return Check(next(shares), 1.0)

    monkeypatch.setattr("rsr.policies.training.judge_in", lambda *_: judge)
    found = trained(easy, SETTINGS["ppo"])
    best = int(found.policy.card["checks"][1]["steps"])
    assert f"policy of step {best:,} kept, 90% success" in found.ended
    assert states[1].keys() == found.state.keys()
    for name, array in states[1].items():
        np.testing.assert_array_equal(found.state[name], array, err_msg=name)
    assert any(not np.array_equal(states[-1][name], array) for name, array in states[1].items())


def test_success_is_that_of_the_policy_as_it_is_deployed(easy, tmp_path):
    """From starts that belong to the seed: twice the same, and others for another seed."""
    hard = arm(tmp_path, "tolerance=0.3")
    seen: list[list[Check]] = []

    def noting(learner):
        seen.append([judge_in(hard, hard.space.nominal, seed)(learner) for seed in (3, 3, 4)])
        return seen[-1][0]

    settings = SETTINGS["ppo"]
    envs = TaskVecEnv(hard, hard.space.nominal, settings.copies, 3)
    learner = make_learner(envs, settings, 3)
    stopping = EarlyStopping(learner, noting, STEPS, 4 * 2048, lambda fraction, words="": None)
    learner.model.learn(4 * 2048, CallbackList([stopping]))
    envs.close()
    assert all(first == again for first, again, _ in seen)
    assert any(first != other for first, _, other in seen)
    assert ended(learner.checks, learner.kept_steps, STEPS).startswith(f"{4 * 2048:,} of")
