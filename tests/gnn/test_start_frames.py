"""Start velocities from noisy frames: better than backward differences, and not fooled by impacts, jumps or rest."""

import numpy as np
import pytest
from pushes_at_hand import WORLD, noisy, pushed

from rsr.common.errors import SessionError
from rsr.common.rotations import about_z, angle_between
from rsr.learned.gnn.jumps import displacements, find_jumps, lie_still, noise_of
from rsr.learned.gnn.start_frames import fit_all_first_frames, fit_first_frames, sliding_deceleration
from rsr.learned.gnn.trajectories import Trajectory


def start_velocity(trajectory: Trajectory) -> np.ndarray:
    """[n, 3]"""
    return (trajectory.poses[1, :, :3] - trajectory.poses[0, :, :3]) / trajectory.dt_s


def errors(found: list[Trajectory], truth: list[Trajectory]) -> np.ndarray:
    """[K, n], m/s."""
    pairs = zip(found, truth, strict=True)
    return np.array([np.linalg.norm(start_velocity(one) - start_velocity(other), axis=-1) for one, other in pairs])


def jumps_of(trajectory: Trajectory) -> np.ndarray:
    """[T, n]"""
    moved = displacements(trajectory.poses)
    return find_jumps(moved, noise_of(moved))


def still(trajectory: Trajectory) -> list[bool]:
    moved = displacements(trajectory.poses)
    return lie_still(moved, noise_of(moved), jumps_of(trajectory)).tolist()


def test_noise_free_frames_are_left_as_they_are():
    push = pushed()
    found = fit_first_frames(push)
    np.testing.assert_allclose(found.poses[..., :3], push.poses[..., :3], atol=5e-5)
    np.testing.assert_array_equal(found.poses[8:], push.poses[8:])
    assert not jumps_of(push).any()
    assert still(push) == [False, False]


def test_fits_beat_backward_differences():
    rng = np.random.default_rng(0)
    truth = [pushed(speed) for speed in np.linspace(0.7, 1.2, 24)]
    recorded = [noisy(each, rng) for each in truth]
    raw, fitted = errors(recorded, truth), errors(fit_all_first_frames(recorded), truth)
    assert np.median(fitted[:, 0]) < 0.7 * np.median(raw[:, 0])
    assert np.median(fitted[:, 1]) < 0.2 * np.median(raw[:, 1])  # it is at rest, and nearly always found to be
    assert sliding_deceleration(recorded) == pytest.approx(0.3 * 9.81, rel=0.25)
    estimated = np.array([noise_of(displacements(each.poses))[0] for each in recorded])
    assert np.median(estimated) == pytest.approx(3e-4, rel=0.3)


@pytest.mark.parametrize("frame", [0, 1, 3])
def test_a_jump_among_the_first_frames_does_not_become_a_velocity(frame):
    rng = np.random.default_rng(1)
    truth = [pushed(speed, frames=24) for speed in (0.4, 0.45)]  # slow enough to be hit late
    jumping = []
    for each in truth:
        poses = noisy(each, rng, 2e-4).poses
        poses[frame, 0, :3] += [0.008, -0.006, 0.004]
        jumping.append(each.with_poses(poses))
    found = [fit_first_frames(each) for each in jumping]
    assert errors(found, truth)[:, 0].max() < 0.06
    assert errors(jumping, truth)[:, 0].max() > 0.3 or frame == 3


def test_jumps_are_found_and_impacts_are_not():
    rng = np.random.default_rng(2)
    push = noisy(pushed(1.2), rng)
    assert not jumps_of(push).any()
    poses = push.poses.copy()
    poses[9, 1, :3] += [0.01, 0.0, 0.006]
    poses[14, 0, 3:] = about_z(0.5)
    assert np.argwhere(jumps_of(push.with_poses(poses))).tolist() == [[9, 1], [14, 0]]
    filled = fit_first_frames(push.with_poses(poses)).poses
    np.testing.assert_allclose(filled[9, 1, :3], push.poses[9, 1, :3], atol=0.004)  # it may be hit in between
    assert angle_between(filled[14, 0, 3:], push.poses[14, 0, 3:]) < 0.05


def test_a_tag_that_jumps_all_the_time_is_refused():
    rng = np.random.default_rng(3)
    poses = noisy(pushed(), rng).poses
    poses[3:-2:4, 1, 1] += 0.02
    poses[4, 1, 2] += 0.02
    poses[10, 1, 1] -= 0.02
    with pytest.raises(SessionError) as caught:
        fit_first_frames(pushed().with_poses(poses))
    assert "body 'cube2': got a tag that jumps in " in str(caught.value)
    assert "of 20 frames (3, " in str(caught.value)
    assert "well lit" in caught.value.next_step
    trembling = noisy(pushed(), rng, noise_m=0.006)
    with pytest.raises(
        SessionError, match=r"scatter by \d\.\d mm from frame to frame; expected at most 3% of the smallest"
    ):
        fit_first_frames(trembling)


def test_bodies_at_rest_throughout_are_refused():
    rest = Trajectory(WORLD, np.tile(pushed().poses[:1], (20, 1, 1)), name="nobody pushed")
    for resting in (rest, noisy(rest, np.random.default_rng(4))):
        with pytest.raises(SessionError, match="'nobody pushed': got bodies at rest throughout, but for noise of"):
            fit_first_frames(resting)


def test_a_struck_body_that_is_missed_is_said_to_be_still():
    missed = noisy(pushed(0.9, aside_m=0.2), np.random.default_rng(5))
    assert still(missed) == [False, True]


def test_a_body_that_flies_keeps_its_fall():
    time_s = np.arange(12) / 60
    poses = np.tile([0.0, 0, 0, 1, 0, 0, 0], (12, 2, 1))
    poses[:, 0, 2] = 1 + 0.5 * time_s - 0.5 * 9.81 * time_s**2
    poses[:, 1, 0] = 0.7 * time_s
    flight = Trajectory(WORLD, poses)
    found = [fit_first_frames(noisy(flight, np.random.default_rng(seed), 1e-4), 3.0) for seed in range(10)]
    assert errors(found, [flight] * 10)[:, 0].mean() < 0.02
