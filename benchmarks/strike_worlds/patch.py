"""A pad on the striker's nose: pressure over a patch that relaxes, and bristles that stick and slip one by one.

Each of 31 strips of the pad is a spring with a second one behind a dashpot (a standard linear solid), so loss depends
on how fast it is pressed; friction acts strip by strip. The patch is some millimetres wide: it resists turning, and the
place of its resultant wanders while the block turns.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rsr.common import rotated
from rsr.scenarios.built_in.strike import Definition, Strikes

from .ground import Bodies, FootedBlock

_STRIPS, _HALF_WIDTH_RAD = 31, np.radians(40)
_STEP_S, _LONGEST_S, _GROUND_EVERY = 1e-5, 0.04, 5
# Static friction, its ratio to the kinetic one, share of the relaxing stiffness, its time in ms.
_MATERIALS = {"resin": (0.30, 1.3, 0.8, 1.5), "nylon": (0.22, 1.15, 1.5, 2.0), "petg": (0.40, 1.4, 2.5, 2.5)}


@dataclass(frozen=True)
class Pad:
    """Hidden numbers of a pad.

    Args:
        stiffness_n_m: of all strips together, pressed evenly. relaxing: of the second spring, in shares of that.
        relaxation_s: of its dashpot. static, kinetic: friction. shear: tangential stiffness in shares of the normal.
        striker_mass_kg: behind the pad, on a rail.
    """

    stiffness_n_m: float
    relaxing: float
    relaxation_s: float
    static: float
    kinetic: float
    shear: float
    striker_mass_kg: float


def draw_pad(material: str, rng: np.random.Generator) -> Pad:
    friction, ratio, relaxing, relaxation_ms = _MATERIALS[material]
    static = friction * rng.uniform(0.75, 1.25)
    return Pad(
        stiffness_n_m=float(np.exp(rng.uniform(np.log(8e4), np.log(6e5)))),
        relaxing=relaxing * rng.uniform(0.7, 1.3),
        relaxation_s=1e-3 * relaxation_ms * rng.uniform(0.7, 1.3),
        static=static * ratio,
        kinetic=static,
        shear=rng.uniform(0.3, 1.0),
        striker_mass_kg=rng.uniform(2.0, 5.0),
    )


def hit(
    block: FootedBlock, pad: Pad, strikes: Strikes, bodies: Bodies, outline: np.ndarray, factors: np.ndarray
) -> None:
    """Move the blocks through the impact, until no strip presses any more.

    Args:
        outline: [E, 2], of the block about its true centre of mass. factors: [3, N], of friction, loss, ground.
    """
    count = len(strikes)
    facing = np.arctan2(strikes.direction[:, 1], strikes.direction[:, 0])  # in the block's frame
    inward = np.arctan2(strikes.normal[:, 1], strikes.normal[:, 0])
    spread = np.linspace(-_HALF_WIDTH_RAD, _HALF_WIDTH_RAD, _STRIPS)
    # Strips lie on the nose's arc about where it first touches; the world's x is the direction of motion.
    arc = (inward - facing)[:, None] + spread
    strips = Definition.nose_radius_m * np.stack([np.cos(arc), np.sin(arc)], axis=-1)
    share = np.cos(spread) / np.cos(spread).sum()
    nose_x, speed = np.zeros(count), strikes.speed_m_s.copy()
    lag, bristle = np.zeros((count, _STRIPS)), np.zeros((count, _STRIPS))
    slips = np.zeros((count, _STRIPS), bool)
    going, touched, drag, torque = np.arange(count), np.zeros(count, bool), np.zeros((count, 2)), np.zeros(count)
    edges = np.roll(outline, -1, axis=0) - outline
    outward = np.column_stack([edges[:, 1], -edges[:, 0]]) / np.linalg.norm(edges, axis=1)[:, None]
    offsets = (outward * outline).sum(axis=1)
    for step in range(round(_LONGEST_S / _STEP_S)):
        part, own = bodies.take(going), strips[going]
        if step % _GROUND_EVERY == 0:
            drag[going], torque[going] = block.friction(part, factors[2, going], drag[going])
        world = own + np.stack([nose_x[going], np.zeros(len(going))], axis=-1)[:, None]
        arms = world - part.pose[:, None, :2]
        local = rotated(arms, -part.pose[:, 2:])
        # Depth below the face that is nearest: the outline is convex.
        heights = local @ outward.T - offsets
        face = heights.argmax(axis=-1)
        depth = np.maximum(-np.take_along_axis(heights, face[..., None], axis=-1)[..., 0], 0)
        normal = rotated(outward[face], part.pose[:, 2:])
        pressed = depth > 0
        lag[going] += _STEP_S / (pad.relaxation_s * factors[1, going, None]) * (depth - lag[going])
        spring = depth + pad.relaxing * (depth - lag[going])
        pressure = pad.stiffness_n_m * share * np.maximum(spring, 0) * pressed
        spin = part.velocity[:, 2:]
        sliding_x = speed[going, None] - (part.velocity[:, :1] - spin * arms[..., 1])
        sliding_y = -(part.velocity[:, 1:2] + spin * arms[..., 0])
        tangent = np.stack([-normal[..., 1], normal[..., 0]], axis=-1)
        across = sliding_x * tangent[..., 0] + sliding_y * tangent[..., 1]
        shear, slipping = _sheared(pad, bristle[going], slips[going], across, pressure, share, factors[0, going, None])
        bristle[going], slips[going] = np.where(pressed, shear / (pad.shear * pad.stiffness_n_m * share), 0), slipping
        force = -pressure[..., None] * normal + shear[..., None] * tangent
        total = force.sum(axis=1)
        turning = (arms[..., 0] * force[..., 1] - arms[..., 1] * force[..., 0]).sum(axis=1)
        block.push(part, drag[going] + total, torque[going] + turning, _STEP_S)
        bodies.pose[going], bodies.velocity[going] = part.pose, part.velocity
        touching = pressed.any(axis=1)
        touched[going] |= touching
        speed[going] -= _STEP_S * (total[:, 0] / pad.striker_mass_kg + Definition.braking_m_s2 * touched[going])
        nose_x[going] += _STEP_S * speed[going]
        going = going[~(touched[going] & (pressure.sum(axis=1) <= 0))]
        if len(going) == 0:
            break


def _sheared(
    pad: Pad,
    bristle: np.ndarray,
    slips: np.ndarray,
    across: np.ndarray,
    pressure: np.ndarray,
    share: np.ndarray,
    factor: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Tangential force [N, K], and which strips slip: from when static friction gives to when they stop."""
    elastic = pad.shear * pad.stiffness_n_m * share * (bristle + across * _STEP_S)
    kinetic, static = pad.kinetic * factor * pressure, pad.static * factor * pressure
    slipping = np.where(slips, np.sign(across) == np.sign(bristle), np.abs(elastic) > static)
    return np.where(slipping, np.clip(elastic, -kinetic, kinetic), np.clip(elastic, -static, static)), slipping
