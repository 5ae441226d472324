"""The declared pair from above: poses of striker and struck block, their strikes, and the effect of an impact."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import mujoco
import numpy as np

from rsr.common import CalibrationError, rotated
from rsr.learned.clash.extraction import StrikeTrajectory, extract_strikes
from rsr.scenarios import Scenario
from rsr.scenarios.built_in.strike import RecordedStrikes, Shape, Strikes, declared_collision, struck_shape
from rsr.sessions import Episode, Session

_PLACES = 400


class Planar:
    """Geometry of the pair that a scenario declares. Keeps one `MjData`, so it serves one thread.

    A striker that is a mesh is round about the origin of its body; any other about its own centre.
    """

    def __init__(self, scenario: Scenario) -> None:
        declared, model = declared_collision(scenario), scenario.base_model
        self.shape: Shape = struck_shape(scenario)
        self._model, self._data = model, mujoco.MjData(model)
        nose, block = model.geom(declared.striker).id, model.geom(declared.struck).id
        self._nose, self._body = nose, int(model.geom_bodyid[block])
        self._striker = int(model.geom_bodyid[nose])
        self._of_mesh = model.geom_type[nose] == mujoco.mjtGeom.mjGEOM_MESH
        self._dof = int(model.jnt_dofadr[model.body_jntadr[self._body]])
        # Any side may be struck here, also one that looks like another in which the surrogate was trained.
        places = np.linspace(-1, 1, _PLACES)
        faces = [face.at(places) for face in self.shape.faces]
        self._points, self._normals = (np.concatenate(parts) for parts in zip(*faces, strict=True))

    def poses(self, states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Block [T, 3] (centre of mass in m, turn in rad) and nose [T, 2] of states [T, nq + nv]."""
        found = [self._pose(state) for state in states]
        block, nose = (np.array(part) for part in zip(*found, strict=True))
        return np.column_stack([block[:, :2], np.unwrap(block[:, 2])]), nose

    def strike(self, state: np.ndarray) -> Strikes:
        """The strike of a state in which the two touch: the block's own motion is taken off the striker's."""
        block, nose = self._pose(state)
        # The nearest place of a fine grid: a closed form would need another one for each kind of face.
        place = int(np.linalg.norm(self._points - rotated(nose - block[:2], -block[2]), axis=1).argmin())
        point, normal = self._points[place], self._normals[place]
        touched = np.append(rotated(point, block[2]) + block[:2], self._data.xipos[self._body, 2])
        # Velocities of the two surfaces at the point where they touch, by J qvel: a striker on an arm turns too.
        motion = [self._jacobian(touched, body) @ state[self._model.nq :] for body in (self._striker, self._body)]
        relative = rotated((motion[0] - motion[1])[:2], -block[2])
        along, across = relative @ normal, relative @ np.array([-normal[1], normal[0]])
        speed, angle = np.array([np.hypot(along, across)]), np.array([np.arctan2(across, along)])
        return Strikes(speed, angle, point[None], normal[None])

    def after(self, state: np.ndarray, strike: Strikes, gained: np.ndarray) -> np.ndarray:
        """The state after an impact by which the block gained velocities [3], in its frame; the striker pays for it."""
        model, data, body = self._model, self._data, self._body
        block, _ = self._pose(state)
        push = np.append(rotated(gained[:2], block[2]), 0.0)
        turn = np.array([0.0, 0.0, gained[2]])
        touched = np.append(rotated(strike.point_m[0], block[2]) + block[:2], data.xipos[body, 2])
        paid = np.zeros((1, model.nv))
        mujoco.mj_makeM(model, data)
        mujoco.mj_factorM(model, data)
        # Newton's third law, through the striker's own inertia: M dq = J^T p.
        impulse = -self.shape.mass_kg * push
        mujoco.mj_solveM(model, data, paid, (self._jacobian(touched, self._striker).T @ impulse)[None])
        after = state.copy()
        qvel = after[model.nq :]
        qvel += paid[0]
        # A free joint's linear velocity is of the body's frame, not of its centre of mass; its angular one is local.
        qvel[self._dof : self._dof + 3] += push - np.cross(turn, data.xipos[body] - data.xpos[body])
        qvel[self._dof + 3 : self._dof + 6] += data.xmat[body].reshape(3, 3).T @ turn
        return after

    def _pose(self, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        model, data = self._model, self._data
        data.qpos[:] = state[: model.nq]
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        axes = data.xmat[self._body].reshape(3, 3)
        yaw = np.arctan2(axes[1, 0], axes[0, 0])
        nose = data.xpos[self._striker] if self._of_mesh else data.geom_xpos[self._nose]
        return np.append(data.xipos[self._body, :2], yaw), nose[:2].copy()

    def _jacobian(self, point: np.ndarray, body: int) -> np.ndarray:
        """Of a point that moves with a body: [3, nv]."""
        jacobian = np.zeros((3, self._model.nv))
        mujoco.mj_jac(self._model, self._data, jacobian, None, point, body)
        return jacobian


# From sessions to strikes: episodes of a scenario that declares a collision, as the extractor wants them.


@dataclass(frozen=True)
class Recordings:
    """The strikes of some sessions.

    Args:
        episodes: [N], which episode each strike is, counted over all sessions one after the other.
        rejected: (episode, why it is no strike).
        ground_friction: by regression; None without any strike.
    """

    strikes: RecordedStrikes
    episodes: tuple[int, ...]
    rejected: tuple[tuple[int, str], ...]
    ground_friction: float | None

    def take(self, rows: np.ndarray) -> RecordedStrikes:
        return self.strikes.take(rows)


def strikes_of(scenario: Scenario, sessions: Sequence[Session]) -> Recordings:
    """Extract strikes from recorded trajectories.

    Raises:
        CalibrationError: sessions of another scenario, or not one strike in them.
    """
    for session in sessions:
        if session.card.scenario != scenario.name:
            raise _refused(scenario, f"a session of scenario {session.card.scenario}", f"one of {scenario.name}")
    episodes = [episode for session in sessions for episode in session.episodes]
    planar = Planar(scenario)
    trajectories = [trajectory_of(scenario, planar, episode) for episode in episodes]
    found = extract_strikes(planar.shape, trajectories, declared_collision(scenario).nose_radius_m)
    if found.recorded is None:
        why = found.rejected[0][1] if found.rejected else "there are no episodes"
        raise _refused(scenario, f"no strike in {len(episodes)} episodes ({why})", "recordings of one strike each")
    return Recordings(found.recorded, found.kept, found.rejected, found.ground_friction)


def trajectory_of(scenario: Scenario, planar: Planar, episode: Episode) -> StrikeTrajectory:
    """Block and striker in the plane, by the scenario's own kinematics: row by row as recorded."""
    states = np.zeros((len(episode), scenario.state_size))
    # Joints that are not recorded stay where the model has them.
    states[:, : scenario.base_model.nq] = scenario.base_model.qpos0
    for observed in scenario.observed:
        states[:, list(observed.qpos)] = episode[observed.channel.name]
    block, nose = planar.poses(states)
    return StrikeTrajectory(episode.time_s, block, nose)


def _refused(scenario: Scenario, got: str, expected: str) -> CalibrationError:
    return CalibrationError(
        got=got,
        expected=expected,
        where=f"strikes of scenario {scenario.name}",
        next_step="Look at the sessions with `rsr check`; docs/clash.md says what is a strike.",
    )
