"""Identification: known contacts are found from three pushes, and what cannot be identified from is refused."""

from dataclasses import replace

import numpy as np
import pytest
from pushes_at_hand import KNOWN, WORLD, noisy, pushed
from shared_data import tosses

from rsr.errors import CalibrationError, SessionError, WorkspaceError
from rsr.gnn.augmentation import rotated
from rsr.gnn.identification import Judge, identify
from rsr.gnn.recorded import from_sessions
from rsr.gnn.scenes import cube_world
from rsr.gnn.teachers import load_teacher, save_teacher
from rsr.gnn.trajectories import Trajectory, load_trajectories
from rsr.scenarios import load_scenario
from rsr.scenarios.two_cubes import ContactParameters
from rsr.sessions import Episode


def recordings(noise_m: float = 3e-4, count: int = 3, seed: int = 0) -> list[Trajectory]:
    """Pushes of known contacts as a camera sees them, each under a heading of its own."""
    rng = np.random.default_rng(seed)
    truth = [pushed(speed, aside) for speed, aside in ((0.8, 0.01), (1.1, -0.012), (0.95, 0.0), (1.2, 0.02))[:count]]
    return [
        noisy(rotated(each, angle), rng, noise_m) for each, angle in zip(truth, (0.3, 2.0, -1.1, 1.0), strict=False)
    ]


@pytest.fixture(scope="module")
def found():
    return identify(recordings(noise_m=5e-5), evaluations=240, seed=1)


def test_known_contacts_are_found(found):
    """By a good camera: friction to a tenth, and the pushes. Stiffness and damping hide behind each other."""
    assert found.contact.mu == pytest.approx(KNOWN.mu, rel=0.1)
    assert found.error < 0.1 * found.default_error
    assert found.evaluations == 240
    assert found.warnings == ()


def test_unseen_pushes_are_predicted_better_than_by_the_defaults(found):
    unseen = Judge(recordings(seed=9, count=4)[3:])
    assert unseen.mean(found.contact) < 0.64 * unseen.mean(ContactParameters())


def test_noisy_recordings_are_explained_as_well_as_by_the_true_contacts():
    noisy_ones = Judge(recordings())
    assert identify(noisy_ones, evaluations=240, seed=1).error < noisy_ones.mean(KNOWN)


def test_equal_seeds_find_equal_contacts_on_any_threads():
    recorded = recordings(count=1)
    one = identify(recorded, evaluations=40, seed=3, threads=1)
    assert identify(recorded, evaluations=40, seed=3, threads=2) == one
    assert identify(recorded, evaluations=40, seed=4).contact != one.contact
    assert one.evaluations == 40


def test_the_search_keeps_to_table_two():
    found = identify(recordings(count=1), evaluations=32, seed=0).contact
    assert 0 <= found.mu <= 1
    assert np.all(np.array(found.solimp) >= [0.9, 0.95, 1e-4, 1e-3, 1])
    assert np.all(np.array(found.solimp) <= [0.95, 0.99, 1e-2, 1e-1, 5])
    assert 1e-3 <= found.solref[0] <= 0.1
    assert 0.1 <= found.solref[1] <= 10


def test_the_error_is_that_of_equation_one():
    """A cube seen 8 mm aside in every frame is a tenth of its side off: 0.1 for each frame after the first two."""
    still = Trajectory(cube_world(1), np.tile([0.0, 0, 0.04, 1, 0, 0, 0], (20, 1, 1)))
    moving = np.tile(still.poses, (1, 1, 1))
    moving[:, 0, 0] += 0.5 * np.arange(20) / 60
    slide = still.with_poses(moving)
    judge = Judge([slide])
    expected = 0.0
    simulated = judge([ContactParameters(mu=0.0)])[0, 0]
    assert simulated == pytest.approx(expected, abs=0.05)
    aside = moving.copy()
    aside[2:, 0, 1] += 0.008
    bent = Judge([replace(slide, poses=aside)])
    assert bent([ContactParameters(mu=0.0)])[0, 0] == pytest.approx(18 * 0.1, rel=0.05)


def test_frames_in_which_a_tag_jumped_do_not_count():
    clean, jumping = recordings(count=1), recordings(count=1)
    poses = jumping[0].poses.copy()
    poses[12, 1, :2] += 0.015
    jumping = [jumping[0].with_poses(poses)]
    errors = [Judge(each).mean(KNOWN) for each in (clean, jumping)]
    assert Judge(jumping).recorded[0].jumped.sum() == 1
    assert errors[1] < errors[0] + 0.1  # it would add 0.19, and the start is estimated from one frame less
    assert identify(jumping, evaluations=16).jumps == 1


def test_trajectories_of_different_worlds_and_lengths_are_judged_together():
    alone = noisy(pushed(0.9, frames=14), np.random.default_rng(2))
    single = Trajectory(cube_world(1), pushed(0.4).poses[:, :1], name="one cube")
    judge = Judge([alone, single, recordings(count=1)[0]])
    assert judge([KNOWN, ContactParameters()]).shape == (2, 3)


def test_contacts_with_which_mujoco_diverges_are_only_bad():
    worst = Judge(recordings(count=1)).mean(ContactParameters(0.3, (0.9, 0.95, np.nan, 0.5, 2.0), (0.02, 1.0)))
    assert np.isfinite(worst)
    assert worst >= 0


def test_real_tosses_are_predicted_better_than_by_the_defaults():
    """ContactNets' recordings: fitted to six throws, judged by ten others."""
    throws: dict[str, Episode] = {}
    for episode in tosses().episodes:
        throws.setdefault(episode.tags["physical_toss"], episode)
    parts = [replace(tosses(), episodes=tuple(throws.values())[rows]) for rows in (slice(0, 6), slice(20, 30))]
    fitted, unseen = (Judge(from_sessions(load_scenario("cube_toss"), [part])) for part in parts)
    found = identify(fitted, evaluations=48, seed=0)
    assert 0.05 < found.contact.mu < 0.3  # published: 0.15 and 0.18
    assert unseen.mean(found.contact) < 0.64 * unseen.mean(ContactParameters())


@pytest.mark.parametrize(
    ("trajectories", "message"),
    [
        ([], "identification: got no trajectory"),
        ([Trajectory(WORLD, np.tile(pushed().poses[:1], (20, 1, 1)), name="still")], "'still': got bodies at rest"),
        ([pushed(), replace(pushed(), dt_s=1 / 30)], "got trajectories with 16.67, 33.33 ms between frames"),
    ],
)
def test_what_tells_nothing_is_refused(trajectories, message):
    with pytest.raises(SessionError) as caught:
        identify(trajectories, evaluations=16)
    assert message in str(caught.value)


def test_a_search_of_nothing_is_refused():
    with pytest.raises(CalibrationError, match="got 0 evaluations"):
        identify(recordings(count=1), evaluations=0)


def test_a_cube_that_is_never_hit_is_named():
    missed = noisy(pushed(0.9, aside_m=0.2), np.random.default_rng(5))
    found = identify([missed], evaluations=16)
    assert found.warnings == ("cube2 is at rest throughout: nothing is known of what it touches but the floor",)


def test_a_teacher_is_stored_and_damage_is_named(tmp_path, found):
    steady = Judge(recordings()).trajectories
    save_teacher(tmp_path, found, steady, "two_cubes", seed=1)
    assert load_teacher(tmp_path) == found.contact
    np.testing.assert_array_equal(load_trajectories(tmp_path / "recorded.npz")[1].poses, steady[1].poses)
    with pytest.raises(WorkspaceError, match="expected a teacher that `rsr gnn identify` wrote"):
        load_teacher(tmp_path / "elsewhere")
    (tmp_path / "teacher.json").write_text('{"version": 1, "contact": {"mu": 1}}')
    with pytest.raises(WorkspaceError, match=r"teacher\.json: got 'solimp'"):
        load_teacher(tmp_path)
