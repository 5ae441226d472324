"""Contact laws that a network is told: drawn, kept in files, and obeyed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pushes_at_hand import KNOWN, WORLD, Scaling, generate_trajectories, load_scaled, pushed

from rsr.errors import ConfigError
from rsr.gnn.graph import scenes_of
from rsr.gnn.impulse import ImpulseNetwork, ImpulseSettings
from rsr.gnn.laws import NUMBERS, Laws, sample_laws
from rsr.gnn.simulator import predict
from rsr.gnn.storage import load_network, new_network, save_network
from rsr.gnn.teacher import teacher_model, with_laws
from rsr.gnn.training import TrainingSettings, fine_tune, train_network
from rsr.gnn.trajectories import Trajectory, load_trajectories, save_trajectories
from rsr.scenarios import load_scenario
from rsr.scenarios.two_cubes import ContactParameters

SLIPPERY = replace(KNOWN, mu=0.15)
TOLD = slice(9, 9 + len(NUMBERS))
"""Columns of a round's first layer."""
QUICK = TrainingSettings(steps=2, batch=4, unroll=2)


def heedful() -> ImpulseNetwork:
    """An untrained network for which it matters much what it is told."""
    network = new_network("impulse", 1, laws=True).requires_grad_(False)
    assert isinstance(network, ImpulseNetwork)
    network.rounds[0].contact[0].weight[:, TOLD] *= 20
    return network


def largest_difference(one: list[np.ndarray], other: list[np.ndarray]) -> float:
    return max(float(np.abs(first - second).max()) for first, second in zip(one, other, strict=True))


def test_coordinates_are_those_of_the_laws_and_lie_within_the_ranges_of_the_scenario():
    laws = Laws(KNOWN, SLIPPERY)
    there_and_back = Laws.at(laws.coordinates).coordinates
    np.testing.assert_allclose(there_and_back, laws.coordinates, atol=1e-12)
    assert not np.array_equal(laws.coordinates[0], laws.coordinates[1])
    space, rng = load_scenario("two_cubes").space, np.random.default_rng(0)
    assert tuple(each.name for each in space) == NUMBERS
    for drawn in (sample_laws(rng) for _ in range(50)):
        for contact in (drawn.floor, drawn.bodies):
            values = np.array([contact.mu, *contact.solimp, *contact.solref])
            assert (values >= space.lower - 1e-9).all()
            assert (values <= space.upper + 1e-9).all()
        assert drawn.floor != drawn.bodies


def test_floor_and_bodies_obey_laws_of_their_own_in_mujoco():
    model = with_laws(teacher_model(WORLD, ContactParameters()), Laws(KNOWN, SLIPPERY))
    for name, contact in (("floor_body0", KNOWN), ("floor_body1", KNOWN), ("body0_body1", SLIPPERY)):
        pair = model.pair(name).id
        np.testing.assert_allclose(model.pair_friction[pair, :2], contact.mu)
        np.testing.assert_allclose(model.pair_solref[pair, :2], contact.solref)
        np.testing.assert_allclose(model.pair_solimp[pair], contact.solimp)


@pytest.mark.parametrize("kind", ["cubes", "varied"])
def test_trajectories_carry_the_laws_they_came_about_under(tmp_path: Path, kind: str):
    drawn = load_scaled(generate_trajectories(None, tmp_path / "one", 3, Scaling(kind, frames=6), 4))
    again = load_scaled(generate_trajectories(None, tmp_path / "other", 3, Scaling(kind, frames=6), 4, threads=1))
    assert len({each.world.laws for each in drawn}) == 3
    for one, other in zip(drawn, again, strict=True):
        np.testing.assert_array_equal(one.poses, other.poses)
    scenes = scenes_of([each.world for each in drawn])
    assert not scenes.laws.isnan().any()
    np.testing.assert_allclose(scenes.laws[0].numpy(), drawn[0].world.laws.coordinates, atol=1e-6)


def test_files_keep_laws_and_their_absence(tmp_path: Path):
    plain, laws = pushed(), Laws(KNOWN, SLIPPERY)
    under = Trajectory(replace(plain.world, laws=laws), plain.poses)
    save_trajectories([plain, under], tmp_path / "some.npz")
    without, found = load_trajectories(tmp_path / "some.npz")
    assert without.world.laws is None
    np.testing.assert_allclose(found.world.laws.coordinates, laws.coordinates)
    save_trajectories([plain], tmp_path / "none.npz")
    assert load_trajectories(tmp_path / "none.npz")[0].world.laws is None


def test_a_network_obeys_what_it_is_told_and_first_of_all_what_the_world_says(tmp_path: Path):
    network, push = heedful(), pushed()
    grippy, slippery = (network.obeying(Laws.same(each)) for each in (replace(KNOWN, mu=0.55), SLIPPERY))
    assert largest_difference(predict(grippy, [push]), predict(slippery, [push])) > 1e-4
    said = Trajectory(replace(push.world, laws=Laws.same(SLIPPERY)), push.poses)
    assert largest_difference(predict(grippy, [said]), predict(slippery, [push])) < 1e-5
    together = predict(grippy, [said, push])
    assert largest_difference(together, [*predict(slippery, [push]), *predict(grippy, [push])]) < 1e-4
    save_network(slippery, tmp_path)
    assert largest_difference(predict(load_network(tmp_path), [push]), predict(slippery, [push])) == 0


def test_floor_and_bodies_are_told_apart():
    network, push = heedful(), pushed(1.0, 0.0)
    alone = Trajectory(replace(WORLD, bodies=WORLD.bodies[:1]), push.poses[:, :1])

    def apart(one: Laws, other: Laws, given: Trajectory) -> float:
        return largest_difference(*(predict(network.obeying(laws), [given]) for laws in (one, other)))

    same = Laws.same(KNOWN)
    assert apart(same, Laws(KNOWN, SLIPPERY), alone) == 0
    assert apart(same, Laws(KNOWN, SLIPPERY), push) > 1e-6
    assert apart(same, Laws(SLIPPERY, KNOWN), alone) > 1e-6


def test_a_network_of_one_law_is_widened_without_a_change():
    network, push = new_network("impulse", 2).requires_grad_(False), pushed()
    assert isinstance(network, ImpulseNetwork)
    wide = network.widened()
    assert wide.settings == ImpulseSettings(laws=True)
    for laws in (Laws.same(KNOWN), Laws.same(SLIPPERY)):
        assert largest_difference(predict(network, [push]), predict(wide.obeying(laws), [push])) < 1e-6
    with pytest.raises(ConfigError, match="a network that knows one contact law only"):
        network.obeying(Laws.same(KNOWN))


def test_training_on_laws_makes_a_network_that_is_told_them(tmp_path: Path):
    drawn = load_scaled(generate_trajectories(None, tmp_path, 4, Scaling("cubes", frames=8), 4))
    learnt = train_network(drawn, QUICK)
    assert learnt.settings.laws
    assert not train_network([pushed()], QUICK).settings.laws
    assert not train_network([*drawn, pushed()], QUICK).settings.laws
    wide = new_network("impulse", 2)
    assert isinstance(wide, ImpulseNetwork)
    tuned = fine_tune(wide.widened(), drawn, QUICK)
    assert (tuned.get_submodule("rounds.0.contact.0").weight[:, TOLD] != 0).any()
