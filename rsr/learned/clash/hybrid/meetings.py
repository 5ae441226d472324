"""Where the declared pair of a hybrid simulator meets."""

from __future__ import annotations

import mujoco
import numpy as np

from rsr.common import rotated
from rsr.scenarios import Scenario
from rsr.scenarios.built_in.strike import Shape, declared_collision, distances

_APPROACH_M_S, _ABOVE_M = 1e-3, 0.001


class Meetings:
    """Where the declared pair meets, found in states: cheaply from above, and confirmed in three dimensions."""

    def __init__(self, scenario: Scenario, shape: Shape) -> None:
        declared, model = declared_collision(scenario), scenario.base_model
        self._model, self._data, self._outline = model, mujoco.MjData(model), shape.outline
        self._reach_m = float(np.linalg.norm(shape.outline, axis=1).max()) + declared.nose_radius_m
        self._nose_radius_m = declared.nose_radius_m
        self._geoms = tuple(model.geom(name).id for name in (declared.striker, declared.struck))
        self._striker, self._struck = (int(model.geom_bodyid[geom]) for geom in self._geoms)
        self._of_mesh = model.geom_type[self._geoms[0]] == mujoco.mjtGeom.mjGEOM_MESH
        self._free_at = int(model.jnt_qposadr[model.body_jntadr[self._struck]])
        self._rails = self._straight()

    def gaps(self, states: np.ndarray) -> np.ndarray:
        """Distance [..] of nose and outline from above, in states [.., n]; where they are far apart, a lower bound."""
        flat = states.reshape(-1, states.shape[-1])
        position, quaternion = (
            flat[:, self._free_at : self._free_at + 3],
            flat[:, self._free_at + 3 : self._free_at + 7],
        )
        w, x, y, z = quaternion.T
        # First column of the rotation: where the block's x axis points, seen from above.
        yaw = np.arctan2(2 * (x * y + w * z), 1 - 2 * (y**2 + z**2))
        centre = position[:, :2] + rotated(
            np.broadcast_to(self._model.body_ipos[self._struck, :2], (len(flat), 2)), yaw
        )
        away = self._noses(flat) - centre
        found = np.linalg.norm(away, axis=1) - self._reach_m
        near = np.flatnonzero(found < 0)
        if len(near):
            found[near] = distances(rotated(away[near], -yaw[near]), self._outline) - self._nose_radius_m
        return found.reshape(states.shape[:-1])

    def first(
        self, at: np.ndarray, gaps: np.ndarray, states: np.ndarray, begun: int, step_s: float
    ) -> tuple[int, np.ndarray] | None:
        """First physics step from row `begun` on at which the two overlap and come nearer, with the state then."""
        apart = np.diff(at[begun:])
        # Two that part still overlap for some steps: an overlap that shrinks is the end of an impact, not another one.
        nearer = -np.diff(gaps[begun:]) > _APPROACH_M_S * apart * step_s
        for row in begun + np.flatnonzero((gaps[begun + 1 :] < 0) & nearer):
            # The gap shrinks evenly between two rows; the step just after it closes is the first that overlaps.
            share = float(np.clip(gaps[row] / (gaps[row] - gaps[row + 1]), 0, 1))
            steps = int(np.ceil(share * (at[row + 1] - at[row]) - 1e-9))
            state = self._between(states[row], states[row + 1], steps / (at[row + 1] - at[row]))
            if self._touches(states[row + 1]):
                return int(at[row]) + steps, state
        return None

    def _between(self, before: np.ndarray, after: np.ndarray, share: float) -> np.ndarray:
        nq = self._model.nq
        state, change = before + share * (after - before), np.zeros(self._model.nv)
        # Positions along the geodesic: quaternions do not add up.
        mujoco.mj_differentiatePos(self._model, change, 1.0, before[:nq], after[:nq])
        state[:nq] = before[:nq]
        mujoco.mj_integratePos(self._model, state[:nq], change, share)
        return state

    def _touches(self, state: np.ndarray) -> bool:
        """Whether the two are as near in three dimensions: a striker may pass above the block."""
        self._data.qpos[:] = state[: self._model.nq]
        mujoco.mj_kinematics(self._model, self._data)
        return mujoco.mj_geomDistance(self._model, self._data, *self._geoms, 1.0, None) < _ABOVE_M

    def _noses(self, states: np.ndarray) -> np.ndarray:
        """Places [N, 2] of the nose's centre in states [N, n]."""
        if self._rails is not None:
            origin, columns = self._rails
            return origin + states[:, : self._model.nq] @ columns
        return np.array([self._nose(state) for state in states])

    def _nose(self, qpos: np.ndarray) -> np.ndarray:
        data = self._data
        data.qpos[:] = qpos[: self._model.nq]
        mujoco.mj_kinematics(self._model, data)
        return (data.xpos[self._striker] if self._of_mesh else data.geom_xpos[self._geoms[0]])[:2].copy()

    def _straight(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Place [2] of the nose at qpos zero, and its change [nq, 2] with qpos, where it moves on rails alone."""
        model, body, columns = self._model, self._striker, np.zeros((self._model.nq, 2))
        start = model.qpos0.copy()
        origin = self._nose(start)
        while body:
            joints = range(model.body_jntadr[body], model.body_jntadr[body] + model.body_jntnum[body])
            if any(model.jnt_type[joint] != mujoco.mjtJoint.mjJNT_SLIDE for joint in joints):
                return None
            for joint in joints:
                moved = start.copy()
                moved[model.jnt_qposadr[joint]] += 1.0
                columns[model.jnt_qposadr[joint]] = self._nose(moved) - origin
            body = int(model.body_parentid[body])
        return origin - start @ columns, columns
