"""The stand-in for two pushed cubes: hidden, repeatable, physical, and with effects that the scenario cannot say."""

from dataclasses import replace

import mujoco
import numpy as np
import pytest

from rsr.realities._cubes import tags
from rsr.realities._cubes.table import Table
from rsr.realities._cubes.truth import draw_truth
from rsr.realities.cubes import JUDGING_SEEDS, TEST, TRAINING, TUNING_SEEDS, CubesStandIn
from rsr.scenarios import load_scenario
from rsr.sessions import check_session, read_session, write_session
from tests.realities.test_truth_is_private import CODE, ROOT, imported

LEVEL = replace(
    draw_truth(0),
    table_friction=(0.3, 0.3),
    grain=0.0,
    static_ratio=1.0,
    rate_s_m=0.0,
    slope=(0.0, 0.0),
    mass_ratio=(1.0, 1.0),
    centre_m=np.zeros((2, 3)),
)


def push(truth, speed_m_s: float, along: int = 0, frames: int = 40) -> np.ndarray:
    """How far [2] the first cube slides along x and y where nothing is in its way."""
    poses, velocities = np.tile([0, 0, 0.04, 1, 0, 0, 0.0], (2, 1)), np.zeros((2, 6))
    poses[1, :2] = 2.0
    velocities[0, along] = speed_m_s
    seen = Table(truth).push(poses, velocities, frames)
    return seen[-1, 0, :2]


def test_only_the_stand_in_reads_what_hides_in_it():
    files = [file for folder in CODE for file in (ROOT / folder).rglob("*.py")]
    for file, modules in {str(file.relative_to(ROOT)): set(imported(file)) for file in files}.items():
        if any(module.startswith("rsr.realities._cubes") for module in modules):
            assert file == "rsr/realities/cubes.py" or "/_cubes/" in file
        if "rsr.realities.cubes" in modules:
            assert file.startswith(("benchmarks/", "rsr/realities/", "rsr/pipelines/"))


def test_tuning_and_judging_are_different_tables():
    assert not set(TUNING_SEEDS) & set(JUDGING_SEEDS)
    assert len({draw_truth(seed).cube_friction for seed in (*TUNING_SEEDS, *JUDGING_SEEDS)}) == 12


def test_sessions_are_ordinary_ones_and_repeat(tmp_path):
    stand_in = CubesStandIn(0)
    training, test = stand_in.training(), stand_in.test()
    assert (len(training.episodes), len(test.episodes)) == (TRAINING, TEST) == (3, 14)
    for session in (training, test):
        check_session(session, load_scenario("two_cubes").channels)
        assert all(len(episode) == 22 for episode in session.episodes)
    stored = read_session(write_session(tmp_path, training))
    again = CubesStandIn(0).training()
    for one, other in zip(stored.episodes, again.episodes, strict=True):
        np.testing.assert_array_equal(one["cube2_position"], other["cube2_position"])
    starts = np.array([episode["cube1_position"][0] for episode in (*training.episodes, *test.episodes)])
    assert len(np.unique(starts.round(4), axis=0)) == 17


def test_a_card_says_nothing_of_the_truth():
    truth = draw_truth(1)
    told = repr(CubesStandIn(1).record("x", 1, 3).card)
    assert all(f"{value:.3g}" not in told for value in (truth.cube_friction, *truth.table_friction, truth.grain))


def test_most_pushes_hit_and_nothing_leaves_the_table():
    session = CubesStandIn(2).test()
    moved = [
        np.linalg.norm(episode["cube2_position"][-1] - episode["cube2_position"][0]) for episode in session.episodes
    ]
    assert np.mean(np.array(moved) > 0.01) > 0.7
    heights = np.concatenate([episode["cube1_position"][:, 2] for episode in session.episodes])
    assert np.abs(np.median(heights) - 0.04) < 1e-3


def test_on_an_ideal_table_coulomb_is_right():
    assert push(LEVEL, 0.8) == pytest.approx([0.8**2 / (2 * 0.3 * 9.81), 0.0], abs=1.5e-3)


def test_friction_grows_with_speed_along_the_grain_and_at_the_lowest_speeds():
    """Each effect alone shortens the way; none of them is a parameter of the scenario."""
    plain = push(LEVEL, 0.8)[0]
    assert push(replace(LEVEL, rate_s_m=0.4), 0.8)[0] < 0.93 * plain
    assert push(replace(LEVEL, static_ratio=1.25, static_speed_m_s=0.3), 0.8)[0] < 0.98 * plain
    grain = replace(LEVEL, grain=0.1)
    assert push(grain, 0.8, along=1)[1] < 0.95 * plain
    assert push(grain, 0.8, along=0)[0] > 1.05 * plain


def test_a_slope_and_another_centre_of_mass_bend_the_way():
    assert push(replace(LEVEL, slope=(0.0, 0.01)), 0.8)[1] > 1e-3
    shifted = replace(LEVEL, centre_m=np.array([[0.0, 0.004, 0.0], [0.0, 0.0, 0.0]]))
    assert np.abs(push(shifted, 0.8)[1]) < 0.02
    poses = np.array([[0, 0, 0.04, 1, 0, 0, 0], [2, 0, 0.04, 1, 0, 0, 0.0]])
    seen = Table(shifted).push(poses, np.zeros((2, 6)), 4)
    np.testing.assert_allclose(seen[-1, 0, :2], 0.0, atol=1e-4)


def test_tags_are_as_noisy_as_said_and_jump_rarely():
    poses = np.tile([0.1, 0.2, 0.04, 1, 0, 0, 0.0], (4000, 1, 1))
    measured = tags.seen(poses, np.random.default_rng(0))
    shifts = np.linalg.norm(measured[..., :3] - poses[..., :3], axis=-1)
    jumps = shifts > 0.0025
    assert 0.5 * tags.JUMP_SHARE < jumps.mean() < 2 * tags.JUMP_SHARE
    assert np.std((measured[..., :3] - poses[..., :3])[~jumps]) == pytest.approx(tags.NOISE_M, rel=0.05)
    angles = [2 * np.arccos(min(1.0, abs(row[3]))) for row in measured[~jumps]]
    assert np.mean(np.square(angles)) == pytest.approx(3 * tags.NOISE_RAD**2, rel=0.1)
    np.testing.assert_allclose(np.linalg.norm(measured[..., 3:], axis=-1), 1.0)


def test_the_axes_of_friction_are_those_of_the_world():
    """What `Table` relies on when it writes the grain."""
    table = Table(replace(LEVEL, grain=0.1))
    data = mujoco.MjData(table._model)
    data.qpos[2] = data.qpos[9] = 0.0399
    mujoco.mj_forward(table._model, data)
    frames = data.contact.frame.reshape(-1, 3, 3)
    np.testing.assert_allclose(np.abs(frames[:, 1]), np.tile([0, 1, 0], (len(frames), 1)), atol=1e-12)
