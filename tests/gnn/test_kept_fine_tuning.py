"""Fine-tuning is kept where it helps to predict recordings that were left out, and only there."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from pushes_at_hand import KNOWN, pushed

from rsr.errors import CalibrationError
from rsr.gnn.fine_tuning import FEW_SHOTS, fine_tune_as_helps
from rsr.gnn.simulator import predict
from rsr.gnn.teacher import teacher_rollout
from rsr.gnn.training import TrainingSettings, train_network

PUSHES = [pushed(speed, aside) for speed in (0.8, 1.1) for aside in (0.0, 0.02)]
FEW = replace(FEW_SHOTS, steps=12, batch=8, rate=1e-2)


@pytest.fixture(scope="module")
def network():
    return train_network(PUSHES, TrainingSettings(steps=40, batch=16, unroll=2))


@pytest.fixture(scope="module")
def recorded():
    rough = replace(KNOWN, mu=0.8)
    return [each.with_poses(teacher_rollout(each.world, rough, each.start[None], len(each))[0]) for each in PUSHES]


def test_what_helps_with_recordings_left_out_is_kept(network, recorded):
    seen = []
    found = fine_tune_as_helps(network, recorded, FEW, 0, lambda done, words="": seen.append(done))
    assert found.share > 0
    assert found.left_out[found.share] < 0.9 * found.left_out[0.0]
    assert seen == sorted(seen)
    assert seen[-1] == pytest.approx(1)
    pairs = zip(found.network.parameters(), network.parameters(), strict=True)
    assert any(not torch.equal(one, other) for one, other in pairs)


def test_what_does_not_help_is_left_out(network):
    """Nothing is to be learnt from recordings that the network itself made."""
    own = [each.with_poses(poses) for each, poses in zip(PUSHES, predict(network, PUSHES), strict=True)]
    found = fine_tune_as_helps(network, own, replace(FEW, steps=2))
    assert found.share == 0
    assert found.network is network
    assert found.left_out[0.0] < 1e-3


def test_one_recording_cannot_tell(network, recorded):
    with pytest.raises(CalibrationError, match="got 1 recorded trajectories of like length; expected at least 2"):
        fine_tune_as_helps(network, recorded[:1])
    with pytest.raises(CalibrationError, match="got 0 recorded"):
        fine_tune_as_helps(network, [])
