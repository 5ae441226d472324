"""Drift of the robot: the gap of new recordings under a calibration, against that of its held-out episodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rsr.calibration import Calibration
from rsr.calibration.problem import channel_rms, replay
from rsr.common import CalibrationError
from rsr.scenarios import Scenario
from rsr.sessions import Episode
from rsr.simulators import MujocoSimulator

MARGIN = 1.25
"""Share by which the mean gap may grow without a cause in the robot: another policy moves otherwise. Over the
iterations of three stand-ins that did not change, a session's gap under the calibration before it was 0.79 to 1.20
times the gap on that calibration's own held-out episodes."""
_DRAWS = 2000
_CONFIDENCE = 0.999


@dataclass(frozen=True)
class Drift:
    """Gap of new episodes, beside that of the calibration's held-out episodes.

    Args:
        gap_then, gap_now: mean over episodes of the RMS error of the gap channel.
        limit: largest `gap_now` that chance and another policy explain.
    """

    gap_then: float
    gap_now: float
    limit: float
    gap_unit: str
    episodes: int

    @property
    def changed(self) -> bool:
        return self.gap_now > self.limit

    def __str__(self) -> str:
        verdict = "the robot, or what it touches, has changed" if self.changed else "within the noise band"
        figures = f"{self.gap_now:.4g} {self.gap_unit} over {self.episodes} episodes"
        return f"{verdict}: gap {figures}; {self.gap_then:.4g} when calibrated, limit {self.limit:.4g}"


def find_drift(
    scenario: Scenario, calibration: Calibration, reference: Sequence[Episode], fresh: Sequence[Episode], seed: int
) -> Drift:
    """Compare the gap of fresh episodes with that of a calibration's held-out episodes.

    The limit is the larger of two: the 99.9 % quantile of the mean over as many reference episodes, drawn with
    replacement, and `MARGIN` times the reference mean.

    Args:
        reference: the calibration's held-out episodes.
        fresh: new ones.
    """
    if min(len(reference), len(fresh)) < 2:
        raise CalibrationError(
            got=f"{len(reference)} episodes from the time of the calibration and {len(fresh)} new ones",
            expected="at least 2 of each, to tell a change from chance",
            where=f"gap check of {scenario.name}",
            next_step="Record more episodes.",
        )
    with MujocoSimulator(scenario) as simulator:
        then, now = (gaps(scenario, simulator, episodes, calibration.vector()) for episodes in (reference, fresh))
    if calibration.evidence.crossed:  # the estimate has seen them; the fits that the evidence is of had not
        then *= max(1.0, calibration.evidence.gap_after / float(np.sqrt(np.square(then).mean())))
    rng = np.random.default_rng(seed)
    # Both means are resampled: the reference is a sample too, and a small one makes the limit wide.
    ratio = _means(rng, then, len(now)) / _means(rng, then, len(then))
    limit = max(MARGIN, float(np.quantile(ratio, _CONFIDENCE))) * float(then.mean())
    return Drift(float(then.mean()), float(now.mean()), limit, calibration.evidence.gap_unit, len(now))


def gaps(scenario: Scenario, simulator: MujocoSimulator, episodes: Sequence[Episode], params: np.ndarray) -> np.ndarray:
    """Compute the RMS error of the gap channel in each episode, replayed open loop with parameters [P]."""
    predicted = replay(scenario, simulator, episodes, params)
    return np.array(
        [
            channel_rms(scenario, [episode], [states])[scenario.gap_channel]
            for episode, states in zip(episodes, predicted, strict=True)
        ]
    )


def _means(rng: np.random.Generator, values: np.ndarray, size: int) -> np.ndarray:
    """Draw `_DRAWS` samples of a size with replacement; returns their means."""
    return rng.choice(values, (_DRAWS, size)).mean(axis=1)
