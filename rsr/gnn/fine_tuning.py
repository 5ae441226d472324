"""Fine-tuning on a few recordings, gone as far as helps with recordings that were left out, each in its turn.

Whole trajectories are rolled out from their starts, which were fitted to several frames: the frames after them are as
noisy as the camera, and a window that begins there teaches that noise.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from rsr.errors import CalibrationError
from rsr.gnn.contract import ContactNetwork
from rsr.gnn.evaluation import judge
from rsr.gnn.simulator import predict
from rsr.gnn.training import TrainingSettings, fine_tune
from rsr.gnn.trajectories import GIVEN_FRAMES, Trajectory
from rsr.progress import Advance, ignore, part_of

FEW_SHOTS = TrainingSettings(steps=25, batch=12, rate=1e-3, long_from=0.0, noise_m=0.0, scale_m_s=0.1)
"""Centimetres count, the millimetres that cameras add do not. The rate is still warming up when it is over."""
SHARES = (0.0, 0.5, 1.0)
"""Of the way from the weights as they were to those that were fine-tuned."""
_FOLDS = 3
"""Of three recordings, each is left out once."""


@dataclass(frozen=True)
class FineTuned:
    """What became of a network.

    Args:
        network: fine-tuned on all recordings, or as it was.
        share: how far its weights went; 0 is as they were.
        left_out: share -> Eq. (1), mean over recordings, each predicted by a network that was fine-tuned on others.
    """

    network: ContactNetwork
    share: float
    left_out: Mapping[float, float]


def fine_tune_as_helps(
    network: ContactNetwork,
    recorded: Sequence[Trajectory],
    settings: TrainingSettings = FEW_SHOTS,
    seed: int = 0,
    advance: Advance = ignore,
) -> FineTuned:
    """Fine-tune on a few recordings as far as helps to predict recordings that were left out; perhaps not at all.

    Args:
        recorded: at least two, with steady starts.
        settings: `unroll` and `network` are set here: whole trajectories, and what the network is.
    """
    whole = of_one_length(recorded) if recorded else []
    if len(whole) < 2:
        raise CalibrationError(
            got=f"{len(whole)} recorded trajectories of like length",
            expected="at least 2: one to learn from, and another to see whether it helped",
            where="fine-tuning of a contact network",
            next_step="Record more, or leave fine-tuning out.",
        )
    settings = replace(settings, unroll=len(whole[0]) - GIVEN_FRAMES, network=network.kind)
    folds = min(_FOLDS, len(whole))
    rounds = folds + 1  # the last is for all recordings
    errors: dict[float, list[float]] = {share: [] for share in SHARES}
    for fold in range(folds):
        others = [each for index, each in enumerate(whole) if index % folds != fold]
        tuned = fine_tune(network, others, settings, seed, part_of(advance, fold / rounds, (fold + 1) / rounds))
        for share in SHARES:
            errors[share] += _errors(_between(network, tuned, share), whole[fold::folds])
    left_out = {share: sum(each) / len(each) for share, each in errors.items()}
    chosen = min(left_out, key=lambda share: left_out[share])
    if chosen == 0.0:
        advance(1.0, "left as it was")
        return FineTuned(network, chosen, left_out)
    tuned = fine_tune(network, whole, settings, seed, part_of(advance, folds / rounds, 1.0))
    return FineTuned(_between(network, tuned, chosen), chosen, left_out)


def of_one_length(trajectories: Sequence[Trajectory]) -> list[Trajectory]:
    """Trajectories cut to what three in four of them reach; shorter ones are left out, for windows are whole."""
    frames = sorted(len(each) for each in trajectories)[len(trajectories) // 4]
    return [each.with_poses(each.poses[:frames]) for each in trajectories if len(each) >= frames]


def _between(network: ContactNetwork, tuned: ContactNetwork, share: float) -> ContactNetwork:
    """A network with weights part of the way to those of another."""
    between, goal = copy.deepcopy(network), tuned.state_dict()
    between.load_state_dict({name: value.lerp(goal[name], share) for name, value in network.state_dict().items()})
    return between


def _errors(network: ContactNetwork, trajectories: Sequence[Trajectory]) -> list[float]:
    return [judge(lambda given: predict(network, given), [each]).trajectory_error() for each in trajectories]
