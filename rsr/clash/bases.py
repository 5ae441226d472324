"""Models of impact that a residual may be put upon: functions from strikes to velocities after, [N, 3]."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from scipy.optimize import least_squares

from rsr.clash.frame import from_contact, geometry_of, to_contact
from rsr.clash.learning import one_thread
from rsr.clash.presets import Preset
from rsr.clash.surrogate import Surrogate, new_surrogate
from rsr.randomness import derive_seed, generator
from rsr.scenarios.strike import PARAMETERS, Definition, RecordedStrikes, Shape, Strikes
from rsr.scenarios.strike.definition import GRAVITY_M_S2
from rsr.simulators.strikes import Collider

Base = Callable[[Strikes], np.ndarray]

_HIT_FRICTIONS = np.linspace(0.05, 1.0, 8)
_HIT_DAMPINGS = np.geomspace(0.1, 3.0, 8)
_GROUND_DAMPINGS = (0.1, 0.5, 1.0, 3.0)
_GROUND_FRICTIONS = (0.15, 0.3, 0.6)
_REFINEMENTS, _TRIALS = 3, 24


def surrogate_base(surrogate: Surrogate, params: np.ndarray) -> Base:
    return lambda strikes: surrogate.predict(strikes, params)[0]


def no_base(strikes: Strikes) -> np.ndarray:
    """Predict rest: what is left for a residual that stands alone."""
    return np.zeros((len(strikes), 3))


def mujoco_base(collide: Collider, params: np.ndarray) -> Base:
    return lambda strikes: collide(strikes, np.tile(params, (len(strikes), 1))).after


def grid_search(
    collide: Collider, recorded: RecordedStrikes, ground_friction: float | None = None, seed: int = 0
) -> np.ndarray:
    """Fit MuJoCo's parameters [4]: a grid over the ranges of Table I, then random trials about the best."""
    grounds = _GROUND_FRICTIONS if ground_friction is None else (ground_friction,)
    axes = np.meshgrid(_HIT_FRICTIONS, grounds, _HIT_DAMPINGS, _GROUND_DAMPINGS, indexing="ij")
    candidates = np.column_stack([axis.ravel() for axis in axes])
    best, least = _least(collide, recorded, candidates)
    rng = generator(seed, "grid")
    for turn in range(_REFINEMENTS):
        trials = best * np.exp(rng.normal(0, 0.25 / (turn + 1), (_TRIALS, 4)))
        if ground_friction is not None:
            trials[:, 1] = ground_friction
        found, error = _least(collide, recorded, np.clip(trials, PARAMETERS.lower, PARAMETERS.upper))
        if error < least:
            best, least = found, error
    return best


def _least(collide: Collider, recorded: RecordedStrikes, candidates: np.ndarray) -> tuple[np.ndarray, float]:
    count = len(recorded)
    rows = np.tile(np.arange(count), len(candidates))
    simulated = collide(recorded.strikes.take(rows), np.repeat(candidates, count, axis=0)).after
    missed = (simulated - recorded.after[rows]) * np.array([1.0, 1.0, collide.shape.gyration_m])
    errors = (missed**2).sum(axis=1).reshape(len(candidates), count).mean(axis=1)
    return candidates[errors.argmin()], float(errors.min())


def untrained_base(shape: Shape, recorded: RecordedStrikes, chosen: Preset, steps: int = 1000, seed: int = 0) -> Base:
    """Train a network on the recorded strikes alone, without any simulation before."""
    with one_thread(derive_seed(seed, "from scratch")):
        surrogate = new_surrogate(shape, chosen)
        nominal = np.tile(PARAMETERS.nominal, (len(recorded), 1))
        inputs = surrogate.inputs(surrogate.fixed_inputs(recorded.strikes), torch.as_tensor(nominal).float())
        wanted = torch.as_tensor(surrogate.encode(recorded.strikes, recorded.after), dtype=torch.float32)
        if chosen.scaled:
            surrogate.network.standardise(inputs, torch.cat([wanted, wanted], dim=1))
        optimiser = torch.optim.AdamW(surrogate.network.parameters(), lr=1e-3, weight_decay=0.01)
        for _ in range(steps):
            optimiser.zero_grad()
            (surrogate.network(inputs)[:, :3] - wanted).square().mean().backward()
            optimiser.step()
    return surrogate_base(surrogate, PARAMETERS.nominal)


def analytic_base(shape: Shape, recorded: RecordedStrikes, ground_friction: float | None = None) -> Base:
    """Fit a law of rigid impact with four numbers: restitution, its fall with speed, friction, and time on the ground.

    The tangential impulse is what would stop slipping, up to Coulomb's limit.
    """
    wanted = to_contact(shape, recorded.strikes, recorded.after)
    ground = 0.3 if ground_friction is None else ground_friction

    def residuals(numbers: np.ndarray) -> np.ndarray:
        prior = 0.02 * (numbers - np.array([0.5, 0.1, 0.3, 0.004])) / np.array([0.3, 0.1, 0.2, 0.004])
        missed = to_contact(shape, recorded.strikes, _rigid(shape, recorded.strikes, numbers, ground)) - wanted
        return np.concatenate([missed.ravel(), prior])

    starts = [(restitution, 0.1, friction, 0.003) for restitution in (0.3, 0.7) for friction in (0.15, 0.4)]
    limits = ([0, -0.3, 0.01, 0], [1.2, 0.6, 1.5, 0.03])
    fits = [least_squares(residuals, start, bounds=limits) for start in starts]
    best = min(fits, key=lambda fit: fit.cost).x
    return lambda strikes: _rigid(shape, strikes, best, ground)


def _rigid(shape: Shape, strikes: Strikes, numbers: np.ndarray, ground_friction: float) -> np.ndarray:
    restitution, fall, friction, ground_s = numbers
    geometry = geometry_of(shape, strikes)
    share, block = shape.mass_kg / Definition.striker_mass_kg, np.cos(strikes.angle_rad)
    along, across = geometry.along, geometry.across
    # A unit impulse, per mass of the block: the arm gives way along its rail only, the block also turns.
    rail_normal, rail_tangent = np.cos(strikes.angle_rad), np.sin(strikes.angle_rad)
    nn = 1 + across**2 + share * rail_normal**2
    tt = 1 + along**2 + share * rail_tangent**2
    nt = -across * along + share * rail_normal * rail_tangent
    rebound = restitution * (np.abs(strikes.speed_m_s * block) / 0.5) ** -fall
    # Sticking: no tangential slip at the end, normal velocity reversed by the restitution.
    goal_n, goal_t = (1 + rebound) * rail_normal, rail_tangent
    determinant = nn * tt - nt**2
    stick_n, stick_t = (tt * goal_n - nt * goal_t) / determinant, (nn * goal_t - nt * goal_n) / determinant
    side = np.sign(stick_t) * friction
    slips = np.abs(stick_t) > friction * np.abs(stick_n)
    normal = np.where(slips, goal_n / (nn + side * nt), stick_n)
    tangent = np.where(slips, side * normal, stick_t)
    shares = np.column_stack([normal, tangent, along * tangent - across * normal])
    length = np.linalg.norm(shares, axis=1) * strikes.speed_m_s
    kept = np.maximum(1 - ground_friction * GRAVITY_M_S2 * ground_s / np.maximum(length, 1e-6), 0)
    return from_contact(shape, strikes, shares * kept[:, None])
