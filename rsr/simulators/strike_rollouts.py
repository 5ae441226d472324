"""Strikes in MuJoCo from first contact to rest: plainly, with one step size, and as fast as MuJoCo allows."""

from __future__ import annotations

from dataclasses import replace

import mujoco
import numpy as np
from mujoco.batch import Batch

from rsr.scenarios.plane import rotated, wrapped
from rsr.scenarios.pushing.pose import yaw_of
from rsr.scenarios.strike import Definition, Shape, Strikes, scene_xml
from rsr.simulators.strikes import Collider, SettledHeights, set_parameters

APPROACH_M = 0.03
COARSE_STEP_S = 0.002
_LONGEST_S = 6.0
_CHECK_EVERY = 20
_REST_M2_S2, _REST_RADIUS_M = 9e-6, 0.03


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
        data.qpos[7], data.qvel[6] = -APPROACH_M, strike.speed_m_s[0]
        mujoco.mj_step(model, data, nstep=int(APPROACH_M / strike.speed_m_s[0] / definition.timestep_s))
        data.qfrc_applied[6] = -definition.striker_mass_kg * definition.braking_m_s2
        mujoco.mj_step(model, data, nstep=100)
        while data.time < _LONGEST_S and not _at_rest(data.qvel[None])[0]:
            mujoco.mj_step(model, data, nstep=_CHECK_EVERY)
        turned = wrapped(yaw_of(data.qpos[None, 3:7]) - yaw)
        return np.append(rotated(data.qpos[:2] - start, -yaw), turned)


class FastRollout:
    """The same at MuJoCo's best: no approach, fine steps for the impact alone, coarse ones for the slide, batched."""

    def __init__(
        self,
        shape: Shape,
        params: np.ndarray,
        at_once: int = 64,
        threads: int = 0,
        definition: Definition | None = None,
    ) -> None:
        self._params = params
        self._collide = Collider(shape, definition, at_once=at_once, threads=threads)
        self._slide = Slide(shape, params, at_once, threads)

    def __call__(self, strikes: Strikes) -> np.ndarray:
        impacts = self._collide(strikes, np.tile(self._params, (len(strikes), 1)))
        slid = self._slide(impacts.after, impacts.moved[:, 2])
        return impacts.moved + slid


class Slide:
    """Blocks that slide to rest in MuJoCo, with coarse steps.

    The damping ratio of the ground is one here: smaller ones are unstable at this step, and a slide hardly feels it.
    """

    def __init__(self, shape: Shape, params: np.ndarray, at_once: int = 64, threads: int = 0) -> None:
        definition = replace(Definition(), timestep_s=COARSE_STEP_S)
        model = mujoco.MjModel.from_xml_string(scene_xml(shape, definition, striker=False))
        set_parameters(model, np.array([params[0], params[1], params[2], 1.0]))
        self._batch, self._at_once = Batch(model, at_once, threads), at_once
        self._height_m = float(SettledHeights(shape, Definition())(1.0))

    def __call__(self, velocity: np.ndarray, yaw_rad: np.ndarray | float = 0.0) -> np.ndarray:
        """Displacement and turn [N, 3] from velocities [N, 3] (m/s, m/s, rad/s) on; first turned by `yaw_rad`."""
        yaw = np.broadcast_to(yaw_rad, len(velocity))
        rows = [slice(first, first + self._at_once) for first in range(0, len(velocity), self._at_once)]
        return np.concatenate([self._some(velocity[part], yaw[part]) for part in rows])

    def _some(self, velocity: np.ndarray, yaw: np.ndarray) -> np.ndarray:
        batch, count = self._batch, len(velocity)
        batch.state[:count] = 0
        qpos, qvel = batch.bind("qpos"), batch.bind("qvel")
        qpos[:count, 2], qpos[:count, 3], qpos[:count, 6] = self._height_m, np.cos(yaw / 2), np.sin(yaw / 2)
        qvel[:count, :2], qvel[:count, 5] = velocity[:, :2], velocity[:, 2]
        going = np.arange(count, dtype=np.int32)
        for _ in range(int(_LONGEST_S / COARSE_STEP_S / _CHECK_EVERY)):
            batch.step(ids=going, nstep=_CHECK_EVERY)
            going = going[~_at_rest(qvel[going])]
            if len(going) == 0:
                break
        return np.column_stack([qpos[:count, :2], wrapped(yaw_of(qpos[:count, 3:7]) - yaw)])


def _at_rest(qvel: np.ndarray) -> np.ndarray:
    return qvel[:, 0] ** 2 + qvel[:, 1] ** 2 + (_REST_RADIUS_M * qvel[:, 5]) ** 2 < _REST_M2_S2
