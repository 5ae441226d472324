"""A flexible striker in two lumps: a tip on springs, along and across, before the hand; it may touch several times.

The contact is plastic: it unloads along a steeper line than it loads (Walton and Braun, 1986), so that loss does not
depend on speed, and friction falls with the force (a ratio of areas, mu ~ N^-s). The arm gives way sideways.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rsr.common import rotated
from rsr.scenarios.built_in.strike import Definition, Strikes

from .ground import Bodies, FootedBlock

_STEP_S, _LONGEST_S, _GROUND_EVERY = 5e-6, 0.05, 10
_APART_S = 0.004
"""Blocks that are apart for a frame of motion capture have parted."""
# Friction is a damper of mu N / creep: at 250 N it must not stop a block within one step, or it would blow up.
_CREEP_M_S, _USUAL_N = 0.02, 50.0
# Friction at 50 N, restitution of the plastic contact.
_MATERIALS = {"resin": (0.30, 0.75), "nylon": (0.22, 0.62), "petg": (0.40, 0.5)}


@dataclass(frozen=True)
class Tip:
    """Hidden numbers of a flexible striker.

    Args:
        mass_kg, hand_kg: of tip and hand. along_n_m, across_n_m: springs between them. damping: ratio of both.
        stiffness_n_m: of the contact, loading. restitution: root of loading over unloading stiffness.
        friction: at 50 N. fall: it goes with the force to the power of minus this.
    """

    mass_kg: float
    hand_kg: float
    along_n_m: float
    across_n_m: float
    damping: float
    stiffness_n_m: float
    restitution: float
    friction: float
    fall: float


def draw_tip(material: str, rng: np.random.Generator) -> Tip:
    friction, restitution = _MATERIALS[material]
    return Tip(
        mass_kg=rng.uniform(0.15, 0.5),
        hand_kg=rng.uniform(2.0, 4.0),
        along_n_m=float(np.exp(rng.uniform(np.log(2e4), np.log(2e5)))),
        across_n_m=float(np.exp(rng.uniform(np.log(5e3), np.log(5e4)))),
        damping=rng.uniform(0.05, 0.3),
        stiffness_n_m=float(np.exp(rng.uniform(np.log(2e5), np.log(1e6)))),
        restitution=restitution * rng.uniform(0.85, 1.15),
        friction=friction * rng.uniform(0.75, 1.25),
        fall=rng.uniform(0.0, 0.3),
    )


def hit(
    block: FootedBlock, tip: Tip, strikes: Strikes, bodies: Bodies, outline: np.ndarray, factors: np.ndarray
) -> None:
    """Move the blocks through the impact, to when they have last touched. Arguments as in `patch.hit`."""
    count = len(strikes)
    place, velocity = np.zeros((count, 2)), np.zeros((count, 2))
    velocity[:, 0] = strikes.speed_m_s
    hand_x, hand_speed = np.zeros(count), strikes.speed_m_s.copy()
    deepest = np.zeros(count)
    springs = np.array([tip.along_n_m, tip.across_n_m])
    dashpots = 2 * tip.damping * np.sqrt(springs * tip.mass_kg)
    steeper = 1 / np.clip(tip.restitution / factors[1], 0.2, 0.95) ** 2
    drag, torque = np.zeros((count, 2)), np.zeros(count)
    apart_s, touched = np.zeros(count), np.zeros(count, bool)
    ended = bodies.take(np.arange(count))
    going, ends = np.arange(count), np.roll(outline, -1, axis=0) - outline
    for step in range(round(_LONGEST_S / _STEP_S)):
        part = bodies.take(going)
        if step % _GROUND_EVERY == 0:
            drag[going], torque[going] = block.friction(part, factors[2, going], drag[going])
        local = rotated(place[going] - part.pose[:, :2], -part.pose[:, 2])
        nearest = _nearest(outline, ends, local)
        away = local - nearest
        far = np.linalg.norm(away, axis=1)
        depth = np.maximum(Definition.nose_radius_m - far, 0)
        outward = rotated(away / far[:, None], part.pose[:, 2])
        arm = rotated(nearest, part.pose[:, 2])
        spin = part.velocity[:, 2:]
        surface = part.velocity[:, :2] + np.hstack([-spin * arm[:, 1:], spin * arm[:, :1]])
        tangent = np.column_stack([-outward[:, 1], outward[:, 0]])
        across = ((velocity[going] - surface) * tangent).sum(axis=1)
        deepest[going] = np.maximum(deepest[going], depth)
        pressed_n = _pressed(tip, depth, deepest[going], steeper[going])
        usual = (np.maximum(pressed_n, 1.0) / _USUAL_N) ** -tip.fall
        rubbed_n = tip.friction * factors[0, going] * usual * pressed_n * np.tanh(across / _CREEP_M_S)
        force = -pressed_n[:, None] * outward + rubbed_n[:, None] * tangent
        block.push(
            part, drag[going] + force, torque[going] + arm[:, 0] * force[:, 1] - arm[:, 1] * force[:, 0], _STEP_S
        )
        bodies.pose[going], bodies.velocity[going] = part.pose, part.velocity
        stretched = np.column_stack([hand_x[going], np.zeros(len(going))]) - place[going]
        lagging = np.column_stack([hand_speed[going], np.zeros(len(going))]) - velocity[going]
        pull = springs * stretched + dashpots * lagging
        velocity[going] += _STEP_S * (pull - force) / tip.mass_kg
        place[going] += _STEP_S * velocity[going]
        touching = pressed_n > 0
        touched[going] |= touching
        hand_speed[going] -= _STEP_S * (pull[:, 0] / tip.hand_kg + Definition.braking_m_s2 * touched[going])
        hand_x[going] += _STEP_S * hand_speed[going]
        apart_s[going] = np.where(touching, 0, apart_s[going] + _STEP_S)
        last = going[touching]
        ended.pose[last], ended.velocity[last] = bodies.pose[last], bodies.velocity[last]
        going = going[~(touched[going] & (apart_s[going] > _APART_S))]
        if len(going) == 0:
            break
    bodies.pose[:], bodies.velocity[:] = ended.pose, ended.velocity


def _pressed(tip: Tip, depth: np.ndarray, deepest: np.ndarray, steeper: np.ndarray) -> np.ndarray:
    """Force [N] of a contact that loads along k1 and unloads, or reloads, along k2 = k1 / e^2 from the dent it left."""
    dent = deepest * (1 - 1 / steeper)
    back = tip.stiffness_n_m * steeper * np.maximum(depth - dent, 0)
    return np.minimum(tip.stiffness_n_m * depth, back)


def _nearest(outline: np.ndarray, ends: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Nearest places [N, 2] on a polygon."""
    share = ((points[:, None] - outline) * ends).sum(axis=-1) / (ends**2).sum(axis=1)
    found = outline + np.clip(share, 0, 1)[..., None] * ends
    best = ((found - points[:, None]) ** 2).sum(axis=-1).argmin(axis=1)
    return found[np.arange(len(points)), best]
