"""Stand-ins for struck blocks: physics, repeatability, and that what hides in them stays hidden."""

import numpy as np
import pytest

from benchmarks.baselines.strikes.control import StrikeControl
from rsr.realities._strikes.hits import Scatter
from rsr.realities._strikes.truth import FAMILIES, draw_truth
from rsr.realities.strikes import JUDGING_SEEDS, TUNING_SEEDS, StrikeStandIn
from rsr.scenarios.built_in.strike import SHAPES, load_shape, strikes_at
from tests.realities.test_truth_is_private import importers


@pytest.mark.slow
def test_only_the_stand_ins_read_what_hides_in_them():
    for name in ("truth", "body", "hits", "mocap"):
        outside = {file for file in importers(f"rsr.realities._strikes.{name}") if "/_strikes/" not in file}
        assert outside <= {"rsr/realities/strikes.py"}
    reached = importers("rsr.realities.strikes")
    assert all(file.startswith(("benchmarks/", "rsr/realities/", "rsr/pipelines/")) for file in reached)


def test_tuning_and_judging_are_different_stand_ins_of_both_families():
    assert not set(TUNING_SEEDS) & set(JUDGING_SEEDS)
    assert len(JUDGING_SEEDS) >= 12
    for seeds in (TUNING_SEEDS, JUDGING_SEEDS):
        assert {draw_truth(seed).family for seed in seeds} == set(FAMILIES)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", SHAPES)
def test_blocks_are_driven_away_without_gaining_energy(name, seed):
    shape = load_shape(name)
    recorded = StrikeStandIn(shape, seed).record(60)
    speed = recorded.strikes.speed_m_s
    along = (recorded.after[:, :2] * recorded.strikes.normal).sum(axis=1)
    assert (along > 0).all()
    energy = shape.mass_kg * ((recorded.after[:, :2] ** 2).sum(axis=1) + (shape.gyration_m * recorded.after[:, 2]) ** 2)
    arm_kg = 4.0
    # Elastic at most: twice the arm's momentum change by the mean of its speeds, with room for errors of measurement.
    assert (energy < 4.4 * shape.mass_kg * speed**2 * arm_kg / (arm_kg - shape.mass_kg)).all()
    assert (np.linalg.norm(recorded.rest[:, :2], axis=1) > 0).all()


def test_recordings_repeat_and_differ_between_visits(square_block):
    stand_in = StrikeStandIn(square_block, 3)
    assert np.array_equal(stand_in.record(5).after, stand_in.record(5).after)
    assert not np.array_equal(stand_in.record(5).after, stand_in.record(5, visit=1).after)
    control = StrikeControl(square_block, 3)
    assert np.array_equal(control.record(5).after, control.record(5).after)
    assert control.record(5).rest is None


@pytest.mark.parametrize("seed", TUNING_SEEDS[:2])
def test_restitution_falls_with_speed(square_block, seed):
    """What no damping ratio can say. Without the ground, which takes a larger share from slow strikes."""
    strikes = strikes_at(square_block, np.array([0.2, 0.8]), np.zeros(2), np.zeros(2))
    one = np.ones(2)
    _, motion = StrikeStandIn(square_block, seed)._hit(strikes, Scatter(one, one, 0 * one, one), np.zeros(2))
    shares = np.linalg.norm(motion.velocity[:, :2], axis=1) / strikes.speed_m_s
    assert shares[1] < 0.97 * shares[0]


@pytest.fixture(scope="module")
def square_block():
    return load_shape("square")
