"""Strikes from motion capture: what MuJoCo did is found again in noisy frames, and unusable recordings are named."""

from dataclasses import replace

import mujoco
import numpy as np
import pytest

from rsr.common.rotations import rotated, yaw_of
from rsr.learned.clash import relative_errors
from rsr.learned.clash.extraction import StrikeTrajectory, extract_strikes
from rsr.scenarios.built_in.strike import Definition, load_shape, scene_xml, strikes_at
from rsr.simulators.strikes import Collider, set_parameters

PARAMS = np.array([0.3, 0.3, 0.3, 1.0])
FRAME_STEPS = 16  # of 0.25 ms: 250 Hz


@pytest.fixture(scope="module")
def strikes(square):
    return strikes_at(square, np.array([0.4, 0.6, 0.7]), np.array([0.2, -0.5, 0.6]), np.array([0.1, 0.0, -0.2]))


@pytest.fixture(scope="module")
def trajectories(square, strikes):
    rng = np.random.default_rng(0)
    return [film(square, strikes.take(slice(row, row + 1)), rng) for row in range(3)]


def film(square, strike, rng, nose_radius_m=Definition.nose_radius_m) -> StrikeTrajectory:
    """Strike in MuJoCo from 3 cm away on, seen at 250 Hz with a tenth of a millimetre of noise."""
    model = mujoco.MjModel.from_xml_string(scene_xml(square, Definition(nose_radius_m=nose_radius_m)))
    set_parameters(model, PARAMS)
    data = mujoco.MjData(model)
    yaw = float(strike.yaw_rad[0])
    data.qpos[:2] = rotated(strike.normal * nose_radius_m - strike.point_m, strike.yaw_rad)[0]
    data.qpos[2] = 0.02
    data.qpos[3], data.qpos[6] = np.cos(yaw / 2), np.sin(yaw / 2)
    data.qpos[7], data.qvel[6] = -0.03, strike.speed_m_s[0]
    rows = []
    for _ in range(300):
        rows.append([data.time, *data.qpos[:2], yaw_of(data.qpos[None, 3:7])[0], data.qpos[7]])
        if data.qpos[7] > -0.001 and data.qvel[6] > 0:
            data.qfrc_applied[6] = -4.0 * 13.0
        elif data.qvel[6] <= 0:
            data.qfrc_applied[6], data.qvel[6] = 0.0, 0.0
        mujoco.mj_step(model, data, nstep=FRAME_STEPS)
    time_s, x, y, turn, rail = np.array(rows).T
    block = np.column_stack([x, y, np.unwrap(turn)]) + rng.normal(0, [1e-4, 1e-4, 1e-3], (300, 3))
    return StrikeTrajectory(time_s, block, np.column_stack([rail, np.zeros(300)]) + rng.normal(0, 1e-4, (300, 2)))


def test_strikes_are_found_again_in_frames(square, strikes, trajectories):
    found = extract_strikes(square, trajectories)
    assert found.rejected == ()
    assert found.kept == (0, 1, 2)
    recorded = found.recorded
    assert recorded.strikes.speed_m_s == pytest.approx(strikes.speed_m_s, rel=0.02)
    assert recorded.strikes.angle_rad == pytest.approx(strikes.angle_rad, abs=0.03)
    assert recorded.strikes.point_m == pytest.approx(strikes.point_m, abs=0.0015)
    assert recorded.strikes.normal == pytest.approx(strikes.normal, abs=1e-6)
    after = Collider(square)(strikes, np.tile(PARAMS, (3, 1))).after
    assert np.median(relative_errors(recorded.after, after, square.gyration_m)) < 0.1
    assert found.ground_friction == pytest.approx(0.3, rel=0.15)
    assert (np.linalg.norm(recorded.rest[:, :2], axis=1) > 0.01).all()


@pytest.mark.parametrize("offset_m", [(0.003, 0.0), (-0.005, 0.003)])
def test_millimetres_between_robot_and_cameras_are_found_and_taken_off(square, strikes, trajectories, offset_m):
    off = [replace(each, nose=each.nose + np.array(offset_m)) for each in trajectories]
    found = extract_strikes(square, off)
    assert found.kept == (0, 1, 2)
    assert found.recorded.strikes.point_m == pytest.approx(strikes.point_m, abs=0.002)
    assert found.recorded.strikes.angle_rad == pytest.approx(strikes.angle_rad, abs=0.03)


def test_the_nose_may_be_larger(square, strikes):
    """Followed as if it were smaller, an oblique one seems to touch beside the place where it does."""
    filmed = film(square, strikes.take(slice(2, 3)), np.random.default_rng(1), nose_radius_m=0.02)
    found = extract_strikes(square, [filmed], nose_radius_m=0.02)
    assert found.rejected == ()
    assert found.recorded.strikes.point_m == pytest.approx(strikes.point_m[2:3], abs=0.001)
    smaller = extract_strikes(square, [filmed]).recorded
    assert np.linalg.norm(smaller.strikes.point_m - strikes.point_m[2:3]) > 0.0015


def test_each_unusable_recording_is_rejected_with_its_reason(square, trajectories):
    good = trajectories[1]
    onset = int(np.argmax(np.linalg.norm(good.block[:, :2] - good.block[0, :2], axis=1) > 0.001))
    holes = good.block.copy()
    holes[50] = np.nan

    def cut(frames):
        return StrikeTrajectory(good.time_s[frames], good.block[frames], good.nose[frames])

    stuck = good.nose.copy()
    stuck[onset:] += good.block[onset:, :2] - good.block[onset, :2]
    again = good.nose.copy()
    again[-20:] = good.block[-20:, :2] + rotated(np.array([-0.04, 0.0]), good.block[-20:, 2])
    bad = {
        "markers were lost": replace(good, block=holes),
        "did not move": cut(slice(0, onset - 2)),
        "begins less than": cut(slice(onset - 3, None)),
        "ends before the block rests": cut(slice(0, onset + 20)),
        "misses 'square'": replace(good, nose=good.nose + np.array([0.0, 0.2])),
        "never parted": replace(good, nose=stuck),
        "struck twice": replace(good, nose=again),
    }
    found = extract_strikes(square, [good, *bad.values()])
    assert found.kept == (0,)
    for (place, reason), words in zip(found.rejected, bad, strict=True):
        assert words in reason, (place, reason)


def test_nothing_usable_is_nothing(square, trajectories):
    still = replace(trajectories[0], block=np.zeros_like(trajectories[0].block))
    found = extract_strikes(square, [still])
    assert found.recorded is None
    assert found.ground_friction is None
    assert "did not move" in found.rejected[0][1]


def test_another_shape_is_noticed(trajectories):
    tiny = load_shape("triangle")
    found = extract_strikes(replace(tiny, outline=tiny.outline * 0.2), trajectories)
    assert len(found.rejected) > 0
