"""Strikes in MuJoCo, many at once: from just before contact to the first time step without force between the blocks."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np
from mujoco.batch import Batch

from rsr.scenarios.plane import rotated, wrapped
from rsr.scenarios.pushing.pose import yaw_of
from rsr.scenarios.strike import PARAMETERS, Definition, Shape, Strikes, scene_xml

_BLOCK_XY, _BLOCK_TURN = slice(0, 2), 5
_RAIL_VELOCITY = 6


@dataclass(frozen=True)
class Impacts:
    """What strikes did to the block, in its frame at the moment of impact.

    Args:
        after: [N, 3], velocity (m/s, m/s, rad/s) at the first time step without force.
        moved: [N, 3], how far it was pushed until then (m, m, rad).
        contact_s: [N], how long they touched.
        parted: [N], False where they still touched when the simulation gave up.
    """

    after: np.ndarray
    moved: np.ndarray
    contact_s: np.ndarray
    parted: np.ndarray


class Collider:
    """Simulates strikes on one shape. Results do not depend on `at_once` nor on the number of threads."""

    def __init__(
        self, shape: Shape, definition: Definition | None = None, at_once: int = 1000, threads: int = 0
    ) -> None:
        self.shape = shape
        self.definition = Definition() if definition is None else definition
        self._model = mujoco.MjModel.from_xml_string(scene_xml(shape, self.definition))
        self._hit, self._ground = (self._model.pair(name).id for name in ("hit", "ground"))
        self._batch = Batch(self._model, at_once, threads)
        self._friction, self._solref = self._batch.expand("pair_friction"), self._batch.expand("pair_solref")
        self._heights = SettledHeights(shape, self.definition)
        self._at_once = at_once

    def __call__(self, strikes: Strikes, params: np.ndarray, phase: np.ndarray | float = 0.5) -> Impacts:
        """Simulate N strikes.

        Args:
            params: [N, 4], in the order of `PARAMETERS`.
            phase: [N] or one, in 0..1: where within a time step the blocks meet, which moves results by a percent.
        """
        phase = np.broadcast_to(phase, len(strikes))
        parts = [
            self._some(strikes.take(rows), params[rows], phase[rows])
            for rows in (slice(first, first + self._at_once) for first in range(0, len(strikes), self._at_once))
        ]
        return Impacts(*(np.concatenate([getattr(part, name) for part in parts]) for name in Impacts.__annotations__))

    def _some(self, strikes: Strikes, params: np.ndarray, phase: np.ndarray) -> Impacts:
        start = self._place(strikes, params, phase)
        touched_s, parted_s, state = self._until_parted(len(strikes))
        turned = wrapped(yaw_of(state[:, 3:7]) - strikes.yaw_rad)
        moved = np.column_stack([rotated(state[:, :2] - start, -strikes.yaw_rad), turned])
        after = np.column_stack([rotated(state[:, 8:10], -strikes.yaw_rad), state[:, 8 + _BLOCK_TURN]])
        return Impacts(after, moved, parted_s - touched_s, np.isfinite(parted_s))

    def _place(self, strikes: Strikes, params: np.ndarray, phase: np.ndarray) -> np.ndarray:
        """Write initial states and parameters; returns the block's position [N, 2] in the world."""
        count, definition = len(strikes), self.definition
        gap_m = strikes.speed_m_s * np.cos(strikes.angle_rad) * definition.timestep_s * (1 + phase)
        reach = strikes.normal * (definition.nose_radius_m + gap_m)[:, None]
        position = rotated(reach - strikes.point_m, strikes.yaw_rad)
        batch = self._batch
        batch.state[:count] = 0
        qpos = batch.bind("qpos")
        qpos[:count, :2], qpos[:count, 2] = position, self._heights(params[:, 3])
        qpos[:count, 3], qpos[:count, 6] = np.cos(strikes.yaw_rad / 2), np.sin(strikes.yaw_rad / 2)
        batch.bind("qvel")[:count, _RAIL_VELOCITY] = strikes.speed_m_s
        batch.bind("qfrc_applied")[:count, _RAIL_VELOCITY] = -definition.striker_mass_kg * definition.braking_m_s2
        self._friction[:count, self._hit, :2] = params[:, :1]
        self._friction[:count, self._ground, :2] = params[:, 1:2]
        self._solref[:count, self._hit, 1], self._solref[:count, self._ground, 1] = params[:, 2], params[:, 3]
        return position

    def _until_parted(self, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Step each strike until it is over: when they touched and parted [N], and qpos with qvel then [N, 8 + 7]."""
        batch, step_s = self._batch, self.definition.timestep_s
        qpos, qvel, force = batch.bind("qpos"), batch.bind("qvel"), batch.bind("sensordata")
        touched_s, parted_s = np.full(count, np.nan), np.full(count, np.nan)
        state = np.zeros((count, qpos.shape[1] + qvel.shape[1]))
        going = np.arange(count, dtype=np.int32)
        for step in range(1, round(self.definition.longest_contact_s / step_s) + 1):
            batch.step(ids=going, nstep=1)
            pressed = force[going, 0] > 0
            first = pressed & np.isnan(touched_s[going])
            touched_s[going[first]] = step * step_s
            over = ~pressed & np.isfinite(touched_s[going])
            parted_s[going[over]] = step * step_s
            state[going[over]] = np.hstack([qpos[going[over]], qvel[going[over]]])
            going = going[~over]
            if len(going) == 0:
                break
        state[going] = np.hstack([qpos[going], qvel[going]])
        return touched_s, parted_s, state


class SettledHeights:
    """Height at which a block rests, as a function of the ground's damping ratio; otherwise it would drop first."""

    def __init__(self, shape: Shape, definition: Definition) -> None:
        model = mujoco.MjModel.from_xml_string(scene_xml(shape, definition, striker=False))
        ratio = PARAMETERS["ground_damping_ratio"]
        self._ratios = np.geomspace(ratio.lower, ratio.upper, 12)
        batch = Batch(model, len(self._ratios), 1)
        batch.expand("pair_solref")[:, model.pair("ground").id, 1] = self._ratios
        batch.step(nstep=round(0.6 / definition.timestep_s))
        self._heights_m = batch.bind("qpos")[:, 2].copy()

    def __call__(self, damping_ratio: np.ndarray | float) -> np.ndarray:
        return np.interp(np.log(damping_ratio), np.log(self._ratios), self._heights_m)


def set_parameters(model: mujoco.MjModel, params: np.ndarray) -> None:
    """Write parameters [4], in the order of `PARAMETERS`, into a scene with or without a striker."""
    for name, friction, ratio in (("hit", params[0], params[2]), ("ground", params[1], params[3])):
        index = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_PAIR, name)
        if index >= 0:
            model.pair_friction[index, :2], model.pair_solref[index, 1] = friction, ratio
