"""The true table: two cubes that slide and collide, stepped finely, with a friction that MuJoCo alone does not know."""

from __future__ import annotations

import mujoco
import numpy as np

from rsr.realities._cubes.truth import CubesTruth
from rsr.scenarios.built_in.two_cubes import FRAME_S, MASS_KG, cube, scene_xml

_STEPS = 80
"""Physics steps to a frame: 0.2 ms."""


class Table:
    """Simulates pushes. Poses are of the middles of the cubes, which the tags show; centres of mass lie elsewhere."""

    def __init__(self, truth: CubesTruth) -> None:
        self._truth = truth
        blocks = [cube(f"cube{index + 1}", mass_kg=MASS_KG * ratio) for index, ratio in enumerate(truth.mass_ratio)]
        self._model = mujoco.MjModel.from_xml_string(scene_xml(blocks, timestep_s=FRAME_S / _STEPS))
        self._floor = [self._model.pair(f"floor_{block.name}").id for block in blocks]
        self._write_contacts()
        self._model.opt.gravity[:2] = 9.81 * np.array(truth.slope)
        for block, centre in zip(blocks, truth.centre_m, strict=True):
            geom = self._model.geom(block.name)
            geom.sameframe = 0
            geom.pos = -centre

    def push(self, poses: np.ndarray, velocities: np.ndarray, frames: int) -> np.ndarray:
        """Let the cubes go from poses [2, 7] with velocities [2, 6]; returns [frames, 2, 7]."""
        data = mujoco.MjData(self._model)
        data.qpos, data.qvel = self._shifted(poses, self._truth.centre_m).ravel(), velocities.ravel()
        seen = [poses]
        for _ in range(frames - 1):
            for _ in range(_STEPS):
                self._set_friction(data.qvel.reshape(2, 6))
                mujoco.mj_step(self._model, data)
            seen.append(self._shifted(data.qpos.reshape(2, 7).copy(), -self._truth.centre_m))
        return np.array(seen)

    def _write_contacts(self) -> None:
        model, truth = self._model, self._truth
        hit = model.pair("cube1_cube2").id
        model.pair_friction[hit, :2] = truth.cube_friction
        model.pair_solref[:] = truth.table_solref
        model.pair_solref[hit] = truth.cube_solref
        model.pair_solimp[:, :3] = 0.95, 0.99, 0.0005

    def _set_friction(self, velocity: np.ndarray) -> None:
        """MuJoCo's axes of friction on a level plane are the world's y and -x."""
        truth = self._truth
        speed = np.linalg.norm(velocity[:, :2], axis=1)
        static = (truth.static_ratio - 1) * np.exp(-speed / truth.static_speed_m_s)
        friction = np.array(truth.table_friction) * (1 + static + truth.rate_s_m * speed)
        self._model.pair_friction[self._floor, 0] = friction * (1 + truth.grain)
        self._model.pair_friction[self._floor, 1] = friction * (1 - truth.grain)

    @staticmethod
    def _shifted(poses: np.ndarray, by_m: np.ndarray) -> np.ndarray:
        """Poses [2, 7] of other points of the cubes, given in the cubes' frames."""
        moved = poses.copy()
        for row, offset in zip(moved, by_m, strict=True):
            turned = np.empty(3)
            mujoco.mju_rotVecQuat(turned, offset, row[3:])
            row[:3] += turned
        return moved
