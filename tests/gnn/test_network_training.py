from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from pushes_at_hand import KNOWN, pushed

from benchmarks.baselines.gnn_scenes import rollout_in_mujoco, standing_still
from rsr.common.errors import CalibrationError, ConfigError
from rsr.common.rotations import angle_between
from rsr.learned.gnn.contact_network import start_state
from rsr.learned.gnn.evaluation import errors_of
from rsr.learned.gnn.simulator import predict
from rsr.learned.gnn.storage import new_network
from rsr.learned.gnn.training import TrainingSettings, fine_tune, train_network
from rsr.learned.gnn.training_windows import windows_of
from rsr.learned.gnn.trajectories import Trajectory

QUICK = TrainingSettings(steps=10, batch=4, unroll=3)
PUSHES = [pushed(speed, aside) for speed in (0.7, 1.0, 1.3) for aside in (0.0, 0.02)]
FILES = ("network.json", "network.npz")


class Killed(Exception):
    pass


def _killed_at(fraction: float):
    def advance(done: float, words: str) -> None:
        if done >= fraction:
            raise Killed

    return advance


def _bytes(folder: Path) -> list[bytes]:
    return [(folder / name).read_bytes() for name in FILES]


def test_a_training_that_was_killed_ends_with_the_same_bytes(tmp_path: Path) -> None:
    train_network(PUSHES, QUICK, 1, folder=tmp_path / "whole")
    with pytest.raises(Killed):
        train_network(PUSHES, QUICK, 1, _killed_at(0.5), folder=tmp_path / "killed")
    assert (tmp_path / "killed" / "checkpoint.npz").is_file()
    assert not (tmp_path / "killed" / "network.npz").exists()
    seen: list[float] = []
    train_network(PUSHES, QUICK, 1, lambda done, words: seen.append(done), folder=tmp_path / "killed")
    assert min(seen) > 0.5
    assert _bytes(tmp_path / "whole") == _bytes(tmp_path / "killed")
    assert not (tmp_path / "killed" / "checkpoint.npz").exists()


def test_a_checkpoint_of_another_training_is_not_gone_on_from(tmp_path: Path) -> None:
    train_network(PUSHES, QUICK, 1, folder=tmp_path / "whole")
    for number, (settings, seed, data) in enumerate(
        [(QUICK, 2, PUSHES), (replace(QUICK, rate=1e-3), 1, PUSHES), (QUICK, 1, PUSHES[:-1])]
    ):
        folder = tmp_path / str(number)
        with pytest.raises(Killed):
            train_network(data, settings, seed, _killed_at(0.3), folder=folder)
        train_network(PUSHES, QUICK, 1, folder=folder)
        assert _bytes(folder) == _bytes(tmp_path / "whole")
    (folder / "checkpoint.npz").write_bytes(b"cut")
    train_network(PUSHES, QUICK, 1, folder=folder)
    assert _bytes(folder) == _bytes(tmp_path / "whole")


def test_training_lowers_the_error_and_keeps_its_curve(tmp_path: Path) -> None:
    held_out = [pushed(1.1, 0.01)]
    settings = TrainingSettings(steps=100, batch=16, unroll=2, long_from=1, rate=4e-3)
    network = train_network(PUSHES, settings, 0, folder=tmp_path)
    still = errors_of(held_out, standing_still(held_out)).position_mm()
    assert errors_of(held_out, predict(network, held_out)).position_mm() < 0.5 * still
    header, *rows = (tmp_path / "curve.csv").read_text().splitlines()
    assert header == "step,cpu_s,loss"
    table = np.array([[float(word) for word in row.split(",")] for row in rows])
    assert table[-1, 0] == settings.steps
    assert table[-1, 2] < 0.6 * table[0, 2]
    assert (np.diff(table[:, 1]) > 0).all()


@pytest.mark.slow
def test_fine_tuning_fits_recordings_and_leaves_the_network_as_it_was() -> None:
    network = train_network(PUSHES, replace(QUICK, steps=40))
    before = [weight.clone() for weight in network.parameters()]
    rough = replace(KNOWN, mu=0.8)
    recorded = [
        push.with_poses(rollout_in_mujoco(push.world, rough, push.start[None], len(push))[0]) for push in PUSHES[:3]
    ]
    settings = TrainingSettings(steps=30, batch=8, rate=3e-3, long_from=0, noise_m=0, unroll=6)
    tuned = fine_tune(network, recorded, settings)
    errors = [errors_of(recorded, predict(of, recorded)).position_mm() for of in (network, tuned)]
    assert errors[1] < 0.8 * errors[0]
    assert all(torch.equal(one, two) for one, two in zip(before, network.parameters(), strict=True))


def test_another_network_does_not_go_on_from_the_checkpoint(tmp_path: Path) -> None:
    one, other = (new_network(seed, dt_s=PUSHES[0].dt_s) for seed in (0, 1))
    with pytest.raises(Killed):
        train_network(PUSHES[:2], QUICK, 0, _killed_at(0.5), network=one, folder=tmp_path)
    trained = train_network(PUSHES[:2], QUICK, 0, network=copy.deepcopy(other), folder=tmp_path)
    expected = train_network(PUSHES[:2], QUICK, 0, network=other)
    assert all(torch.equal(one, two) for one, two in zip(trained.parameters(), expected.parameters(), strict=True))


def test_windows_hold_the_frames_that_were_recorded() -> None:
    long, short = pushed(1.0), pushed(1.3)
    short = short.with_poses(short.poses[:9])
    windows = windows_of([long, short], 3)
    trajectories, frames = windows.draw(np.random.default_rng(0), 500, 3)
    assert frames[trajectories == 0].max() == len(long) - 4
    assert frames[trajectories == 1].max() == 5
    assert frames.min() == 1
    scenes, state, after = windows.window(torch.tensor([1, 0]), torch.tensor([4, 1]), 3)
    assert scenes.scene.tolist() == [0, 0, 1, 1]
    expected = torch.as_tensor(np.stack([short.poses[5:8], long.poses[2:5]])).float()
    torch.testing.assert_close(after.reshape(3, 2, 2, 7).transpose(0, 1), expected)
    torch.testing.assert_close(state.positions_m[:2], torch.as_tensor(short.poses[4, :, :3]).float())
    past = start_state(torch.as_tensor(short.poses[3:5]), short.dt_s, torch.as_tensor(short.poses[2]))
    torch.testing.assert_close(
        state.previous_velocities_m_s[:2], past.previous_velocities_m_s.float(), atol=1e-4, rtol=0
    )
    # Before the second frame nothing is known: the velocity stands in for the one before.
    torch.testing.assert_close(state.previous_spins_rad_s[2:], state.spins_rad_s[2:])


def test_turned_windows_move_alike() -> None:
    windows = windows_of(PUSHES, 2)
    chosen = torch.tensor([0, 3]), torch.tensor([5, 6])
    _, state, after = windows.window(*chosen, 2)
    _, turned, turned_after = windows.window(*chosen, 2, np.random.default_rng(0))
    assert (state.velocities_m_s - turned.velocities_m_s).norm() > 0.1
    torch.testing.assert_close(state.velocities_m_s.norm(dim=1), turned.velocities_m_s.norm(dim=1))
    between, turned_between = (
        angle_between(start.orientations.numpy(), later[1, :, 3:].numpy())
        for start, later in ((state, after), (turned, turned_after))
    )
    np.testing.assert_allclose(turned_between, between, atol=1e-3)


def test_hits_are_drawn_more_often_than_rest() -> None:
    push = pushed(1.0)
    weights = windows_of([push], 3).weights[0]
    velocities = np.diff(push.poses[:, 1, :2], axis=0)
    hit = int(np.linalg.norm(np.diff(velocities, axis=0), axis=1).argmax()) + 1
    assert weights[hit] == weights.max() > 3
    assert weights[0] == weights[-1] == 0


@pytest.mark.parametrize(
    ("trajectories", "words"),
    [
        ([], "trajectories with no s between frames"),
        ([PUSHES[0], replace(PUSHES[1], dt_s=0.01)], "expected one frame time"),
        ([PUSHES[0].with_poses(PUSHES[0].poses[:4])], "at least 5: two to start from and 3 to predict"),
        ([PUSHES[0].with_poses(np.repeat(PUSHES[0].poses[:1], 9, axis=0))], "bodies at rest throughout"),
    ],
)
def test_what_nothing_can_be_learnt_from_is_refused(trajectories: list[Trajectory], words: str) -> None:
    with pytest.raises(CalibrationError) as refused:
        train_network(trajectories, QUICK)
    assert words in str(refused.value)


def test_settings_and_frame_times_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ConfigError, match="expected at least one of each, and a positive rate"):
        TrainingSettings(steps=0)
    network = train_network(PUSHES[:1], replace(QUICK, steps=1))
    with pytest.raises(ConfigError, match="16.67 ms, at which the network was trained"):
        fine_tune(network, [replace(push, dt_s=0.01) for push in PUSHES], QUICK)
