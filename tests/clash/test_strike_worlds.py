"""Stand-ins of the kinds that only benchmarks know: they obey mechanics, and record what they say that they record."""

import numpy as np
import pytest

from benchmarks.strike_worlds.disturbed import with_errors, with_glitches
from benchmarks.strike_worlds.ground import Bodies, FootedBlock
from benchmarks.strike_worlds.stand_ins import KINDS, UnseenStandIn
from rsr.scenarios.built_in.strike import Strikes, load_shape, sample_strikes

SQUARE = load_shape("square")


@pytest.fixture(params=KINDS)
def stand_in(request):
    return UnseenStandIn(SQUARE, request.param, seed=1)


def test_equal_seeds_record_equal_strikes_and_other_visits_others(stand_in):
    one, again, other = (UnseenStandIn(SQUARE, stand_in.kind, 1).record(6, visit) for visit in (0, 0, 1))
    assert np.array_equal(one.after, again.after)
    assert np.array_equal(one.rest, again.rest)
    assert not np.allclose(one.after, other.after)


def test_a_strike_through_the_middle_drives_the_block_straight_ahead_and_gains_no_energy(stand_in):
    speeds = np.array([0.3, 0.5, 0.7])
    ones, (_, face) = np.ones(3), (None, SQUARE.struck_faces[0].at(np.zeros(1)))
    point, normal = (np.repeat(part, 3, axis=0) for part in face)
    recorded = stand_in.strike(Strikes(speeds, 0 * ones, point, normal), np.random.default_rng(0))
    along = (recorded.after[:, :2] * normal).sum(axis=1)
    across = np.abs(recorded.after[:, :2] - along[:, None] * normal).max(axis=1)
    # A light block leaves at 1 + e; the true centre of mass lies a little aside, so it also turns a little.
    assert (along > 0.8 * speeds).all()
    assert (along < 2.0 * speeds).all()
    assert (across < 0.1 * along).all()
    assert (np.abs(recorded.after[:, 2]) * SQUARE.gyration_m < 0.15 * along).all()
    assert ((recorded.rest[:, :2] * normal).sum(axis=1) > 0.01).all()


def test_a_strike_and_its_mirror_image_turn_the_block_opposite_ways(stand_in):
    place = np.array([-0.6, 0.6])
    point, normal = SQUARE.struck_faces[0].at(place)
    recorded = stand_in.strike(Strikes(np.full(2, 0.5), np.zeros(2), point, normal), np.random.default_rng(1))
    turning = recorded.after[:, 2] * SQUARE.gyration_m
    assert turning[0] * turning[1] < 0
    assert np.abs(turning).min() > 0.1


def test_a_block_that_only_slides_stops_where_friction_says():
    block = FootedBlock(SQUARE, 0.3, np.random.default_rng(4))
    start = Bodies(np.zeros((1, 3)), np.array([[0.5, 0.0, 0.0]]))
    path = block.slide(start, np.ones(1), 0.0005, 400, 8)
    far = float(path[-1, 0, 0])
    # v^2 / (2 mu g) with mu drawn within a fifth, growing with speed, and waves of at most an eighth over the table.
    assert 0.5**2 / (2 * 0.3 * 1.2 * 1.3 * 9.81) < far < 0.5**2 / (2 * 0.3 * 0.8 * 0.8 * 9.81)
    assert np.array_equal(path[-1], path[-2])


def test_recordings_that_err_keep_the_motion_and_glitches_keep_the_other_rows():
    recorded = UnseenStandIn(SQUARE, "patch", 0).record(40)
    erring = with_errors(recorded, np.random.default_rng(2))
    assert erring.strikes.direction == pytest.approx(recorded.strikes.direction)
    off_m = SQUARE.distances(erring.strikes.point_m)
    assert 0.0003 < off_m.mean() < 0.0015, "points err across the face too"
    turned = np.degrees(erring.strikes.angle_rad - recorded.strikes.angle_rad)
    assert 0.7 < turned.std() < 1.4
    glitched = with_glitches(recorded, np.random.default_rng(3))
    spoilt = (glitched.after != recorded.after).any(axis=1)
    assert 2 <= spoilt.sum() <= 12
    assert np.array_equal(glitched.strikes.point_m, recorded.strikes.point_m)


def test_kinds_differ_from_one_another_and_from_seed_to_seed():
    strikes = sample_strikes(SQUARE, 5, np.random.default_rng(5))
    seen = [
        UnseenStandIn(SQUARE, kind, seed).strike(strikes, np.random.default_rng(6)).after
        for kind in KINDS
        for seed in (0, 1)
    ]
    for one in range(4):
        for other in range(one):
            assert np.abs(seen[one] - seen[other]).max() > 0.02
