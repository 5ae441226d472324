"""The two laws of impact: rigid with Coulomb friction, and compliant with a tangential bristle. Neither is MuJoCo's."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rsr.common import rotated
from rsr.realities._strikes.body import Motion, TrueBlock
from rsr.realities._strikes.truth import StrikeTruth
from rsr.scenarios.built_in.strike import Definition, Strikes

_RIGID_STEPS = 400
_RIGID_GROUND_STEP_S = 2.5e-5
_COMPLIANT_STEP_S = 1e-5
_LONGEST_S = 0.03
_GROUND_EVERY = 5


@dataclass(frozen=True)
class Scatter:
    """Factors by which strikes differ from one another, [N] each."""

    hit_friction: np.ndarray
    loss: np.ndarray
    ground_friction: np.ndarray
    arm: np.ndarray


def draw_scatter(truth: StrikeTruth, count: int, rng: np.random.Generator) -> Scatter:
    drawn = np.clip(rng.normal(size=(4, count)), -2.5, 2.5)
    share = truth.scatter * np.array([1.0, 1.0, 0.8, 0.5])
    return Scatter(*np.exp(share[:, None] * drawn))


def rigid(block: TrueBlock, truth: StrikeTruth, strikes: Strikes, motion: Motion, scatter: Scatter) -> None:
    """Impulse by impulse: compression, then restitution that falls with speed; sticking and slipping on the way."""
    hit, yaw = truth.hit, strikes.yaw_rad
    normal, arm = rotated(strikes.normal, yaw), rotated(strikes.point_m - block.centre_m, yaw)
    tangent = np.column_stack([-normal[:, 1], normal[:, 0]])
    arm_mass = np.column_stack([truth.arm_mass_kg * scatter.arm, np.full(len(yaw), np.inf)])
    response = _response(block, normal, tangent, arm, arm_mass)
    approach = strikes.speed_m_s[:, None] * np.stack([normal[:, 0], tangent[:, 0]], axis=1)
    fall = (np.abs(approach[:, 0]) / 0.5) ** -hit.restitution_fall
    restitution = np.clip(hit.restitution * fall / scatter.loss, 0, 0.95)
    impulse = _impulses(response, approach, hit.friction * scatter.hit_friction, restitution)
    total = impulse[:, :1] * normal + impulse[:, 1:] * tangent
    turning = arm[:, 0] * total[:, 1] - arm[:, 1] * total[:, 0]
    motion.velocity += np.column_stack([total / block.mass_kg, turning / block.inertia_kg_m2])
    for _ in range(round(hit.exposure_s / _RIGID_GROUND_STEP_S)):
        motion.force, torque = block.friction(motion, scatter.ground_friction)
        block.push(motion, motion.force, torque, _RIGID_GROUND_STEP_S)


def _response(
    block: TrueBlock, normal: np.ndarray, tangent: np.ndarray, arm: np.ndarray, arm_mass: np.ndarray
) -> np.ndarray:
    """Change of relative velocity by a unit impulse, along (normal, tangent), [N, 2, 2]."""
    axes = np.stack([normal, tangent], axis=1)
    lever = arm[:, None, 0] * axes[..., 1] - arm[:, None, 1] * axes[..., 0]
    straight = np.einsum("nik,nk,njk->nij", axes, 1 / block.mass_kg + 1 / arm_mass, axes)
    return straight + lever[:, :, None] * lever[:, None, :] / block.inertia_kg_m2


def _impulses(response: np.ndarray, approach: np.ndarray, friction: np.ndarray, restitution: np.ndarray) -> np.ndarray:
    """Impulses (normal, tangential) [N, 2] on the block that end a relative velocity `approach` [N, 2]."""
    # Steps along the normal impulse (Routh; Darboux and Keller): compression ends where the approach does. Friction may
    # lengthen it, so they reach 2.5 times the frictionless one, and twice as far for the rebound.
    step = 2.5 * approach[:, 0] / response[:, 0, 0] / _RIGID_STEPS
    relative, impulse = approach.copy(), np.zeros_like(approach)
    goal = np.full(len(step), np.inf)
    for _ in range(2 * _RIGID_STEPS):
        going = impulse[:, 0] < goal
        across = relative[:, 1] - response[:, 1, 0] * step
        stick = across / response[:, 1, 1]  # the impulse that would stop slipping; Coulomb's cone caps it
        pair = np.column_stack([step, np.clip(stick, -friction * step, friction * step)]) * going[:, None]
        impulse += pair
        relative -= np.einsum("nij,nj->ni", response, pair)
        ended = (relative[:, 0] <= 0) & np.isinf(goal)
        # Poisson's restitution: the impulse of the rebound is e times that of the compression.
        goal[ended] = (1 + restitution[ended]) * impulse[ended, 0]
        if not going.any():
            break
    return impulse


def compliant(
    block: TrueBlock, truth: StrikeTruth, strikes: Strikes, motion: Motion, scatter: Scatter, curvature: np.ndarray
) -> None:
    """Hertz contact with the loss of Hunt and Crossley, a bristle under Coulomb's cap, the arm on a spring."""
    nose = _Nose(truth, strikes, scatter)
    going, torque = np.arange(len(strikes)), np.zeros(len(strikes))
    contact = _Contact(block, truth, strikes, scatter, curvature)
    for step in range(round(_LONGEST_S / _COMPLIANT_STEP_S)):
        part = motion.take(going)
        if step % _GROUND_EVERY == 0:  # ground friction hardly changes in 50 us, and is the dearest part
            part.force, torque[going] = block.friction(part, scatter.ground_friction[going])
        force, arm, pressed = contact.force(part, nose, going)
        turning = arm[:, 0] * force[:, 1] - arm[:, 1] * force[:, 0]
        block.push(part, part.force + force, torque[going] + turning, _COMPLIANT_STEP_S)
        nose.advance(going, -force, pressed)
        motion.pose[going], motion.velocity[going], motion.force[going] = part.pose, part.velocity, part.force
        going = going[~(nose.touched[going] & ~pressed)]
        if len(going) == 0:
            break


class _Nose:
    """The striking block on an arm that tracks a commanded motion through a spring, and brakes once it touches."""

    def __init__(self, truth: StrikeTruth, strikes: Strikes, scatter: Scatter) -> None:
        self.mass = truth.arm_mass_kg * scatter.arm
        self.stiffness = truth.arm_stiffness_n_m
        self.damping = 2 * truth.arm_damping * np.sqrt(truth.arm_stiffness_n_m * truth.arm_mass_kg)
        self.position, self.velocity = np.zeros((len(strikes), 2)), np.zeros((len(strikes), 2))
        self.velocity[:, 0] = strikes.speed_m_s
        self.commanded, self.commanded_speed = self.position.copy(), self.velocity.copy()
        self.touched = np.zeros(len(strikes), bool)

    def advance(self, rows: np.ndarray, force: np.ndarray, pressed: np.ndarray) -> None:
        self.touched[rows] |= pressed
        pull = self.stiffness * (self.commanded[rows] - self.position[rows])
        pull += self.damping * (self.commanded_speed[rows] - self.velocity[rows])
        self.velocity[rows] += _COMPLIANT_STEP_S * (pull + force) / self.mass[rows, None]
        self.position[rows] += _COMPLIANT_STEP_S * self.velocity[rows]
        self.commanded_speed[rows, 0] -= Definition.braking_m_s2 * _COMPLIANT_STEP_S * self.touched[rows]
        self.commanded[rows] += _COMPLIANT_STEP_S * self.commanded_speed[rows]


class _Contact:
    """Nose against the struck place, which is a circle of its curvature, or a plane."""

    def __init__(
        self, block: TrueBlock, truth: StrikeTruth, strikes: Strikes, scatter: Scatter, curvature: np.ndarray
    ) -> None:
        self._hit = truth.hit
        self._friction = truth.hit.friction * scatter.hit_friction
        self._loss = 1.5 * truth.hit.loss_s_m * scatter.loss
        # A plane is a circle of a hundred metres: the same formula, exact to a hundredth of a micrometre here.
        self._radius_m = 1 / np.maximum(curvature, 0.01)
        self._centre = strikes.point_m + strikes.normal * self._radius_m[:, None] - block.centre_m
        self._bristle_m = np.zeros(len(strikes))

    def force(self, motion: Motion, nose: _Nose, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Force on the block [n, 2], its arm about the centre of mass [n, 2], and whether they press."""
        hit, turn = self._hit, motion.pose[:, 2]
        away = nose.position[rows] - motion.pose[:, :2] - rotated(self._centre[rows], turn)
        far = np.linalg.norm(away, axis=1)
        outward = away / far[:, None]
        depth = np.maximum(self._radius_m[rows] + Definition.nose_radius_m - far, 0)
        arm = nose.position[rows] - motion.pose[:, :2] - outward * (Definition.nose_radius_m - depth / 2)[:, None]
        spin = motion.velocity[:, 2:]
        surface = motion.velocity[:, :2] + np.hstack([-spin * arm[:, 1:], spin * arm[:, :1]])
        relative = nose.velocity[rows] - surface
        tangent = np.column_stack([-outward[:, 1], outward[:, 0]])
        apart, across = (relative * outward).sum(axis=1), (relative * tangent).sum(axis=1)
        normal_n = np.maximum(hit.stiffness * depth**1.5 * (1 - self._loss[rows] * apart), 0)
        stiffness = np.maximum(hit.tangential_ratio * 1.5 * hit.stiffness * np.sqrt(depth), 1e-9)
        static = (hit.static_ratio - 1) * np.exp(-((across / hit.static_speed_m_s) ** 2))
        cap = self._friction[rows] * (1 + static) * normal_n
        bristle = (self._bristle_m[rows] + across * _COMPLIANT_STEP_S) * (depth > 0)
        tangential_n = np.clip(stiffness * bristle, -cap, cap)
        self._bristle_m[rows] = np.where(depth > 0, tangential_n / stiffness, 0)
        return -normal_n[:, None] * outward + tangential_n[:, None] * tangent, arm, depth > 0
