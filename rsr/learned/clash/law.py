"""An analytic law of rigid impact with four numbers: a simple model, and the second opinion of an adaptation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares

from rsr.learned.clash.frame import from_contact, geometry_of, to_contact
from rsr.learned.clash.sliding import USUAL, SlidingModel, sliding_at, surprise, weighing
from rsr.scenarios.built_in.strike import GRAVITY_M_S2, Definition, RecordedStrikes, Shape, Strikes

# Mean, deviation and weight of a weak prior, in the order restitution, fall, friction, time: with it, numbers that
# three strikes do not tell stay where they are usual in place of going to a bound.
_USUAL, _SPREAD, _WEIGHT = np.array([0.5, 0.1, 0.3, 0.004]), np.array([0.3, 0.1, 0.2, 0.004]), 0.02
_LIMITS = ([0, -0.3, 0.01, 0], [1.2, 0.6, 1.5, 0.03])
# The change from slip to stick makes the cost kink: four starts, on both sides of usual values.
_STARTS = [(restitution, 0.1, friction, 0.003) for restitution in (0.3, 0.7) for friction in (0.15, 0.4)]
_USUAL_SHARE = 0.05
"""Of the speed, by which a law of four numbers misses."""
_RESTITUTIONS, _FRICTIONS = (0.0, 0.25, 0.5, 0.75, 1.0), (0.0, 0.1, 0.2, 0.35, 0.6)
_IMPOSSIBLE_SHARE = 0.25
"""Of the speed, by which an honest strike misses every law."""
_GROUND_FRICTION = 0.3
"""For recordings that do not say where blocks came to rest."""


@dataclass(frozen=True)
class ImpactLaw:
    """Restitution, its fall with speed, friction, and time on the ground; a base model like any other.

    The tangential impulse is what would stop slipping, up to Coulomb's limit. Meanwhile the ground takes its share.

    Args:
        restitution: at 0.5 m/s. restitution_fall: it goes with speed to the power of minus this.
        ground_s: for how long the friction of the ground acts.
        striker_mass_kg: of what strikes, on its rail.
    """

    shape: Shape
    restitution: float
    restitution_fall: float
    friction: float
    ground_s: float
    ground_friction: float = _GROUND_FRICTION
    striker_mass_kg: float = Definition.striker_mass_kg

    def __call__(self, strikes: Strikes, mobility: np.ndarray | None = None) -> np.ndarray:
        """Velocity after, [N, 3].

        Args:
            mobility: [N, 3], how the striker gives way at the point, along the normal, both, and across it: the inverse
                of its mass there, times the block's mass; by default that of a striker on a rail.
        """
        normal, tangent = self._impulses(strikes, mobility)
        # An impulse (n, t) at the lever (along, across) turns a block of unit gyration by along t - across n.
        geometry = geometry_of(self.shape, strikes)
        shares = np.column_stack([normal, tangent, geometry.along * tangent - geometry.across * normal])
        # Ground friction takes mu g t off the speed, along the motion; a share, so that directions stay.
        length = np.linalg.norm(shares, axis=1) * strikes.speed_m_s
        kept = np.maximum(1 - self.ground_friction * GRAVITY_M_S2 * self.ground_s / np.maximum(length, 1e-6), 0)
        return from_contact(self.shape, strikes, shares * kept[:, None])

    def _impulses(self, strikes: Strikes, mobility: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """Along the normal and across it, [N] each, in the block's mass times the striking speed."""
        geometry = geometry_of(self.shape, strikes)
        along, across = geometry.along, geometry.across
        # A unit impulse, per mass of the block: the arm gives way along its rail only, the block also turns.
        share = self.shape.mass_kg / self.striker_mass_kg
        rail_normal, rail_tangent = np.cos(strikes.angle_rad), np.sin(strikes.angle_rad)
        gives = (share * rail_normal**2, share * rail_normal * rail_tangent, share * rail_tangent**2)
        gives = gives if mobility is None else mobility.T
        nn, nt, tt = 1 + across**2 + gives[0], -across * along + gives[1], 1 + along**2 + gives[2]
        rebound = self.restitution * (np.abs(strikes.speed_m_s * rail_normal) / 0.5) ** -self.restitution_fall
        # Sticking: no tangential slip at the end, normal velocity reversed by the restitution.
        goal_n, goal_t = (1 + rebound) * rail_normal, rail_tangent
        determinant = nn * tt - nt**2
        stick_n, stick_t = (tt * goal_n - nt * goal_t) / determinant, (nn * goal_t - nt * goal_n) / determinant
        # Coulomb: where sticking would take more than mu times the normal impulse, the contact slips all the way.
        side = np.sign(stick_t) * self.friction
        slips = np.abs(stick_t) > self.friction * np.abs(stick_n)
        normal = np.where(slips, goal_n / (nn + side * nt), stick_n)
        return normal, np.where(slips, side * normal, stick_t)


def usual_law(shape: Shape) -> ImpactLaw:
    """The law before any strike was recorded."""
    return ImpactLaw(shape, *map(float, _USUAL))


def fit_law(
    shape: Shape,
    recorded: RecordedStrikes,
    ground_friction: float | None = None,
    striker_mass_kg: float = Definition.striker_mass_kg,
    mobility: np.ndarray | None = None,
    bounded: bool = False,
) -> ImpactLaw:
    """Fit the four numbers to recorded strikes; arguments as those of `ImpactLaw`.

    Args:
        bounded: strikes that are far off hardly count more than those that are somewhat off (Cauchy's loss).
    """
    strikes = recorded.strikes
    wanted = to_contact(shape, strikes, recorded.after)
    ground = _GROUND_FRICTION if ground_friction is None else ground_friction

    def residuals(numbers: np.ndarray) -> np.ndarray:
        law = _law(shape, numbers, ground, striker_mass_kg)
        missed = to_contact(shape, strikes, law(strikes, mobility)) - wanted
        if bounded:
            missed = _USUAL_SHARE * np.sqrt(np.log1p((missed**2).sum(axis=1) / _USUAL_SHARE**2))
        return np.concatenate([missed.ravel(), _WEIGHT * (numbers - _USUAL) / _SPREAD])

    fits = [least_squares(residuals, start, bounds=_LIMITS) for start in _STARTS]
    return _law(shape, min(fits, key=lambda fit: fit.cost).x, ground, striker_mass_kg)


def missed_shares(law: ImpactLaw, recorded: RecordedStrikes, mobility: np.ndarray | None = None) -> np.ndarray:
    """Length [N] of what the law misses, in shares of the striking speed."""
    strikes = recorded.strikes
    return np.linalg.norm(to_contact(law.shape, strikes, law(strikes, mobility) - recorded.after), axis=1)


def against_any_law(shape: Shape, recorded: RecordedStrikes, striker_mass_kg: float) -> np.ndarray:
    """Find strikes [N] that no restitution and no friction explain: momentum, moment, energy or the side is wrong."""
    laws = (
        ImpactLaw(shape, restitution, 0.0, friction, 0.0, striker_mass_kg=striker_mass_kg)
        for restitution in _RESTITUTIONS
        for friction in _FRICTIONS
    )
    return np.min([missed_shares(law, recorded) for law in laws], axis=0) > _IMPOSSIBLE_SHARE


def _law(shape: Shape, numbers: np.ndarray, ground_friction: float, striker_mass_kg: float) -> ImpactLaw:
    restitution, fall, friction, ground_s = map(float, numbers)
    return ImpactLaw(shape, restitution, fall, friction, ground_s, ground_friction, striker_mass_kg)


def fit_from_rests(
    shape: Shape, recorded: RecordedStrikes, striker_mass_kg: float = Definition.striker_mass_kg
) -> SlidingModel:
    """Fit law and slide together to where blocks came to rest, no velocity known: the likelihood of impact and slide.

    A harder rebound on a rougher table looks the same, so the friction is hardly known; what matters is that the pair
    says where blocks come to rest. Its inverse then takes places of rest for velocities.
    """
    if recorded.rest is None:
        raise ValueError("neither velocities nor places of rest")
    strikes, rest = recorded.strikes, recorded.rest
    weigh = weighing(rest)

    def residuals(numbers: np.ndarray) -> np.ndarray:
        sliding = sliding_at(shape, numbers[4:])
        law = _law(shape, numbers[:4], sliding.friction, striker_mass_kg)
        missed = weigh(sliding(law(strikes)) - rest)
        return np.concatenate([missed.ravel(), (numbers[:4] - _USUAL) / _SPREAD, surprise(numbers[4:])])

    free = np.full(4, np.inf)
    bounds = (np.append(_LIMITS[0], -free), np.append(_LIMITS[1], free))
    fits = [least_squares(residuals, (*start, *USUAL), bounds=bounds, loss="soft_l1") for start in _STARTS]
    return sliding_at(shape, min(fits, key=lambda fit: fit.cost).x[4:])
