"""The hybrid simulator of strikes: the adapted surrogate for the impact, a slide after it; driven by events.

Nothing is stepped where nothing happens: an approach is free motion, an impact one evaluation of the surrogate, a
slide a formula (or MuJoCo with coarse steps). A hook that watches MuJoCo's contacts step by step is slower than it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rsr.clash.adaptation import Adapted
from rsr.clash.sliding import SlidingModel
from rsr.errors import CalibrationError
from rsr.scenarios.strike import Strikes
from rsr.simulators.strike_rollouts import Slide

Slider = Callable[[np.ndarray], np.ndarray]
"""From velocities [N, 3] to displacement and turn at rest, [N, 3]."""


@dataclass(frozen=True)
class Rollout:
    """N strikes, from impact to rest.

    Args:
        rest: [N, 3], displacement and turn, in the frame of the block before (m, m, rad).
        after: [N, 3], velocity when the blocks part.
        handled: [N], which impacts the surrogate computed: all but those with no speed along the normal.
    """

    rest: np.ndarray
    after: np.ndarray
    handled: np.ndarray


class HybridStrikes:
    """Rolls strikes out, a population at once."""

    def __init__(self, model: Adapted, slider: Slider | None = None) -> None:
        """Take the sliding model that was identified, or MuJoCo's slide with the identified parameters."""
        self._model, self._slider = model, slider or identified_slide(model)

    def __call__(self, strikes: Strikes) -> np.ndarray:
        """Displacement and turn at rest, [N, 3]."""
        return self.rollout(strikes).rest

    def rollout(self, strikes: Strikes) -> Rollout:
        handled = strikes.speed_m_s * np.cos(strikes.angle_rad) > 0
        after = np.zeros((len(strikes), 3))
        after[handled] = self._model(strikes.take(handled))
        rest = np.zeros((len(strikes), 3))
        rest[handled] = self._slider(after[handled])
        return Rollout(rest, after, handled)


def identified_slide(model: Adapted) -> SlidingModel:
    """Take the slide that recordings told."""
    if model.sliding is None:
        raise CalibrationError(
            got="recordings without rest_x, rest_y, rest_yaw",
            expected="where the block came to rest",
            where="hybrid simulator",
            next_step="Record it, or let MuJoCo slide: `HybridStrikes(model, mujoco_slide(model))`.",
        )
    return model.sliding


def mujoco_slide(model: Adapted, threads: int = 0) -> Slide:
    """Let MuJoCo slide, with the identified parameters."""
    return Slide(model.shape, model.identified.values, threads=threads)
