"""Stand-ins for a table with a struck block. Everything here is simulated.

What hides in them is in `rsr.realities._strikes`, frozen before anything was tuned. Methods are tuned on some seeds and
judged on others:

    TUNING_SEEDS    0 to 11       looked at while methods were written
    JUDGING_SEEDS   3724 to 3735  looked at by `benchmarks/clash.py` and `clash_sequence.py` alone

Seeds 2400 to 2411, 3600 to 3611 and 3700 to 3723 judged earlier states of the methods; nothing was tuned on them
either.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rsr.common import Advance, ConfigError, generator, rotated
from rsr.realities._strikes.body import Motion, TrueBlock
from rsr.realities._strikes.hits import Scatter, compliant, draw_scatter, rigid
from rsr.realities._strikes.mocap import FRAME_S, NOISE, fitted_velocities, measured_strikes, resting
from rsr.realities._strikes.truth import draw_truth
from rsr.realities.reality import CollectionPlan, Controller
from rsr.scenarios import Scenario
from rsr.scenarios.built_in.strike import (
    Definition,
    RecordedStrikes,
    Shape,
    Strikes,
    distances,
    sample_strikes,
    striking,
    struck_shape,
)
from rsr.sessions import Card, Episode, Session

TUNING_SEEDS = tuple(range(12))
JUDGING_SEEDS = tuple(range(3724, 3736))

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
        self._block = TrueBlock(shape, self._truth)

    def record(self, count: int, visit: int = 0) -> RecordedStrikes:
        """Strike at random and measure. Equal arguments give equal recordings."""
        rng = generator(self._seed, "strikes", "record", self._shape.name, visit)
        return self.strike(sample_strikes(self._shape, count, rng), rng)

    def strike(self, wanted: Strikes, rng: np.random.Generator) -> RecordedStrikes:
        """Do the strikes and measure: what was struck, velocities after, and where the block came to rest."""
        curvature = curvature_of(self._shape, wanted)
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
        start, motion = self._hit(wanted, scatter, curvature_of(self._shape, wanted))
        frames = round(_LONGEST_SLIDE_S / FRAME_S)
        # One frame more than is shown: the blocks part at any moment between two frames.
        slid = self._markers(
            self._block.slide(
                motion, scatter.ground_friction, _SLIDE_STEP_S, frames + 1, round(FRAME_S / _SLIDE_STEP_S)
            )
        )
        since_s = (np.arange(-_BEFORE_FRAMES, frames + 1) + rng.uniform(0, 1, (count, 1))) * FRAME_S
        filmed = [self._filmed(wanted, row, start[row], slid[:, row], since_s[row]) for row in range(count)]
        block, nose, braking = (np.array(part) for part in zip(*filmed, strict=True))
        time_s = np.arange(since_s.shape[1]) * FRAME_S
        noisy = block + rng.normal(size=block.shape) * NOISE
        return Film(time_s, noisy, nose + rng.normal(size=nose.shape) * NOISE[0], braking)

    def _filmed(
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


def _touching_x(shape: Shape, pose: np.ndarray) -> float:
    """Travel of the nose along x until it touches a block at a pose (m, m, rad)."""
    along = np.linspace(-0.02, 0.05, 1401)
    line = rotated(np.column_stack([along, np.zeros(len(along))]) - pose[:2], -pose[2])
    return float(along[int(np.argmax(distances(line, shape.outline) < Definition.nose_radius_m))])


def curvature_of(shape: Shape, strikes: Strikes) -> np.ndarray:
    """Curvature [N], 1/m, of the struck places."""
    places = np.linspace(-1, 1, 201)
    curves = [np.ptp(face.outward_rad) / face.length_m for face in shape.struck_faces]
    near = [
        np.linalg.norm(strikes.point_m[:, None] - face.at(places)[0], axis=2).min(axis=1) for face in shape.struck_faces
    ]
    return np.array(curves)[np.argmin(near, axis=0)]


# A stand-in for a struck block as a reality: what a lab with motion capture would hand in, as ordinary sessions.

_CHANNELS = {"block_position", "block_orientation", "nose_position", "rail_force"}


class StrikeReality:
    """Records strikes on the block of a scenario such as `strike`, one an episode. Simulated.

    Args:
        seed: which stand-in.
    """

    def __init__(self, scenario: Scenario, seed: int) -> None:
        names = {channel.name for channel in scenario.channels}
        if names != _CHANNELS:
            raise ConfigError(
                got=f"channels {', '.join(sorted(names))}",
                expected=f"those of the scenario strike: {', '.join(sorted(_CHANNELS))}",
                where=f"stand-in for reality, scenario {scenario.name}",
                next_step="Record the scenario yourself and set reality.kind: inbox.",
            )
        _check_striker(striking(scenario), scenario.name)
        self._scenario, self._seed = scenario, seed
        self._shape = struck_shape(scenario)

    def collect(self, policy: Controller | None, plan: CollectionPlan, advance: Advance) -> Session:
        """Strike at random, `plan.episodes` times."""
        film = StrikeStandIn(self._shape, self._seed).film(plan.episodes, plan.seed)
        advance(1.0, f"{plan.episodes} strikes")
        card = Card(
            session=plan.session,
            scenario=self._scenario.name,
            reality="stand_in",
            simulated=True,
            control_dt_s=self._scenario.control_dt_s,
            robot=f"stand-in for a struck {self._shape.name}, with another law of impact than MuJoCo's",
        )
        episodes = tuple(self._episode(film, index) for index in range(plan.episodes))
        return Session(card, self._scenario.channels, episodes)

    def _episode(self, film: Film, index: int) -> Episode:
        block, nose = film.block[index], film.nose_x_m[index]
        half = block[:, 2] / 2
        still = np.zeros(len(nose))
        # Held until the next row: the last row repeats the command before it.
        force = -Definition.striker_mass_kg * Definition.braking_m_s2 * film.braking[index]
        force[-1] = force[-2]
        height = np.full(len(nose), self._shape.height_m / 2)
        values = {
            "block_position": np.column_stack([block[:, :2], height]),
            "block_orientation": np.column_stack([np.cos(half), still, still, np.sin(half)]),
            "nose_position": nose[:, None],
            "rail_force": force[:, None],
        }
        return Episode(index, film.time_s, values)


def _check_striker(declared: Definition, scenario: str) -> None:
    """Refuse a striker that the stand-ins do not have: what hides in them was frozen with this one."""
    has = Definition()
    if declared != has:
        raise ConfigError(
            got=f"a striker of {declared.striker_mass_kg:g} kg with a nose of {1e3 * declared.nose_radius_m:g} mm",
            expected=f"the one that stand-ins strike with: {has.striker_mass_kg:g} kg, {1e3 * has.nose_radius_m:g} mm",
            where=f"stand-in for reality, scenario {scenario}",
            next_step="Record the scenario yourself and set reality.kind: inbox.",
        )
