"""Windows repeat the recording, and informative ones are chosen."""

import numpy as np
import pytest

from rsr.calibration.problem.windows import MOVED_NOISES, choose, cut, motion
from tests.calibration.recordings import recording, stillness
from tests.push_samples import push_cube

STEPS = 8


@pytest.fixture(scope="module")
def windows():
    return cut(push_cube(), recording().episodes, STEPS, stride=4)


def test_windows_are_pieces_of_the_recording(windows):
    scenario, episodes = push_cube(), recording().episodes
    history = scenario.history_steps
    assert windows.first_row.min() >= history
    for index in (0, 7, len(windows) - 1):
        episode, row = episodes[windows.episode[index]], windows.first_row[index]
        np.testing.assert_array_equal(windows.starts[index], scenario.states(episode)[row])
        np.testing.assert_array_equal(windows.commands[index], episode["joint_setpoint"][row - history : row + STEPS])
        np.testing.assert_array_equal(
            windows.real["block_position"][index], episode["block_position"][row + 1 : row + STEPS + 1]
        )


def test_windows_begin_in_the_quietest_row_of_each_stride(windows):
    """Beside an impact or a kink the estimated velocity is wrong."""
    scenario, episodes = push_cube(), recording().episodes
    for index in (0, 7, len(windows) - 1):
        unrest, row = scenario.unrest(episodes[windows.episode[index]]), windows.first_row[index]
        assert unrest[row] <= 1.0
    for episode in range(3):
        rows = windows.first_row[windows.episode == episode]
        assert (np.diff(rows) < 12).all(), "not where a whole stride is disturbed"
        assert rows.max() >= len(episodes[episode]) - STEPS - 1, "shorter ones at the end"


def test_windows_at_the_end_are_shorter_and_repeat_the_last_row(windows):
    episodes = recording().episodes
    short = np.flatnonzero(windows.lengths < STEPS)
    assert len(short) > 0
    for index in short:
        rows, length = windows.real["block_position"][index], windows.lengths[index]
        assert length >= STEPS // 2
        assert windows.first_row[index] + length == len(episodes[windows.episode[index]]) - 1
        assert (rows[length:] == rows[length - 1]).all()
    np.testing.assert_array_equal(windows.inside.sum(axis=1), windows.lengths)


def test_commands_beyond_the_episode_repeat_the_nearest():
    scenario, episode = push_cube(), recording().episodes[0]
    sent = scenario.commands(episode)
    early = scenario.commands_from(episode, 0, 2)
    np.testing.assert_array_equal(early, sent[[0, 0, 0, 0, 1]])
    late = scenario.commands_from(episode, len(sent) - 1, 3)
    np.testing.assert_array_equal(late[-3:], sent[[-1, -1, -1]])


def test_shortened_windows_begin_alike(windows):
    short = windows.shortened(3)
    assert short.steps == 3
    assert short.commands.shape[1] == push_cube().history_steps + 3
    np.testing.assert_array_equal(short.real["joint_position"], windows.real["joint_position"][:, :3])
    assert windows.shortened(99).steps == STEPS


def test_informative_windows_are_preferred_and_spread_over_episodes(windows):
    scenario = push_cube()
    chosen = choose(scenario, windows, 40, np.random.default_rng(0))
    assert len(chosen) == 40
    moved = motion(scenario, chosen)
    assert (moved["block_position"] > MOVED_NOISES).sum() >= 30
    assert np.any([values > MOVED_NOISES for values in moved.values()], axis=0).all()
    counts = np.bincount(chosen.episode, minlength=12)
    assert counts.min() >= 2
    assert counts.max() <= 5
    places = set(zip(chosen.episode.tolist(), chosen.first_row.tolist(), strict=True))
    assert len(places) == 40, "no window twice"


def test_choice_follows_the_seed(windows):
    first, again, other = (choose(push_cube(), windows, 20, np.random.default_rng(seed)) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first.first_row, again.first_row)
    assert not np.array_equal(first.first_row, other.first_row)


def test_stillness_gives_no_windows():
    scenario = push_cube()
    every = cut(scenario, stillness().episodes, STEPS, stride=4)
    assert len(every) > 0
    assert len(choose(scenario, every, 40, np.random.default_rng(0))) == 0


def test_episodes_too_short_for_a_window():
    scenario = push_cube()
    none = cut(scenario, stillness().episodes, steps=500, stride=4)
    assert len(none) == 0
    assert len(choose(scenario, none, 40, np.random.default_rng(0))) == 0
