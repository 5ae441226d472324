"""From sessions to an adapted model: which strikes are used, which judge, and what is no strike."""

from dataclasses import replace

import numpy as np
import pytest

from rsr.calibration import next_prior, start_calibration
from rsr.common.errors import CalibrationError, ScenarioError
from rsr.common.progress import ignore
from rsr.learned.clash.calibration import adapted, joined, nominal, rest_of, tune
from rsr.learned.clash.strike_recordings import strikes_of
from rsr.pipelines.clash.calibration import as_calibration
from rsr.realities.reality import CollectionPlan
from rsr.realities.strikes import StrikeReality
from rsr.scenarios import load_scenario
from rsr.sessions import Session


@pytest.fixture(scope="module")
def scenario():
    return load_scenario("strike_square")


@pytest.fixture(scope="module")
def session(scenario) -> Session:
    return StrikeReality(scenario, 2).collect(None, CollectionPlan("session-001", 16, 3), ignore)


@pytest.fixture(scope="module")
def recordings(scenario, session):
    return strikes_of(scenario, [session])


def test_every_recording_of_the_stand_in_is_a_strike(recordings, square):
    assert recordings.rejected == ()
    assert recordings.episodes == tuple(range(16))
    strikes = recordings.strikes.strikes
    assert (square.distances(strikes.point_m) < 1e-6).all()
    assert ((strikes.speed_m_s > 0.18) & (strikes.speed_m_s < 0.82)).all()
    assert (np.linalg.norm(rest_of(recordings.strikes)[:, :2], axis=1) > 0.003).all()


def test_an_episode_without_a_strike_is_named_and_left_out(scenario, session):
    missed = session.episodes[1]
    aside = missed["block_position"] + [0.0, 0.3, 0.0]
    episodes = [session.episodes[0], replace(missed, values={**missed.values, "block_position": aside})]
    found = strikes_of(scenario, [replace(session, episodes=tuple(episodes))])
    assert found.episodes == (0,)
    ((episode, reason),) = found.rejected
    assert (episode, "misses 'square'" in reason) == (1, True)


def test_nothing_but_misses_is_refused(scenario, session):
    still = session.episodes[0]
    rested = np.tile(still["block_position"][:1], (len(still), 1))
    alone = replace(session, episodes=(replace(still, values={**still.values, "block_position": rested}),))
    with pytest.raises(CalibrationError, match="no strike in 1 episodes .the block did not move"):
        strikes_of(scenario, [alone])


def test_sessions_of_other_scenarios_are_refused(scenario, session):
    with pytest.raises(CalibrationError, match="got a session of scenario strike_square; expected one of strike"):
        strikes_of(load_scenario("strike"), [session])
    with pytest.raises(ScenarioError, match="got no section `collision`"):
        strikes_of(load_scenario("cube_toss"), [replace(session, card=replace(session.card, scenario="cube_toss"))])


def test_the_first_strikes_are_fitted_and_the_others_judge(surrogate, recordings):
    tuned = tune(surrogate, recordings, 8, nominal(surrogate))
    assert tuned.fitted == tuple(range(8))
    assert tuned.held_out == tuple(range(8, 16))
    assert len(tuned.known) == 8
    before, after = tuned.before.figures(surrogate.shape), tuned.after.figures(surrogate.shape)
    assert after.velocity_m_s < before.velocity_m_s
    assert after.strikes == 8


@pytest.mark.slow
def test_where_hardly_any_are_left_each_is_judged_without_having_been_fitted(surrogate, recordings):
    few = replace(recordings, strikes=recordings.take(np.arange(6)), episodes=recordings.episodes[:6])
    tuned = tune(surrogate, few, 6, nominal(surrogate))
    assert tuned.fitted == tuned.held_out == tuple(range(6))
    assert "judged by a model fitted without it" in tuned.how
    own = adapted(tuned.model)(few.strikes.strikes)[0]
    assert not np.allclose(own[:3], tuned.after.after[:3]), "judged by the model that was fitted to them"


@pytest.mark.slow
def test_a_glitched_strike_is_named_in_the_calibration(scenario, surrogate, recordings):
    spoilt = recordings.strikes.after.copy()
    spoilt[2] *= -1
    glitched = replace(recordings, strikes=replace(recordings.strikes, after=spoilt))
    prior = next_prior(scenario, start_calibration(scenario))
    found = as_calibration(scenario, tune(surrogate, glitched, 10, nominal(surrogate)), prior)
    clean = as_calibration(scenario, tune(surrogate, recordings, 10, nominal(surrogate)), prior)
    assert "left out as glitches, since the other strikes contradict them: rows 3 of strikes.csv" in found.warnings
    assert not any("glitches" in warning for warning in clean.warnings)
    assert found.status == "converged"


def test_earlier_strikes_are_kept(surrogate, recordings):
    first = tune(surrogate, recordings, 5, nominal(surrogate))
    second = tune(surrogate, recordings, 5, adapted(first.model), earlier=first.known)
    assert len(second.known) == 10
    with pytest.raises(CalibrationError, match="got strikes without rest_x"):
        rest_of(joined(replace(first.known, rest=None), second.known))
