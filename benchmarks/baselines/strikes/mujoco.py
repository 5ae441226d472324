"""MuJoCo itself as a baseline: parameters by a grid search, and rollouts of strikes as anyone would write them."""

from __future__ import annotations

import copy

import mujoco
import numpy as np
from cmaes import CMA

from rsr.common import generator, rotated, wrapped, yaw_of
from rsr.learned.clash import BaseModel, ContactScene, SceneStrikes, simulate
from rsr.scenarios.built_in.strike import PARAMETERS, Definition, RecordedStrikes, Shape, Strikes, scene_xml
from rsr.simulators import Collider, SettledHeights, at_rest, set_parameters

_HIT_FRICTIONS = np.linspace(0.05, 1.0, 8)
_HIT_DAMPINGS = np.geomspace(0.1, 3.0, 8)
_GROUND_DAMPINGS = (0.1, 0.5, 1.0, 3.0)
_GROUND_FRICTIONS = (0.15, 0.3, 0.6)
_REFINEMENTS, _TRIALS = 3, 24
_SCENE_GENERATIONS = 40
_APPROACH_M = 0.03
_LONGEST_S = 6.0
_CHECK_EVERY = 20


def mujoco_base(collide: Collider, params: np.ndarray) -> BaseModel:
    return lambda strikes: collide(strikes, np.tile(params, (len(strikes), 1))).after


def grid_search(
    collide: Collider, recorded: RecordedStrikes, ground_friction: float | None = None, seed: int = 0
) -> np.ndarray:
    """Fit MuJoCo's parameters [4]: a grid over the ranges of Table I, then random trials about the best."""
    grounds = _GROUND_FRICTIONS if ground_friction is None else (ground_friction,)
    # 256 points with the ground friction known, 768 without: about a second of CPU for ten strikes.
    axes = np.meshgrid(_HIT_FRICTIONS, grounds, _HIT_DAMPINGS, _GROUND_DAMPINGS, indexing="ij")
    candidates = np.column_stack([axis.ravel() for axis in axes])
    best, least = _least(collide, recorded, candidates)
    rng = generator(seed, "grid")
    for turn in range(_REFINEMENTS):
        # Multiplicative steps, since the parameters are scales; narrower from round to round.
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


def cmaes_scene(scene: ContactScene, recorded: SceneStrikes, seed: int = 0) -> np.ndarray:
    """Fit a scene's parameters [P] by CMA-ES to the squares of velocities, within their bounds; no prior."""
    space = scene.scenario.space
    bounds = np.sort(np.column_stack([space.to_coordinates(bound) for bound in (space.lower, space.upper)]), axis=1)
    weights = np.array([1.0, 1.0, scene.shape.gyration_m])

    def values(point: np.ndarray) -> np.ndarray:
        return np.clip(space.to_values(point), space.lower, space.upper)

    def loss(point: np.ndarray) -> float:
        missed = (simulate(scene, values(point), recorded.states).gained - recorded.gained) * weights
        return float((missed**2).sum())

    search = CMA(mean=space.to_coordinates(space.nominal), sigma=0.5, bounds=bounds, population_size=10, seed=seed)
    best, least = space.to_coordinates(space.nominal), np.inf
    for _ in range(_SCENE_GENERATIONS):
        points = [search.ask() for _ in range(search.population_size)]
        losses = [loss(point) for point in points]
        search.tell(list(zip(points, losses, strict=True)))
        if min(losses) < least:
            best, least = points[int(np.argmin(losses))], min(losses)
    return values(best)


class PlainRollout:
    """One strike after another, as anyone would write it: approach, impact and slide with one fine step."""

    def __init__(self, shape: Shape, params: np.ndarray, definition: Definition | None = None) -> None:
        self._definition = Definition() if definition is None else definition
        self._model = mujoco.MjModel.from_xml_string(scene_xml(shape, self._definition))
        set_parameters(self._model, params)
        self._data = mujoco.MjData(self._model)
        self._height_m = float(SettledHeights(shape, self._definition)(params[3]))

    def __call__(self, strikes: Strikes) -> np.ndarray:
        """Displacement and turn [N, 3] from before the impact to rest, in the frame of the block before."""
        return np.array([self._one(strikes.take(slice(row, row + 1))) for row in range(len(strikes))])

    def _one(self, strike: Strikes) -> np.ndarray:
        model, data, definition = self._model, self._data, self._definition
        mujoco.mj_resetData(model, data)
        yaw = float(strike.yaw_rad[0])
        start = rotated(strike.normal * definition.nose_radius_m - strike.point_m, strike.yaw_rad)[0]
        data.qpos[:2], data.qpos[2] = start, self._height_m
        data.qpos[3], data.qpos[6] = np.cos(yaw / 2), np.sin(yaw / 2)
        data.qpos[7], data.qvel[6] = -_APPROACH_M, strike.speed_m_s[0]
        mujoco.mj_step(model, data, nstep=int(_APPROACH_M / strike.speed_m_s[0] / definition.timestep_s))
        data.qfrc_applied[6] = -definition.striker_mass_kg * definition.braking_m_s2
        mujoco.mj_step(model, data, nstep=100)  # 25 ms: else the block, not yet struck, passes for resting
        while data.time < _LONGEST_S and not at_rest(data.qvel[None])[0]:
            mujoco.mj_step(model, data, nstep=_CHECK_EVERY)
        turned = wrapped(yaw_of(data.qpos[None, 3:7]) - yaw)
        return np.append(rotated(data.qpos[:2] - start, -yaw), turned)


class ExpertRollout:
    """What an expert would write: fine steps only around the impact, coarse ones for the slide, and no approach."""

    def __init__(
        self, shape: Shape, params: np.ndarray, coarse_step_s: float = 0.002, definition: Definition | None = None
    ) -> None:
        self._definition = Definition() if definition is None else definition
        self._fine = mujoco.MjModel.from_xml_string(scene_xml(shape, self._definition))
        set_parameters(self._fine, np.array([*params[:3], 1.0]))  # a springy ground is unstable at coarse steps
        self._coarse = copy.copy(self._fine)
        self._coarse.opt.timestep = coarse_step_s
        self._data = mujoco.MjData(self._fine)
        self._height_m = float(SettledHeights(shape, self._definition)(1.0))

    def __call__(self, strikes: Strikes) -> np.ndarray:
        """Displacement and turn [N, 3], as `PlainRollout` gives them."""
        return np.array([self._one(strikes.take(slice(row, row + 1))) for row in range(len(strikes))])

    def _one(self, strike: Strikes) -> np.ndarray:
        data, definition = self._data, self._definition
        mujoco.mj_resetData(self._fine, data)
        yaw = float(strike.yaw_rad[0])
        start = rotated(strike.normal * definition.nose_radius_m - strike.point_m, strike.yaw_rad)[0]
        data.qpos[:2], data.qpos[2] = start, self._height_m
        data.qpos[3], data.qpos[6] = np.cos(yaw / 2), np.sin(yaw / 2)
        speed = float(strike.speed_m_s[0])
        data.qpos[7], data.qvel[6] = -speed * definition.timestep_s, speed
        data.qfrc_applied[6] = -definition.striker_mass_kg * definition.braking_m_s2
        mujoco.mj_step(self._fine, data, nstep=8)
        while data.time < definition.longest_contact_s and data.sensordata[0] > 0:
            mujoco.mj_step(self._fine, data, nstep=4)
        # Once parted, the striker is taken out of the way: it brakes faster than the block does.
        data.qpos[7], data.qvel[6], data.qfrc_applied[6] = -1.0, 0.0, 0.0
        while data.time < _LONGEST_S and not at_rest(data.qvel[None])[0]:
            mujoco.mj_step(self._coarse, data, nstep=_CHECK_EVERY // 2)
        turned = wrapped(yaw_of(data.qpos[None, 3:7]) - yaw)
        return np.append(rotated(data.qpos[:2] - start, -yaw), turned)
