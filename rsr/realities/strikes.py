"""Stand-ins for a table with a struck block, and a control in which MuJoCo is right. Everything here is simulated.

What hides in them is in `rsr.realities._strikes`, frozen before anything was tuned. Methods are tuned on some seeds and
judged on others:

    TUNING_SEEDS    0 to 11       looked at while methods were written
    JUDGING_SEEDS   3700 to 3711  looked at by `benchmarks/clash.py` and `clash_sequence.py` alone

Seeds 2400 to 2411 and 3600 to 3611 judged earlier states of the methods; nothing was tuned on them either.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rsr.randomness import generator
from rsr.realities._strikes.body import Block, Motion
from rsr.realities._strikes.hits import Scatter, compliant, draw_scatter, rigid
from rsr.realities._strikes.mocap import FRAME_S, NOISE, fitted_velocities, measured_strikes, resting
from rsr.realities._strikes.truth import draw_truth
from rsr.scenarios.plane import rotated
from rsr.scenarios.strike import PARAMETERS, Definition, RecordedStrikes, Shape, Strikes, sample_strikes
from rsr.scenarios.strike.outline import distances
from rsr.simulators.strikes import Collider

TUNING_SEEDS = tuple(range(12))
JUDGING_SEEDS = tuple(range(3700, 3712))

_GAP_M = 0.0002
_SLIDE_STEP_S = 0.0005
_LONGEST_SLIDE_S = 1.6
_BEFORE_FRAMES = 30


@dataclass(frozen=True)
class Film:
    """N strikes as motion capture saw them, T frames each, in a world in which the striking block moves along x.

    Args:
        time_s: [T]. block: [N, T, 3], centre of mass (m, m) and turn (rad). nose_x_m: [N, T].
        braking: [N, T], True while the arm brakes.
    """

    time_s: np.ndarray
    block: np.ndarray
    nose_x_m: np.ndarray
    braking: np.ndarray


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

    def film(self, count: int, visit: int = 0) -> Film:
        """Strike at random and return what motion capture saw, from 0.12 s before the blocks part until rest."""
        rng = generator(self._seed, "strikes", "film", self._shape.name, visit)
        wanted = sample_strikes(self._shape, count, rng)
        scatter = draw_scatter(self._truth, count, rng)
        start, motion = self._hit(wanted, scatter, _curvature(self._shape, wanted))
        frames = round(_LONGEST_SLIDE_S / FRAME_S)
        # One frame more than is shown: the blocks part at any moment between two frames.
        slid = self._markers(
            self._block.slide(
                motion, scatter.ground_friction, _SLIDE_STEP_S, frames + 1, round(FRAME_S / _SLIDE_STEP_S)
            )
        )
        since_s = (np.arange(-_BEFORE_FRAMES, frames + 1) + rng.uniform(0, 1, (count, 1))) * FRAME_S
        seen = [self._seen(wanted, row, start[row], slid[:, row], since_s[row]) for row in range(count)]
        block, nose, braking = (np.array(part) for part in zip(*seen, strict=True))
        time_s = np.arange(since_s.shape[1]) * FRAME_S
        noisy = block + rng.normal(size=block.shape) * NOISE
        return Film(time_s, noisy, nose + rng.normal(size=nose.shape) * NOISE[0], braking)

    def _seen(
        self, wanted: Strikes, row: int, start: np.ndarray, slid: np.ndarray, since_s: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Block [T, 3], nose [T] and whether the arm brakes [T], at times since the blocks parted."""
        speed = wanted.speed_m_s[row]
        touched, parted = _touching_x(self._shape, start), _touching_x(self._shape, slid[0])
        contact_s = max(parted - touched, 0.0) / speed
        times = np.concatenate([[-contact_s - 1e-9], np.arange(len(slid)) * FRAME_S])
        block = np.column_stack([np.interp(since_s, times, column) for column in np.vstack([start, slid]).T])
        velocity = (slid[1] - slid[0]) / FRAME_S
        # The arm has lost the momentum that the block has gained, and is no faster than the place that it pushed.
        pushed = max(velocity[0] - velocity[2] * -slid[0, 1], 0.0)
        share = self._shape.mass_kg / Definition.striker_mass_kg
        leaving = min(speed - share * velocity[0], pushed)
        moving_s = np.clip(since_s, 0, leaving / Definition.braking_m_s2)
        after = parted + leaving * moving_s - Definition.braking_m_s2 * moving_s**2 / 2
        nose = np.where(since_s < 0, np.minimum(touched + speed * (since_s + contact_s), parted), after)
        braking = (since_s > -contact_s) & (since_s < leaving / Definition.braking_m_s2)
        return block, nose, braking

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


def _touching_x(shape: Shape, pose: np.ndarray) -> float:
    """How far along x the nose comes before it touches a block at a pose (m, m, rad)."""
    along = np.linspace(-0.02, 0.05, 1401)
    line = rotated(np.column_stack([along, np.zeros(len(along))]) - pose[:2], -pose[2])
    return float(along[int(np.argmax(distances(line, shape.outline) < Definition.nose_radius_m))])


def _curvature(shape: Shape, strikes: Strikes) -> np.ndarray:
    """Curvature [N], 1/m, of the struck places."""
    places = np.linspace(-1, 1, 201)
    curves = [np.ptp(face.outward_rad) / face.length_m for face in shape.struck_faces]
    near = [
        np.linalg.norm(strikes.point_m[:, None] - face.at(places)[0], axis=2).min(axis=1) for face in shape.struck_faces
    ]
    return np.array(curves)[np.argmin(near, axis=0)]
