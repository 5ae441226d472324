from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from convex_pairs import random_body
from pushes_at_hand import pushed

from benchmarks.baselines.gnn_fignet import FigNetwork, new_fignet
from benchmarks.baselines.gnn_shape_matching import matched, nearest_rotation, quaternion
from rsr.common.errors import CalibrationError, ConfigError
from rsr.common.rotations import angle_between
from rsr.learned.gnn.bodies import RigidBody, RigidWorld, box_mesh
from rsr.learned.gnn.contact_network import ContactNetwork, rollout, rollout_scenes, start_state
from rsr.learned.gnn.graph import scenes_of
from rsr.learned.gnn.rigid import exponential, matrix, normalised, product
from rsr.learned.gnn.storage import load_network, new_network, save_network

KINDS = {"impulse": new_network, "fignet": new_fignet}
CUBE = RigidBody("cube", box_mesh((0.04,) * 3), 0.15)
DT_S = 1 / 60


def _network(kind: str, seed: int = 0) -> ContactNetwork:
    return KINDS[kind](seed).double().requires_grad_(False)


def _starts(*speeds: float) -> torch.Tensor:
    """Two cubes that are about to meet, [B, 2, 2, 7]."""
    return torch.tensor(np.stack([pushed(speed).poses[2:4] for speed in speeds]))


WORLD = pushed().world


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_of_scenes_of_different_size_moves_as_each_does_alone(kind: str) -> None:
    rng, network = np.random.default_rng(0), _network(kind)
    worlds = [RigidWorld(tuple(random_body(rng) for _ in range(count))) for count in (2, 1, 3)]
    places = rng.uniform(-0.05, 0.05, (6, 3)) + np.array([0, 0, 0.06])
    first = np.concatenate([places, np.tile([1.0, 0, 0, 0], (6, 1))], axis=1)
    second = first + np.pad(rng.normal(size=(6, 3)) * 0.002, ((0, 0), (0, 4)))
    both = torch.tensor(np.stack([first, second]))
    together = rollout_scenes(network, scenes_of(worlds, torch.float64), both, 4)
    for world, rows in zip(worlds, (slice(0, 2), slice(2, 3), slice(3, 6)), strict=True):
        alone = rollout(network, world, both[:, rows][None], 4)[0]
        torch.testing.assert_close(together[:, rows], alone)


def test_the_impulse_network_keeps_momentum_and_falls_freely() -> None:
    network = _network("impulse")
    falling = RigidWorld((CUBE,), floor=False)
    start = torch.tensor([[[0.0, 0, 1, 1, 0, 0, 0]], [[0.01, 0, 1, 1, 0, 0, 0]]], dtype=torch.float64)
    poses = rollout(network, falling, start[None], 10)[0, :, 0]
    frame = torch.arange(1, 11).double()
    torch.testing.assert_close(poses[:, 0], 0.01 * (1 + frame))
    torch.testing.assert_close(poses[:, 2], 1 - 9.81 * DT_S**2 * frame * (frame + 1) / 2)
    floating = RigidWorld(
        tuple(replace(body, mass_kg=mass) for body, mass in zip(WORLD.bodies, (0.1, 0.3), strict=True))
    )
    floating = replace(floating, floor=False, gravity_m_s2=0.0)
    starts = _starts(1.2)
    after = rollout(network, floating, starts, 8)
    centres = torch.cat([starts, after], dim=1)[..., :3]
    momentum = torch.tensor([0.1, 0.3], dtype=torch.float64) @ (centres[:, 1:] - centres[:, :-1])
    torch.testing.assert_close(momentum, momentum[:, :1].expand_as(momentum), atol=1e-12, rtol=0)
    assert (centres[:, -1, 1] - centres[:, 0, 1]).norm() > 0.01


def test_turning_the_scene_turns_the_motion_of_the_impulse_network() -> None:
    network, starts = _network("impulse"), _starts(1.0)
    turn = exponential(torch.tensor([0.0, 0, 1.1], dtype=torch.float64))

    def turned(poses: torch.Tensor) -> torch.Tensor:
        places = poses[..., :3] @ matrix(turn).T
        return torch.cat([places, product(turn.expand(*poses.shape[:-1], 4), poses[..., 3:])], dim=-1)

    after = rollout(network, WORLD, turned(starts), 6)
    torch.testing.assert_close(after, turned(rollout(network, WORLD, starts, 6)))


def test_what_happens_far_away_changes_nothing() -> None:
    """The floor that all bodies stand on carries no messages between them."""
    network = _network("impulse")
    world = RigidWorld((*WORLD.bodies, CUBE))
    alone = rollout(network, WORLD, _starts(1.0), 6)
    for shift in (0.0, 0.02):
        third = torch.tensor([5.0, 0, 0.04, 1, 0, 0, 0]).expand(1, 2, 1, 7).double().clone()
        third[:, 1, :, 0] += shift
        after = rollout(network, world, torch.cat([_starts(1.0), third], dim=2), 6)
        torch.testing.assert_close(after[:, :, :2], alone)


def _by_velocity(network: ContactNetwork, frames: int) -> Callable[[torch.Tensor], torch.Tensor]:
    """How far the cubes get, of ten pushes, as a function of what is added to the pushed cube's velocity [10, 2]."""
    starts = _starts(*np.linspace(0.6, 1.5, 10))

    def moved(velocity: torch.Tensor) -> torch.Tensor:
        shift = torch.zeros_like(starts)
        shift[:, 1, 0, :2] = velocity * DT_S
        poses = rollout(network, WORLD, starts + shift, frames)
        return (poses[:, -1, :, :2] - starts[:, 1, :, :2]).square().sum((1, 2))

    return moved


def test_gradients_of_twenty_frames_are_those_of_differences() -> None:
    moved = _by_velocity(_network("impulse"), 20)
    velocity = torch.zeros(10, 2, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(moved(velocity).sum(), velocity)
    assert torch.isfinite(gradient).all()
    with torch.no_grad():
        steps = 1e-6 * torch.eye(2, dtype=torch.float64)
        differences = torch.stack([(moved(step) - moved(-step)) / 2e-6 for step in steps], dim=1)
    assert (torch.nn.functional.cosine_similarity(gradient, differences) > 0.95).sum() >= 9


def test_gradients_of_fignet_are_finite() -> None:
    """Its faces come and go abruptly, so differences across many frames are no measure."""
    moved = _by_velocity(_network("fignet"), 20)
    velocity = torch.zeros(10, 2, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(moved(velocity).sum(), velocity)
    assert torch.isfinite(gradient).all()
    assert (gradient.norm(dim=1) > 0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_reach_masses_forces_and_weights(kind: str) -> None:
    network = KINDS[kind]().double()
    masses = torch.tensor([0.15, 0.15], dtype=torch.float64, requires_grad=True)
    forces = torch.zeros(1, 6, 2, 3, dtype=torch.float64, requires_grad=True)
    end = rollout(network, WORLD, _starts(1.2), 6, masses_kg=masses, forces_n=forces)[0, -1, :, :3].square().sum()
    gradients = torch.autograd.grad(end, [masses, forces, *network.parameters()], allow_unused=True)
    reached = [bool(gradient.any()) for gradient in gradients if gradient is not None]
    assert all(torch.isfinite(gradient).all() for gradient in gradients if gradient is not None)
    assert reached[:2] == [True, True]
    assert sum(reached) > 0.7 * len(gradients)


def test_gradients_of_masses_and_forces_are_those_of_differences() -> None:
    network = _network("impulse")

    def end(inputs: torch.Tensor) -> torch.Tensor:
        """From two masses and a force on the first cube [5]."""
        forces = torch.zeros(1, 10, 2, 3, dtype=torch.float64)
        forces[:, :, 0] = inputs[2:]
        poses = rollout(network, WORLD, _starts(1.2), 10, masses_kg=inputs[:2], forces_n=forces)
        return poses[0, -1, :, :2].square().sum()

    inputs = torch.tensor([0.15, 0.2, 0, 0, 0], dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(end(inputs), inputs)
    with torch.no_grad():
        steps = 1e-7 * torch.eye(5, dtype=torch.float64)
        differences = torch.stack([(end(inputs + step) - end(inputs - step)) / 2e-7 for step in steps])
    torch.testing.assert_close(gradient, differences, rtol=1e-3, atol=1e-6)


def test_fignet_moves_alike_with_either_detection() -> None:
    pytest.importorskip("coal", reason="needs coal: pip install coal")
    network, starts = _network("fignet"), _starts(1.0)
    state = start_state(starts[0], DT_S)
    scenes = scenes_of([WORLD], torch.float64)
    coal = pytest.importorskip("benchmarks.baselines.gnn_coal", exc_type=ImportError)
    by_coal = FigNetwork(network.settings, coal.coal_face_pairs).double().requires_grad_(False)
    by_coal.load_state_dict(network.state_dict())
    ours, theirs = network(scenes, state), by_coal(scenes, state)
    # Coal lists more faces, those behind one another; so alike, not equal.
    assert (ours.positions_m - theirs.positions_m).norm() < 0.5 * (ours.positions_m - state.positions_m).norm() + 1e-3


def test_shape_matching_recovers_motions_and_has_a_gradient_for_a_cube() -> None:
    rng = np.random.default_rng(0)
    corners = torch.as_tensor(CUBE.mesh.vertices_m)[None]
    turn = normalised(torch.tensor(rng.normal(size=(1, 4))))
    points = corners @ matrix(turn).mT + torch.tensor([0.1, 0.2, 0.3])
    rotation, place = matched(corners, points, torch.ones(1, 8).double())
    torch.testing.assert_close(rotation, matrix(turn))
    torch.testing.assert_close(place, torch.tensor([[0.1, 0.2, 0.3]]).double())
    # A cube's three singular values are equal, where the gradient of the SVD itself is infinite.
    assert torch.autograd.gradcheck(nearest_rotation, torch.eye(3).double()[None].requires_grad_())
    assert torch.autograd.gradcheck(nearest_rotation, torch.tensor(rng.normal(size=(4, 3, 3)), requires_grad=True))
    small = exponential(torch.tensor(rng.normal(size=(20, 3)) * 0.5))
    assert float(angle_between(quaternion(matrix(small)).numpy(), small.numpy()).max()) < 1e-7


def test_a_network_comes_back_from_its_folder_with_equal_bytes(tmp_path: Path) -> None:
    network = new_network(seed=3, dt_s=1 / 148)
    save_network(network, tmp_path / "a")
    again = load_network(tmp_path / "a")
    save_network(again, tmp_path / "b")
    for name in ("network.json", "network.npz"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    assert again.settings.dt_s == pytest.approx(1 / 148)
    assert not any(weight.requires_grad for weight in again.parameters())
    other = new_network(seed=4, dt_s=1 / 148)
    assert any(not torch.equal(one, two) for one, two in zip(network.parameters(), other.parameters(), strict=True))


def test_damaged_folders_and_wrong_starts_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CalibrationError, match="Correct the folder, or calibrate again"):
        load_network(tmp_path)
    save_network(new_network(), tmp_path)
    card = json.loads((tmp_path / "network.json").read_text())
    for wrong in ({"version": 0}, {"kind": "transformer"}, {"settings": {"width": 7}}, {"settings": {"depth": 7}}):
        (tmp_path / "network.json").write_text(json.dumps(card | wrong))
        with pytest.raises((CalibrationError, ConfigError)):
            load_network(tmp_path)
    with pytest.raises(ConfigError, match="two frames of 2 poses"):
        rollout(_network("impulse"), WORLD, _starts(1.0)[:, :1], 5)
