"""What errors of trajectories mean, on poses whose errors are known."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.baselines.gnn_scenes import standing_still
from rsr.common.errors import ConfigError
from rsr.common.rotations import about_z, product
from rsr.learned.gnn.bodies import RigidBody, RigidWorld, box_mesh
from rsr.learned.gnn.evaluation import errors_of
from rsr.learned.gnn.trajectories import Trajectory

WORLD = RigidWorld(tuple(RigidBody(name, box_mesh((0.04,) * 3), 0.15) for name in ("one", "other")))


def trajectory(frames: int = 12, speed_m_s: float = 0.6) -> Trajectory:
    """The first body slides evenly along x and turns, the second rests."""
    poses = np.tile([0.0, 0, 0.04, 1, 0, 0, 0], (frames, 2, 1))
    poses[:, 0, 0] = speed_m_s * np.arange(frames) / 60
    poses[:, 0, 3:] = about_z(np.deg2rad(2.0) * np.arange(frames))
    poses[:, 1, 1] = 0.3
    return Trajectory(WORLD, poses, name=f"of {frames}")


def test_a_perfect_prediction_has_no_error():
    recorded = [trajectory(12), trajectory(20)]
    errors = errors_of(recorded, [each.poses for each in recorded])
    assert errors.position_mm() == 0
    assert errors.mean_rotation_deg() == pytest.approx(0, abs=1e-5)
    assert errors.median_fraction() == 0


def test_standing_still_misses_what_moved_on():
    errors = errors_of([trajectory(12)], standing_still([trajectory(12)]))
    # 10 mm and 2 degrees a frame, of one body of two.
    assert errors.position_mm(1) == pytest.approx(10 / 2)
    assert errors.position_mm() == pytest.approx(100 / 2)
    assert errors.rotation_deg(3) == pytest.approx(6 / 2)
    assert errors.position_percent() == pytest.approx(100 * 0.055 / 0.08 / 2)
    position_mm, rotation_deg = errors.per_frame()
    np.testing.assert_allclose(position_mm, 5 * np.arange(1, 11))
    np.testing.assert_allclose(rotation_deg, np.arange(1, 11))


def test_a_quaternion_and_its_negative_are_one_orientation():
    recorded = trajectory()
    turned = recorded.poses * np.where(np.arange(7) < 3, 1, -1)
    assert errors_of([recorded], [turned]).rotation_deg() == pytest.approx(0, abs=1e-5)
    turned[..., 3:] = product(about_z(np.full(1, np.pi / 2)), turned[..., 3:])
    assert errors_of([recorded], [turned]).rotation_deg() == pytest.approx(90)


def test_what_is_not_finite_counts_as_infinitely_wrong():
    broken = trajectory().poses.copy()
    broken[5:] = np.nan
    errors = errors_of([trajectory()], [broken])
    assert errors.position_mm() == np.inf
    assert errors.position_mm(2) == 0


def test_it_says_which_frames_there_are():
    errors = errors_of([trajectory(12), trajectory(20)], [trajectory(12).poses, trajectory(20).poses])
    with pytest.raises(ConfigError, match=r"got 11 frames; expected 1 to 10: the shortest trajectory"):
        errors.position_mm(11)


def test_predictions_of_another_length_are_refused():
    with pytest.raises(ConfigError, match=r"trajectory 'of 12': got predicted poses of shape \[11, 2, 7\]"):
        errors_of([trajectory(12)], [trajectory(12).poses[:-1]])
