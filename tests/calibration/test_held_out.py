"""Held-out evidence: which episodes it uses, and that a right simulator has none but noise."""

from dataclasses import replace

import numpy as np
import pytest

from rsr.calibration.problem import Division
from rsr.calibration.problem.held_out import HeldOut, channel_rms, folds, replay, split
from rsr.common.errors import CalibrationError
from rsr.simulators import MujocoSimulator
from tests.calibration.recordings import TRUTH, recording
from tests.push_samples import push_cube


@pytest.fixture(scope="module")
def simulator():
    with MujocoSimulator(push_cube()) as simulator:
        yield simulator


@pytest.mark.parametrize(("episodes", "most", "fitted"), [(12, 6, 6), (12, 2, 2), (3, 2, 2), (12, 11, 6), (30, 29, 20)])
def test_split_is_seeded_and_holds_out_ten_or_half(episodes, most, fitted):
    several = (recording().episodes * 3)[:episodes]
    first, again, other = (split(push_cube(), several, most, np.random.default_rng(seed)) for seed in (0, 0, 1))
    assert first == again != other
    assert len(first[0]) == fitted
    assert sorted(first[0] + first[1]) == list(range(episodes))


@pytest.mark.parametrize("count", [2, 3, 12])
def test_where_all_may_be_fitted_all_are_and_are_held_out_in_turn(count):
    episodes = recording().episodes[:count]
    everyone = tuple(range(count))
    assert split(push_cube(), episodes, count, np.random.default_rng(0)) == (everyone, everyone)
    fitted, held_out = split(push_cube(), episodes, count, np.random.default_rng(0), in_turn=False)
    assert sorted(fitted + held_out) == list(everyone)
    parts = folds(push_cube(), episodes, everyone, np.random.default_rng(0), Division())
    assert len(parts) == {2: 2, 3: 3, 12: 2}[count]
    assert sorted(index for part in parts for index in part) == list(everyone)


def test_repeats_of_a_trial_stay_together():
    scenario = replace(push_cube(), repeats_share="throw")
    throws = "aabbccddeeff"
    episodes = [
        replace(episode, tags={"throw": throw}) for episode, throw in zip(recording().episodes, throws, strict=True)
    ]
    for seed in range(5):
        fitted, held_out = split(scenario, episodes, 6, np.random.default_rng(seed))
        assert not {throws[i] for i in fitted} & {throws[i] for i in held_out}
        one, other = folds(scenario, episodes, range(12), np.random.default_rng(seed), Division())
        assert not {throws[i] for i in one} & {throws[i] for i in other}
    with pytest.raises(CalibrationError, match="got 2 of one trial; expected at least 2 episodes of different trials"):
        split(scenario, episodes[:2], 6, np.random.default_rng(0))


def test_one_episode_is_too_few_to_hold_one_out():
    with pytest.raises(CalibrationError) as error:
        split(push_cube(), recording().episodes[:1], 32, np.random.default_rng(0))
    assert str(error.value) == (
        "sessions to calibrate on: got 1 of one trial; expected at least 2 episodes of different trials: one to fit, "
        "one to hold out. Record more episodes, or name a further session."
    )


def test_the_true_parameters_predict_within_the_noise(simulator):
    """Restarted every second row from noisy states, nothing but noise remains."""
    scenario, episodes = push_cube(), recording().episodes[:4]
    errors = [
        channel_rms(scenario, episodes, replay(scenario, simulator, episodes, values, horizon_steps=2))
        for values in (scenario.space.nominal, scenario.space.vector(TRUTH))
    ]
    for observed in scenario.observed:
        noise = observed.noise * np.sqrt(observed.channel.width)
        assert errors[1][observed.channel.name] < 2 * noise
    assert errors[1]["joint_position"] < 0.2 * errors[0]["joint_position"]


def test_longer_horizons_are_harder(simulator):
    scenario, episodes = push_cube(), recording().episodes
    gaps = [
        channel_rms(scenario, episodes, replay(scenario, simulator, episodes, scenario.space.vector(TRUTH), steps))[
            "block_position"
        ]
        for steps in (2, 10, 40)
    ]
    assert gaps == sorted(gaps)


def test_replays_begin_with_the_recorded_rows_and_fill_the_last_window(simulator):
    scenario, episode = push_cube(), recording().episodes[0]
    (states,) = replay(scenario, simulator, [episode], scenario.space.vector(TRUTH), horizon_steps=20)
    assert states.shape == (81, scenario.state_size)
    np.testing.assert_array_equal(states[:4], scenario.states(episode)[:4])
    assert np.isfinite(states).all()
    assert not np.array_equal(states[-1], scenario.states(episode)[-1])


def test_episodes_of_different_length_are_compared_and_shown(simulator):
    scenario = push_cube()
    long, short = recording().episodes[:2]
    short = replace(
        short, time_s=short.time_s[:50], values={name: values[:50] for name, values in short.values.items()}
    )
    held_out = HeldOut(scenario, simulator, (long, short), fitted=(), held_out=(0, 1))
    before, after = (held_out.replays(values) for values in (scenario.space.nominal, scenario.space.vector(TRUTH)))
    evidence = held_out.evidence(before, after)
    assert evidence.gap_after < 0.5 * evidence.gap_before
    shown = held_out.shown(before, after)
    assert shown.real.shape == shown.before.shape == shown.after.shape == (2, 81, 3)
    np.testing.assert_array_equal(shown.real[1, 50:], np.tile(short["block_position"][-1], (31, 1)))


def test_the_shown_replays_say_where_simulations_were_put_back_on_the_recording(simulator):
    scenario, episode = push_cube(), recording().episodes[0]
    held_out = HeldOut(scenario, simulator, (episode,), fitted=(), held_out=(0,), horizon_steps=20)
    replayed = held_out.replays(scenario.space.nominal)
    shown = held_out.shown(replayed, replayed)
    (anew,) = replay(scenario, simulator, [episode], scenario.space.nominal, horizon_steps=1)
    same = (shown.before[0] == scenario.measure(anew)["block_position"]).all(axis=-1)
    assert shown.restarts.tolist() == [scenario.history_steps + 20 * number for number in (1, 2, 3)]
    assert same[shown.restarts + 1].all()
    assert not same[shown.restarts].any()
