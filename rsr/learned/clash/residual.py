"""A Gaussian process in the contact frame, of the errors of a base model; leaving strikes out decides its strength.

Any force between two blocks in the plane acts at the impact point: an impulse along the normal and one across it
explain all three numbers of the block's motion (momentum, no law of contact). So the process is mostly of two
impulses, with a little of the ground: friction along the motion that does not grow with speed, and a rest that is free.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from scipy.linalg import block_diag

from rsr.learned.clash.frame import MIRROR, Geometry, geometry_of, tangent_of
from rsr.scenarios.built_in.strike import Shape, Strikes

_FLIP = np.array([-1.0, -1.0, -1.0, 1.0])  # of the features: place, facing, angle change sign, the speed does not
_SLOW_M_S = 0.3
STRENGTHS = (0.0, 0.35, 0.7, 1.0, 1.5)
NOISES = (0.25, 0.4, 0.6, 0.8, 1.0, 1.4, 2.0, 3.0)
"""Both in units of what the prior says."""
_TEMPER = 0.5
"""Ten strikes that are left out in turn are not ten independent witnesses: their log-likelihood counts half."""
_NEGLIGIBLE = 0.01
_STEEP = 1.5
_FALL_STD = 0.1
"""Of the normal impulse, in shares, at e times the speed: restitution that goes with the speed to minus a quarter."""
_SHIFT_MEAN, _SHIFT_STD, _SHIFT_LENGTHS = 0.5, 0.2, np.array([0.7, 2.0, 2.5, 6.0])
"""Of a push between several contacts: somewhere between their mean and their middle, smooth like the impulses."""
Z90 = 1.6449


@dataclass(frozen=True)
class ResidualPrior:
    """How residuals vary before any strike is recorded: standard deviations in shares of the striking speed.

    Of three things: the impulse along the normal, the one across, and a rest. Learnt once on the tuning stand-ins, so
    that ten strikes predict others best; `benchmarks/strike_prior.py` learns them on from where they are.

    Args:
        constant: [3], of what all strikes have in common.
        linear: [3, 4], of slopes over the four features (place, facing, angle, speed).
        local: [3], of smooth bumps, with their lengths [3, 4] in the features.
        proportional: [2], of both impulses, in shares of what the base has.
        ground: of ground friction along the motion, at 0.3 m/s.
        centre_m, inertia: of how far the centre of mass is off the drawing's, each way, and the inertia in shares.
        noise: of a measurement. scatter: [2], of both impulses from strike to strike, in shares of what the base has.
    """

    constant: np.ndarray
    linear: np.ndarray
    local: np.ndarray
    lengths: np.ndarray
    proportional: np.ndarray
    ground: float
    centre_m: float
    inertia: float
    noise: float
    scatter: np.ndarray


PRIOR = ResidualPrior(
    constant=np.array([0.30, 0.15, 0.05]),
    linear=np.array([[0.06, 0.06, 0.06, 0.007], [0.03, 0.02, 0.056, 0.06], [0.006, 0.004, 0.002, 0.007]]),
    local=np.array([0.15, 0.066, 0.006]),
    lengths=np.array([[1.5, 3.2, 2.7, 6.7], [0.49, 2.0, 1.15, 6.8], [0.63, 1.9, 2.3, 1.6]]),
    proportional=np.array([0.035, 0.58]),
    ground=0.14,
    centre_m=0.001,  # these two are what workshops and glue leave, and were not learnt
    inertia=0.1,
    noise=0.036,
    scatter=np.array([0.021, 0.057]),
)


_CONSTANT_STDS = (PRIOR.ground, PRIOR.centre_m, PRIOR.centre_m, PRIOR.inertia)


@dataclass(frozen=True)
class ObservedStrikes:
    """N strikes in the terms of the process.

    Args:
        features: [N, 4]. base: [N, 3], what the base predicts, contact frame, shares of the striking speed.
        levers: [N, 3, 6 or 9], motion by a unit of (normal impulse, impulse across, ground friction, centre of mass in
            both directions, inertia), and, for a base that is MuJoCo itself, of what it lacks: two shifts of the point,
            and a rebound that falls with speed.
        speeds: [N], m/s.
    """

    features: np.ndarray
    base: np.ndarray
    levers: np.ndarray
    speeds: np.ndarray

    def __len__(self) -> int:
        return len(self.features)


@dataclass(frozen=True)
class Patch:
    """Where N impacts that MuJoCo simulated may act besides its own contact points.

    Args:
        shift_m: [N], how far along the surface, to its left seen from the striker, the middle of all that nearly
            touches lies from the mean point: flat on flat, real contacts press there too.
        spread_m: [N], how far what nearly touches is scattered; 0 for a single point.
    """

    shift_m: np.ndarray
    spread_m: np.ndarray

    def take(self, rows: np.ndarray) -> Patch:
        return Patch(self.shift_m[rows], self.spread_m[rows])


def observe(shape: Shape, strikes: Strikes, base: np.ndarray, patch: Patch | None = None) -> ObservedStrikes:
    """Describe strikes to the process, with the predictions [N, 3] of the base model.

    Args:
        patch: of a base that is MuJoCo itself.
    """
    geometry = geometry_of(shape, strikes)
    # Momentum: a unit impulse moves the block by one and turns it by its lever arm, both in shares of the gyration.
    levers = np.zeros((len(strikes), 3, 6 if patch is None else 9))
    levers[:, 0, 0] = levers[:, 1, 1] = 1
    levers[:, 2, 0], levers[:, 2, 1] = -geometry.across, geometry.along
    # Coulomb friction takes a fixed speed, not a share, and points against the motion: the slower, the larger a share.
    length = np.maximum(np.linalg.norm(base, axis=1), 1e-6)
    levers[:, :, 2] = base * (_SLOW_M_S / strikes.speed_m_s / length)[:, None]
    # Another centre of mass changes the lever arms of both impulses, another inertia the turning: no law of contact.
    levers[:, 2, 3:5] = (base[:, :1] * tangent_of(strikes) - base[:, 1:2] * strikes.normal) / shape.gyration_m
    levers[:, 2, 5] = base[:, 2]
    if patch is not None:
        # Flat on flat, the push acts somewhere between the outermost contacts: it turns the block by more or by less.
        levers[:, 2, 6] = -base[:, 0] * patch.shift_m / shape.gyration_m
        levers[:, 2, 7] = base[:, 0] * patch.spread_m / shape.gyration_m
        # A spring with a damper rebounds alike at all speeds; materials rebound less, the faster they are struck.
        approach = np.maximum(strikes.speed_m_s * np.cos(strikes.angle_rad), _SLOW_M_S / 10)
        levers[:, :, 8] = levers[:, :, 0] * (base[:, 0] * np.log(approach / _SLOW_M_S))[:, None]
    features = features_of(geometry)
    if patch is not None:
        # Scenes are struck at any angle. Once the contact slips, a steeper one slips all the same.
        features[:, 2] = _STEEP * np.tanh(np.tan(np.clip(geometry.angle_rad, -1.5, 1.5)) / np.tan(np.pi / 18) / _STEEP)
    return ObservedStrikes(features, base, levers, strikes.speed_m_s)


@dataclass(frozen=True)
class Residual:
    """A fitted process: an average over strengths and noises, each as likely as it makes strikes that were left out.

    Args:
        known: the N strikes it was fitted to. residuals: [N, 3], what the base left over.
        mirrored: whether the mirror image of a strike is as good as the strike.
        mixture: [K, 3], strength (standard deviation in units of the prior's; 0: the base alone), noise in units of the
            prior's, and weight.
        evidence: logarithm of how well strikes that were left out are predicted, averaged over the choices.
        widening: by how much intervals are widened, so that strikes left out are inside as often as they say.
    """

    known: ObservedStrikes
    residuals: np.ndarray
    mirrored: bool
    mixture: np.ndarray
    evidence: float = 0.0
    widening: float = 1.0

    @property
    def strength(self) -> float:
        """Strength, averaged over the mixture."""
        return float(self.mixture[:, 0] @ self.mixture[:, 2])

    def predict(self, at: ObservedStrikes) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation [M, 3] of what to add to the base, and that of a measurement about it."""
        cross = covariance(at, self.known, self.mirrored)
        prior, unit = variance(at, self.mirrored), noise_covariance(at)
        means, variances = [], []
        for strength, noise, _ in self.mixture:
            # Rasmussen and Williams, eq. (2.25) and (2.26), with the prior scaled by strength^2, the noise by noise^2.
            inverse = np.linalg.inv(self._noisy(strength, noise))
            gain = strength**2 * cross @ inverse
            explained = strength**2 * (gain * cross).sum(axis=1).reshape(-1, 3)
            means.append((gain @ self.residuals.ravel()).reshape(-1, 3))
            left = np.maximum(strength**2 * prior - explained, 0)
            variances.append(left + noise**2 * np.diagonal(unit, axis1=1, axis2=2))
        weights = self.mixture[:, 2, None, None]
        mean = (weights * means).sum(axis=0)
        # Law of total variance: that of each choice, and how far the choices disagree.
        spread = (weights * (np.array(variances) + (np.array(means) - mean) ** 2)).sum(axis=0)
        return mean, self.widening * np.sqrt(spread)

    def mean(self, at: ObservedStrikes) -> np.ndarray:
        """Mean alone, [M, 3]: for planners, which ask often, the N weights are solved for once."""
        return (covariance(at, self.known, self.mirrored) @ self._weights).reshape(-1, 3)

    def left_out(self, strength: float, noise: float) -> tuple[np.ndarray, np.ndarray]:
        """Errors [N, 3] and their covariances [N, 3, 3] of each strike, predicted from all others."""
        # One inverse gives all N: Rasmussen and Williams, eq. (5.12), in blocks of three components.
        inverse = np.linalg.inv(self._noisy(strength, noise))
        rows = np.arange(3 * len(self.known)).reshape(-1, 3)
        covariances = np.linalg.inv(inverse[rows[:, :, None], rows[:, None, :]])
        pulls = (inverse @ self.residuals.ravel()).reshape(-1, 3)
        return np.einsum("nij,nj->ni", covariances, pulls), covariances

    def _noisy(self, strength: float, noise: float) -> np.ndarray:
        prior, unit = self._unit
        return strength**2 * prior + noise**2 * unit

    @cached_property
    def _unit(self) -> tuple[np.ndarray, np.ndarray]:
        """Covariances [3 N, 3 N] of the known strikes' residuals and of their noise, both as the prior says."""
        noise = np.asarray(block_diag(*noise_covariance(self.known)))
        return covariance(self.known, self.known, self.mirrored), noise

    @cached_property
    def _weights(self) -> np.ndarray:
        solved = [
            share * strength**2 * np.linalg.solve(self._noisy(strength, noise), self.residuals.ravel())
            for strength, noise, share in self.mixture
        ]
        return np.sum(solved, axis=0)


def fit_residual(
    shape: Shape,
    strikes: Strikes,
    base: np.ndarray,
    wanted: np.ndarray,
    strengths: tuple[float, ...] = STRENGTHS,
    patch: Patch | None = None,
) -> Residual:
    """Fit to N strikes.

    Args:
        base, wanted: [N, 3], predicted and measured, contact frame, shares of the striking speed.
        patch: see `observe`.
    """
    # No point estimate of strength and noise: ten strikes hardly tell them, so all 40 choices vote by their evidence.
    grid = np.array([(strength, noise, 1.0) for strength, noise in product(strengths, NOISES)])
    trial = Residual(observe(shape, strikes, base, patch), wanted - base, shape.axis_rad is not None, grid)
    surprises = np.array([_surprise(*trial.left_out(strength, noise)) for strength, noise, _ in grid])
    likelihoods = np.exp(-_TEMPER * (surprises - surprises.min()))
    evidence = float(np.log(likelihoods.mean()) - _TEMPER * surprises.min())
    grid[:, 2] = likelihoods
    kept = grid[likelihoods > _NEGLIGIBLE]  # predictions cost one solve for each choice that is kept
    kept[:, 2] /= kept[:, 2].sum()
    errors, covariances = trial.left_out(*kept[kept[:, 2].argmax(), :2])
    stds = np.sqrt(np.diagonal(covariances, axis1=1, axis2=2))
    # Never narrower than computed: ten strikes that happen to fit are no evidence of precision.
    widening = float(np.clip(np.quantile(np.abs(errors / stds), 0.9) / Z90, 1.0, 1.5))
    return Residual(trial.known, trial.residuals, trial.mirrored, kept, evidence, widening)


def features_of(geometry: Geometry) -> np.ndarray:
    """Inputs [N, 4] of about one: place, direction of the surface, direction of the strike, speed."""
    facing, angle = geometry.facing_rad / (np.pi / 4), geometry.angle_rad / (np.pi / 18)
    return np.column_stack([geometry.across / 0.7, facing, angle, (geometry.speed_m_s - 0.5) / 0.2])


def covariance(a: ObservedStrikes, b: ObservedStrikes, mirrored: bool) -> np.ndarray:
    """Prior covariance [3 N, 3 M] of residuals, of unit strength."""
    impulses, free = _kernels(a.features[:, None], b.features[None], mirrored)
    # A wrong restitution or friction scales the impulse itself, alike in all strikes: rank one in the base's impulses.
    impulses = impulses + PRIOR.proportional**2 * a.base[:, None, :2] * b.base[None, :, :2]
    total = np.zeros((len(a), 3, len(b), 3))
    for output in range(3):
        total[:, output, :, output] = free[..., output]
    same = np.ones((len(a), len(b)))
    kernels = [impulses[..., 0], impulses[..., 1], *(std**2 * same for std in _CONSTANT_STDS)]
    if a.levers.shape[2] > len(kernels):
        kernels += [*_shift_kernels(a.features[:, None], b.features[None], mirrored), _FALL_STD**2 * same]
    for lever, kernel in enumerate(kernels):
        arms = a.levers[:, :, None, None, lever] * b.levers[None, None, :, :, lever]
        total += arms * kernel[:, None, :, None]
    return total.reshape(3 * len(a), 3 * len(b))


def variance(at: ObservedStrikes, mirrored: bool) -> np.ndarray:
    """Diagonal of `covariance`, [N, 3]."""
    impulses, free = _kernels(at.features, at.features, mirrored)
    impulses = impulses + PRIOR.proportional**2 * at.base[:, :2] ** 2
    straight = (at.levers[:, :, :2] ** 2 * impulses[:, None, :]).sum(axis=2)
    known = straight + free + at.levers[:, :, 2:6] ** 2 @ np.square(_CONSTANT_STDS)
    if at.levers.shape[2] == 6:
        return known
    shifts = np.stack(_shift_kernels(at.features, at.features, mirrored), axis=-1)
    shifted = (at.levers[:, :, 6:8] ** 2 * shifts[:, None, :]).sum(axis=2)
    return known + shifted + _FALL_STD**2 * at.levers[:, :, 8] ** 2


def noise_covariance(at: ObservedStrikes) -> np.ndarray:
    """Covariance [N, 3, 3] of a measurement about its mean: motion capture errs by m/s, strikes differ by shares."""
    # In shares of their speed, slow strikes are noisier.
    measured = PRIOR.noise**2 * (1 + (_SLOW_M_S / at.speeds) ** 2) / 2
    # The scatter from strike to strike is of impulses, so it too acts at the impact point.
    arms = at.levers[:, :, :2] * (PRIOR.scatter * at.base[:, :2])[:, None, :]
    return measured[:, None, None] * np.eye(3) + arms @ arms.transpose(0, 2, 1)


def _kernels(a: np.ndarray, b: np.ndarray, mirrored: bool) -> tuple[np.ndarray, np.ndarray]:
    """Kernels of both impulses [..., 2] and of the free rest [..., 3], each of the parity of its component."""
    plain = _smooth(a, b)
    if not mirrored:
        return plain[..., :2], np.repeat(plain[..., 2:], 3, axis=-1)
    # Functions with f(mirror image) = parity f have the kernel k(a, b) + parity k(a, mirror b); divided by the
    # root of two, variances are 1.4 times the prior's on the mirror's axis and 0.7 times far from it.
    flipped = _smooth(a, b * _FLIP)
    impulses = plain[..., :2] + MIRROR[:2] * flipped[..., :2]
    return impulses / np.sqrt(2), (plain[..., 2:] + MIRROR * flipped[..., 2:]) / np.sqrt(2)


def _shift_kernels(a: np.ndarray, b: np.ndarray, mirrored: bool) -> tuple[np.ndarray, np.ndarray]:
    """Kernels [...] of both shifts of the point, in shares of how far it may be shifted."""

    def bumps(other: np.ndarray) -> np.ndarray:
        return np.exp(-0.5 * (((a - other) / _SHIFT_LENGTHS) ** 2).sum(axis=-1))

    plain = bumps(b)
    if not mirrored:
        return _SHIFT_MEAN**2 + _SHIFT_STD**2 * plain, _SHIFT_STD**2 * plain
    # Seen in a mirror the middle stays the middle, and the scatter is of the other side.
    flipped = bumps(b * _FLIP)
    even, odd = ((plain + sign * flipped) / np.sqrt(2) for sign in (1, -1))
    return _SHIFT_MEAN**2 + _SHIFT_STD**2 * even, _SHIFT_STD**2 * odd


def _smooth(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Kernels [..., 3] of features [..., 4]."""
    apart = (((a - b)[..., None, :] / PRIOR.lengths) ** 2).sum(axis=-1)
    return PRIOR.constant**2 + (a * b) @ (PRIOR.linear**2).T + PRIOR.local**2 * np.exp(-apart / 2)


def _surprise(errors: np.ndarray, covariances: np.ndarray) -> float:
    """Negative log-likelihood of strikes that were left out."""
    squares = np.einsum("ni,nij,nj->", errors, np.linalg.inv(covariances), errors)
    return float(0.5 * squares + 0.5 * np.linalg.slogdet(covariances)[1].sum())
