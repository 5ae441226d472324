"""Stand-ins for a table with a struck block, and a control in which MuJoCo is right. Everything here is simulated.

What hides in them is in `rsr.realities._strikes`, frozen before anything was tuned. Methods are tuned on some seeds and
judged on others:

    TUNING_SEEDS    0 to 11       looked at while methods were written
    JUDGING_SEEDS   2400 to 2411  looked at by `benchmarks/clash.py` alone
"""

from __future__ import annotations

import numpy as np

from rsr.randomness import generator
from rsr.realities._strikes.body import Block, Motion
from rsr.realities._strikes.hits import Scatter, compliant, draw_scatter, rigid
from rsr.realities._strikes.mocap import FRAME_S, fitted_velocities, measured_strikes, resting
from rsr.realities._strikes.truth import draw_truth
from rsr.scenarios.strike import PARAMETERS, Definition, RecordedStrikes, Shape, Strikes, sample_strikes
from rsr.scenarios.strike.outline import rotated
from rsr.simulators.strikes import Collider

TUNING_SEEDS = tuple(range(12))
JUDGING_SEEDS = tuple(range(2400, 2412))

_GAP_M = 0.0002
_SLIDE_STEP_S = 0.0005
_LONGEST_SLIDE_S = 1.6


class StrikeStandIn:
    """A block, a table and an arm that obey another law than MuJoCo's, seen through motion capture."""

    def __init__(self, shape: Shape, seed: int) -> None:
        self._shape, self._seed = shape, seed
        self._truth = draw_truth(seed)
        self._block = Block(shape, self._truth)

    def record(self, count: int, visit: int = 0) -> RecordedStrikes:
        """Strike at random and measure. Equal arguments give equal recordings."""
        rng = generator(self._seed, "strikes", "record", self._shape.name, visit)
        return self.strike(sample_strikes(self._shape, count, rng), rng)

    def strike(self, wanted: Strikes, rng: np.random.Generator) -> RecordedStrikes:
        """Do the strikes and measure: what was struck, velocities after, and where the block came to rest."""
        curvature = _curvature(self._shape, wanted)
        scatter = draw_scatter(self._truth, len(wanted), rng)
        start, motion = self._hit(wanted, scatter, curvature)
        frames = round(_LONGEST_SLIDE_S / FRAME_S)
        slid = self._block.slide(motion, scatter.ground_friction, _SLIDE_STEP_S, frames, round(FRAME_S / _SLIDE_STEP_S))
        poses = self._markers(slid)
        velocity, rest = fitted_velocities(poses, rng), resting(poses, rng) - start
        back = -wanted.yaw_rad
        after = np.column_stack([rotated(velocity[:, :2], back), velocity[:, 2]])
        rest = np.column_stack([rotated(rest[:, :2], back), rest[:, 2]])
        return RecordedStrikes(measured_strikes(wanted, curvature, rng), after, rest)

    def _hit(self, strikes: Strikes, scatter: Scatter, curvature: np.ndarray) -> tuple[np.ndarray, Motion]:
        """Pose of the markers before, [N, 3], and the block's motion when it is free again."""
        yaw, reach = strikes.yaw_rad, strikes.normal * (Definition.nose_radius_m + _GAP_M)
        start = np.column_stack([rotated(reach - strikes.point_m, yaw), yaw])
        centre = start[:, :2] + rotated(np.broadcast_to(self._block.centre_m, (len(yaw), 2)), yaw)
        motion = Motion(np.column_stack([centre, yaw]), np.zeros((len(yaw), 3)), np.zeros((len(yaw), 2)))
        if self._truth.family == "rigid":
            rigid(self._block, self._truth, strikes, motion, scatter)
        else:
            compliant(self._block, self._truth, strikes, motion, scatter, curvature)
        return start, motion

    def _markers(self, poses: np.ndarray) -> np.ndarray:
        """From the true centre of mass to the one that the drawing gives, on which the markers are."""
        offset = rotated(np.broadcast_to(self._block.centre_m, (*poses.shape[:2], 2)), poses[..., 2])
        return np.concatenate([poses[..., :2] - offset, poses[..., 2:]], axis=2)


class StrikeControl:
    """A control: MuJoCo itself, with hidden parameters and the same errors of measurement. Here MuJoCo is right."""

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
            measured_strikes(strikes, _curvature(self._shape, strikes), rng), fitted_velocities(frames, rng)
        )


def _curvature(shape: Shape, strikes: Strikes) -> np.ndarray:
    """Curvature [N], 1/m, of the struck places."""
    places = np.linspace(-1, 1, 201)
    curves = [np.ptp(face.outward_rad) / face.length_m for face in shape.struck_faces]
    near = [
        np.linalg.norm(strikes.point_m[:, None] - face.at(places)[0], axis=2).min(axis=1) for face in shape.struck_faces
    ]
    return np.array(curves)[np.argmin(near, axis=0)]
