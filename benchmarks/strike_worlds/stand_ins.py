"""Stand-ins of a third and a fourth kind: they record strikes like those of `rsr.realities.strikes`."""

from __future__ import annotations

import numpy as np

from rsr.common import generator, rotated
from rsr.realities import curvature_of
from rsr.realities.strikes import FRAME_S, fitted_velocities, measured_strikes, resting
from rsr.scenarios.built_in.strike import Definition, RecordedStrikes, Shape, Strikes, sample_strikes

from . import flexible, patch
from .ground import SURFACES, Bodies, FootedBlock

KINDS = ("patch", "flexible")
MATERIALS = ("resin", "nylon", "petg")
DEVELOPMENT = tuple(range(6))
JUDGED = tuple(range(8218, 8230))
_GAP_M = 0.0002
_SLIDE_STEP_S, _LONGEST_SLIDE_S = 0.0005, 1.6


class UnseenStandIn:
    """A block, a table and a striker of one of `KINDS`. Six seeds in a row go through three materials, two surfaces."""

    def __init__(self, shape: Shape, kind: str, seed: int) -> None:
        self._shape, self.kind, self._seed = shape, kind, seed
        self.material, self.surface = MATERIALS[seed % 3], tuple(SURFACES)[seed // 3 % 2]
        rng = generator(seed, "strike worlds", kind, shape.name)
        self._block = FootedBlock(shape, SURFACES[self.surface], rng)
        self._scatter = rng.uniform(0.04, 0.12)
        self._pad, self._tip = patch.draw_pad(self.material, rng), flexible.draw_tip(self.material, rng)

    def record(self, count: int, visit: int = 0) -> RecordedStrikes:
        """Strike at random and measure."""
        rng = generator(self._seed, "strike worlds", "record", self.kind, self._shape.name, visit)
        return self.strike(sample_strikes(self._shape, count, rng), rng)

    def strike(self, wanted: Strikes, rng: np.random.Generator) -> RecordedStrikes:
        """Do the strikes and measure, as `StrikeStandIn.strike` does."""
        factors = np.exp(self._scatter * np.clip(rng.normal(size=(3, len(wanted))), -2.5, 2.5))
        yaw, centre = wanted.yaw_rad, self._block.centre_m
        reach = wanted.normal * (Definition.nose_radius_m + _GAP_M)
        start = np.column_stack([rotated(reach - wanted.point_m, yaw), yaw])
        offset = rotated(np.broadcast_to(centre, (len(yaw), 2)), yaw)
        bodies = Bodies(np.column_stack([start[:, :2] + offset, yaw]), np.zeros((len(yaw), 3)))
        outline = self._shape.outline - centre
        if self.kind == "patch":
            patch.hit(self._block, self._pad, wanted, bodies, outline, factors)
        else:
            flexible.hit(self._block, self._tip, wanted, bodies, outline, factors)
        frames = round(_LONGEST_SLIDE_S / FRAME_S)
        slid = self._block.slide(bodies, factors[2], _SLIDE_STEP_S, frames, round(FRAME_S / _SLIDE_STEP_S))
        markers = slid.copy()
        markers[..., :2] -= rotated(np.broadcast_to(centre, (*slid.shape[:2], 2)), slid[..., 2])
        velocity, rest = fitted_velocities(markers, rng), resting(markers, rng) - start
        after = np.column_stack([rotated(velocity[:, :2], -yaw), velocity[:, 2]])
        rest = np.column_stack([rotated(rest[:, :2], -yaw), rest[:, 2]])
        return RecordedStrikes(measured_strikes(wanted, curvature_of(self._shape, wanted), rng), after, rest)
