"""A learned simulator as a calibration: the teacher's parameters, judged by what the network predicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from rsr.calibration import Calibration, Evidence, channel_rms, replay
from rsr.gnn.tuning import joined, load_gnn
from rsr.scenarios import Scenario
from rsr.sessions import Episode, Session
from rsr.simulators import Simulator

_NO_BETTER = (
    "the network predicts the held-out episodes no better than MuJoCo with the parameters before; do not rely on it"
)


def as_gnn(scenario: Scenario, sessions: Sequence[Session], teacher: Calibration, folder: Path) -> Calibration:
    """The teacher's calibration with the network's evidence, on the same held-out episodes.

    Args:
        folder: where the network lies.
    """
    episodes = [joined(sessions).episodes[index] for index in teacher.evidence.held_out]
    with load_gnn(scenario, folder) as network:
        after = rms(scenario, network, episodes, teacher.vector())
    before = {channel: pair[0] for channel, pair in teacher.evidence.channels.items()}
    evidence = Evidence(
        gap_before=teacher.evidence.gap_before,
        gap_after=after[scenario.gap_channel],
        gap_unit=teacher.evidence.gap_unit,
        channels={channel: (before[channel], after[channel]) for channel in before},
        fitted=teacher.evidence.fitted,
        held_out=teacher.evidence.held_out,
    )
    better = evidence.gap_after < evidence.gap_before
    status = "converged" if better else "no improvement"
    warnings = teacher.warnings if better else (*teacher.warnings, _NO_BETTER)
    return replace(teacher, method="gnn", evidence=evidence, status=status, warnings=warnings, replays=None)


def rms(scenario: Scenario, simulator: Simulator, episodes: Sequence[Episode], params: np.ndarray) -> dict[str, float]:
    """RMS error of each channel, recordings replayed open loop."""
    return channel_rms(scenario, episodes, replay(scenario, simulator, episodes, params))
