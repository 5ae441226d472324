"""The hybrid simulator behind the `Simulator` contract: MuJoCo, but collisions of the two blocks are the surrogate's.

Driven by events: all windows are rolled out in C without that contact, the first overlap of nose and block is looked
for afterwards, the surrogate says how it ends, and only what comes after is rolled out again.
"""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np
from mujoco import rollout as mujoco_rollout

from rsr.clash.adaptation import Adapted
from rsr.scenarios.strike import Definition, Strikes, scene_xml
from rsr.scenarios.strike.outline import distances, rotated
from rsr.simulators.strikes import set_parameters, yaw_of

_BLOCK_TURN, _RAIL = 5, 6
_RAIL_POSITION = 7
_MOST_COLLISIONS = 10
_PLACES = 400


@dataclass(frozen=True)
class Collision:
    """One that the surrogate handled: which window, when since its start, and the strike in the block's frame."""

    window: int
    time_s: float
    strike: Strikes


class HybridSimulator:
    """Rolls the scene of `scene_xml` forward: qpos is the block's free joint and the rail, ctrl the force on the rail.

    After a `rollout`, `collisions` lists what the surrogate handled. The surrogate knows blocks at rest; one that moves
    is struck with the relative velocity, in its own frame.
    """

    def __init__(self, model: Adapted, control_dt_s: float = 0.01, timestep_s: float = 0.001, threads: int = 1) -> None:
        self._adapted, self._shape = model, model.shape
        self._substeps, self._timestep_s = round(control_dt_s / timestep_s), timestep_s
        self._definition = Definition(timestep_s=timestep_s)
        self._pool = mujoco_rollout.Rollout(nthread=threads)
        self._scene = self._model(model.identified.values)
        self._data = [mujoco.MjData(self._scene) for _ in range(max(1, threads))]
        places = np.linspace(-1, 1, _PLACES)
        faces = [face.at(places) for face in self._shape.struck_faces]
        self._points, self._normals = (np.concatenate(parts) for parts in zip(*faces, strict=True))
        self.collisions: tuple[Collision, ...] = ()

    def close(self) -> None:
        self._pool.close()

    def rollout(self, states: np.ndarray, actions: np.ndarray, params: np.ndarray) -> np.ndarray:
        """See `Simulator.rollout`; states [B, 15]. `params` [4] or [B, 4] act on the slide, not on impacts."""
        steps = np.repeat(actions, self._substeps, axis=1)
        values = np.broadcast_to(np.atleast_2d(params), (len(states), 4))
        models = [self._model(row) for row in values]
        path = np.concatenate([states[:, None], self._free(models, states, steps)], axis=1)
        found: list[Collision] = []
        begun = np.zeros(len(states), int)
        for _ in range(_MOST_COLLISIONS):
            struck = [(window, self._first_overlap(path[window], begun[window])) for window in range(len(states))]
            hits = [(window, step) for window, step in struck if step is not None]
            if not hits:
                break
            for window, step in hits:
                state, strike = self._after(path[window, step])
                found.append(Collision(window, step * self._timestep_s, strike))
                path[window, step], begun[window] = state, step + 1
                rest = steps[window : window + 1, step:]
                if rest.shape[1]:
                    path[window, step + 1 :] = self._free([models[window]], state[None], rest)[0]
        self.collisions = tuple(sorted(found, key=lambda collision: (collision.window, collision.time_s)))
        return path[:, :: self._substeps]

    def _model(self, params: np.ndarray) -> mujoco.MjModel:
        """The scene without contact between the blocks."""
        model = mujoco.MjModel.from_xml_string(scene_xml(self._shape, self._definition))
        # Ratios below one are unstable on the ground at coarse steps, and a slide hardly feels them.
        set_parameters(model, np.array([*params[:3], max(1.0, params[3])]))
        model.pair_margin[model.pair("hit").id] = -1.0
        return model

    def _free(self, models: list[mujoco.MjModel], states: np.ndarray, steps: np.ndarray) -> np.ndarray:
        size = mujoco.mj_stateSize(self._scene, mujoco.mjtState.mjSTATE_FULLPHYSICS)
        initial = np.zeros((len(states), size))
        initial[:, 1 : 1 + states.shape[1]] = states
        trajectory, _ = self._pool.rollout(models, self._data, initial, steps)
        return trajectory[:, :, 1 : 1 + states.shape[1]]

    def _first_overlap(self, path: np.ndarray, begun: int) -> int | None:
        """First step at which the nose touches the block and comes nearer, or None."""
        later = path[begun:]
        near = np.flatnonzero(self._gaps(later) < 0)
        for step in near:
            if self._strike(later[step])[1]:
                return begun + int(step)
        return None

    def _gaps(self, path: np.ndarray) -> np.ndarray:
        seen = self._nose(path)
        reach = self._definition.nose_radius_m
        close = np.linalg.norm(seen, axis=1) < reach + np.linalg.norm(self._shape.outline, axis=1).max()
        gaps = np.full(len(path), np.inf)
        if close.any():
            gaps[close] = distances(seen[close], self._shape.outline) - reach
        return gaps

    def _nose(self, path: np.ndarray) -> np.ndarray:
        """Centre of the nose in the block's frame, [N, 2]."""
        centre = np.column_stack([path[:, _RAIL_POSITION], np.zeros(len(path))])
        return rotated(centre - path[:, :2], -yaw_of(path[:, 3:7]))

    def _strike(self, state: np.ndarray) -> tuple[Strikes, bool]:
        """The strike of a touching state, and whether the blocks come nearer."""
        nose, yaw = self._nose(state[None])[0], float(yaw_of(state[None, 3:7])[0])
        place = int(np.linalg.norm(self._points - nose, axis=1).argmin())
        point, normal = self._points[place], self._normals[place]
        velocity = state[8:]
        own = rotated(velocity[:2], -yaw) + velocity[_BLOCK_TURN] * np.array([-point[1], point[0]])
        relative = rotated(np.array([velocity[_RAIL], 0.0]), -yaw) - own
        along, across = relative @ normal, relative @ np.array([-normal[1], normal[0]])
        speed = np.array([np.hypot(along, across)])
        return Strikes(speed, np.array([np.arctan2(across, along)]), point[None], normal[None]), bool(along > 1e-3)

    def _after(self, state: np.ndarray) -> tuple[np.ndarray, Strikes]:
        """State when the blocks have parted; the arm loses what momentum the block gains along the rail."""
        strike, _ = self._strike(state)
        gained, yaw = self._adapted(strike)[0], float(yaw_of(state[None, 3:7])[0])
        after = state.copy()
        pushed = rotated(gained[:2], yaw)
        after[8:10] += pushed
        after[8 + _BLOCK_TURN] += gained[2]
        after[8 + _RAIL] -= self._shape.mass_kg / self._definition.striker_mass_kg * pushed[0]
        return after, strike
