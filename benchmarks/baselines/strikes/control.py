"""A control: a stand-in for reality in which MuJoCo is right, so that adapting can only lose."""

from __future__ import annotations

import numpy as np

from rsr.common import generator
from rsr.realities import curvature_of
from rsr.realities.strikes import FRAME_S, fitted_velocities, measured_strikes
from rsr.scenarios.built_in.strike import PARAMETERS, RecordedStrikes, Shape, sample_strikes
from rsr.simulators import Collider


class StrikeControl:
    """MuJoCo with hidden parameters, seen through the same errors of measurement as the stand-ins."""

    def __init__(self, shape: Shape, seed: int) -> None:
        self._shape, self._seed = shape, seed
        rng = generator(seed, "strikes", "control")
        low, high = np.log([[0.15, 0.15, 0.1, 0.5], [0.5, 0.5, 0.5, 2.0]])
        self._params = np.exp(rng.uniform(low, high))
        PARAMETERS.check(self._params)

    def record(self, count: int, visit: int = 0) -> RecordedStrikes:
        """Strike at random and measure velocities, with the error that a fit through frames has."""
        rng = generator(self._seed, "strikes", "control", self._shape.name, visit)
        strikes = sample_strikes(self._shape, count, rng)
        impacts = Collider(self._shape, at_once=count)(
            strikes, np.tile(self._params, (count, 1)), phase=rng.uniform(0, 1, count)
        )
        frames = impacts.after * (np.arange(15) * FRAME_S)[:, None, None]
        return RecordedStrikes(
            measured_strikes(strikes, curvature_of(self._shape, strikes), rng), fitted_velocities(frames, rng)
        )
