"""Strikes in MuJoCo, many at once: from just before contact to the first time step without force between the blocks."""

from __future__ import annotations

from dataclasses import dataclass, replace

import mujoco
import numpy as np
from mujoco.batch import Batch

from rsr.common import rotated, wrapped, yaw_of
from rsr.scenarios.built_in.strike import PARAMETERS, Definition, Shape, Strikes, scene_xml

_BLOCK_XY, _BLOCK_TURN = slice(0, 2), 5
_RAIL_VELOCITY = 6


@dataclass(frozen=True)
class Impacts:
    """Outcomes of strikes, in the block's frame at the moment of impact.

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
        # One to two steps before contact, by the phase: nothing is stepped on the way there.
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
        # Both tangential directions; a pair has five coefficients, and condim 3 reads the first two.
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
            # Most are over after ten of sixty milliseconds: stepping only the others is three times as fast.
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


# Strikes in MuJoCo from first contact to rest.

_COARSE_STEP_S = 0.002
_LONGEST_S = 6.0
_CHECK_EVERY = 20
_REST_M2_S2, _REST_RADIUS_M = 9e-6, 0.03


class FastRollout:
    """Strikes at MuJoCo's best: no approach, fine steps for the impact alone, coarse ones for the slide, batched."""

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
        definition = replace(Definition(), timestep_s=_COARSE_STEP_S)
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
        for _ in range(int(_LONGEST_S / _COARSE_STEP_S / _CHECK_EVERY)):
            batch.step(ids=going, nstep=_CHECK_EVERY)
            going = going[~at_rest(qvel[going])]
            if len(going) == 0:
                break
        return np.column_stack([qpos[:count, :2], wrapped(yaw_of(qpos[:count, 3:7]) - yaw)])


def at_rest(qvel: np.ndarray) -> np.ndarray:
    return qvel[:, 0] ** 2 + qvel[:, 1] ** 2 + (_REST_RADIUS_M * qvel[:, 5]) ** 2 < _REST_M2_S2
