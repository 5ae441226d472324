"""Simulated strikes: their definition, symmetry, and independence of how they are batched."""

import numpy as np
import pytest

from benchmarks.baselines.strikes.mujoco import PlainRollout
from rsr.learned.clash import accuracy
from rsr.learned.clash.frame import MIRROR, geometry_of, to_contact
from rsr.scenarios.built_in.strike import Definition, Strikes, load_shape, sample_strikes, strikes_at
from rsr.simulators.strikes import Collider, FastRollout

PARAMS = np.array([0.3, 0.3, 0.3, 1.0])


@pytest.fixture(scope="module")
def collide(square):
    return Collider(square, at_once=200)


def test_the_outcome_hardly_depends_on_where_in_a_step_they_meet(square, collide):
    strikes = sample_strikes(square, 300, np.random.default_rng(0))
    params = np.tile(PARAMS, (300, 1))
    early, late = collide(strikes, params, phase=0.1), collide(strikes, params, phase=0.9)
    assert early.parted.all()
    assert accuracy(square, early.after, late.after).scaled > 0.97


def test_batches_and_threads_change_no_bit(square, collide):
    strikes = sample_strikes(square, 250, np.random.default_rng(1))
    params = np.tile(PARAMS, (250, 1))
    assert np.array_equal(
        collide(strikes, params).after, Collider(square, at_once=64, threads=1)(strikes, params).after
    )


def test_the_mirror_image_of_a_strike_has_the_mirror_image_of_its_outcome(square, collide):
    place, angle, speed = np.array([0.4, 0.7]), np.array([0.1, -0.2]), np.array([0.5, 0.3])
    params = np.tile(PARAMS, (2, 1))
    one, other = strikes_at(square, speed, place, angle), strikes_at(square, speed, -place, -angle)
    after = to_contact(square, one, collide(one, params).after)
    mirrored = to_contact(square, other, collide(other, params).after)
    assert mirrored * MIRROR == pytest.approx(after, abs=0.02)
    assert geometry_of(square, one).mirrored().across == pytest.approx(geometry_of(square, other).across)


def test_faces_that_look_alike_answer_alike(square, collide):
    """A square turned by a quarter is the same square: contact frame and network need not know which face."""
    one = strikes_at(square, np.array([0.5]), np.array([0.3]), np.array([0.1]))
    turn = np.array([[0.0, -1.0], [1.0, 0.0]])
    other = Strikes(one.speed_m_s, one.angle_rad, one.point_m @ turn.T, one.normal @ turn.T)
    found = [to_contact(square, s, collide(s, PARAMS[None]).after) for s in (one, other)]
    assert found[0] == pytest.approx(found[1], abs=0.01)
    assert geometry_of(square, one).facing_rad == pytest.approx(geometry_of(square, other).facing_rad)


def test_each_parameter_reaches_its_pair(collide, square):
    """Pairs are sorted at compile time: friction between the blocks must not end up under the block."""
    strikes = strikes_at(square, np.array([0.4]), np.array([0.6]), np.array([0.2]))
    usual = collide(strikes, PARAMS[None]).after[0]
    slick_hit = collide(strikes, np.array([[0.02, 0.3, 0.3, 1.0]])).after[0]
    slick_ground = collide(strikes, np.array([[0.3, 0.02, 0.3, 1.0]])).after[0]
    bouncy = collide(strikes, np.array([[0.3, 0.3, 0.1, 1.0]])).after[0]
    tangent = to_contact(square, strikes, np.array([usual, slick_hit]))[:, 1]
    assert abs(tangent[1]) < 0.7 * abs(tangent[0])
    assert np.linalg.norm(slick_ground[:2]) > np.linalg.norm(usual[:2])
    assert np.linalg.norm(bouncy[:2]) > 1.1 * np.linalg.norm(usual[:2])


def test_fast_and_plain_rollouts_come_to_rest_at_about_the_same_place(square):
    strikes = sample_strikes(square, 12, np.random.default_rng(2))
    plain, fast = PlainRollout(square, PARAMS)(strikes), FastRollout(square, PARAMS)(strikes)
    apart = np.linalg.norm((plain - fast)[:, :2], axis=1)
    assert np.median(apart) < 0.1 * np.median(np.linalg.norm(plain[:, :2], axis=1))


def test_a_heavier_block_leaves_more_slowly():
    light, heavy = load_shape("triangle"), load_shape("triangle", mass_kg=0.5)
    strikes = sample_strikes(light, 20, np.random.default_rng(3))
    speeds = [
        np.linalg.norm(Collider(s)(strikes, np.tile(PARAMS, (20, 1))).after[:, :2], axis=1) for s in (light, heavy)
    ]
    assert np.median(speeds[1]) < np.median(speeds[0])


def test_the_time_step_is_part_of_the_definition(square):
    """Against a step of 0.1 ms: 0.25 ms is good enough, MuJoCo's default of 2 ms is another outcome."""
    strikes = sample_strikes(square, 150, np.random.default_rng(0))
    params = np.tile(PARAMS, (150, 1))
    fine, usual, coarse = (
        Collider(square, Definition(timestep_s=step_s), at_once=150)(strikes, params).after
        for step_s in (0.0001, 0.00025, 0.002)
    )
    assert accuracy(square, usual, fine).scaled > 0.9
    assert accuracy(square, coarse, fine).scaled < 0.5
