"""Impacts simulated in a scene: any pair of geoms, walls, several contacts at once.

What a simulated impact says, besides the velocity after, is where and along which normal it acted on the whole. Seen
so, an impact of any kind is a strike at one point, and what the simulation leaves over is learnt as for any other.
"""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

from rsr.common import rotated
from rsr.learned.clash.residual import Patch
from rsr.learned.clash.scenes.scene import ContactScene
from rsr.scenarios.built_in.strike import Strikes

_CHUNK, _LONGEST_S = 16, 0.06
_SETTLING_S, _FALLS_M = 0.1, 0.005
_SINKS_M = 0.0004
_WIDTH = 1 + 4 * 3


@dataclass(frozen=True)
class SceneImpacts:
    """N impacts as the scene simulates them, in the plane and in the struck body's frame before.

    Args:
        strikes: the impacts as strikes: mean point and normal of all contacts, and the relative velocity there.
        gained: [N, 3], by how much the struck body's velocity changed (m/s, m/s, rad/s).
        patch: [N], where else than in MuJoCo's contacts they may act.
        mobility: [N, 3], how the striker gives way there, as `ImpactLaw` has it; 0 for a wall.
        ended: [N, n], states when the two have parted. lasted_s: [N], since they touched.
        touched: [N], False where nothing acted between the two.
        yaw_rad: [N], turn of the struck body before.
    """

    strikes: Strikes
    gained: np.ndarray
    patch: Patch
    mobility: np.ndarray
    ended: np.ndarray
    lasted_s: np.ndarray
    touched: np.ndarray
    yaw_rad: np.ndarray

    def take(self, rows: np.ndarray) -> SceneImpacts:
        ends = (self.mobility, self.ended, self.lasted_s, self.touched, self.yaw_rad)
        taken = (each[rows] for each in ends)
        return SceneImpacts(self.strikes.take(rows), self.gained[rows], self.patch.take(rows), *taken)


def simulate(
    scene: ContactScene, values: np.ndarray, states: np.ndarray, apart_s: float | None = None, settled: bool = False
) -> SceneImpacts:
    """Simulate impacts from states [N, n] in which the two just touch, with parameters [P].

    Args:
        apart_s: the two have parted when they have been apart for so long; by default what the scenario declares.
        settled: whether the struck body lies on its table as deep as it rests there.
    """
    model = scene.fine.model(values)
    begun = states.copy()
    if not settled:
        _settle(scene, model, begun)
    full = mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    current = np.zeros((len(states), full))
    current[:, 1 : 1 + states.shape[1]] = begun
    going, step_s = np.arange(len(states)), model.opt.timestep
    quiet = max(1, round((scene.declared.apart_s if apart_s is None else apart_s) / step_s))
    longest, patience = round(_LONGEST_S / step_s), round(scene.declared.apart_s / step_s)
    felt = _Felt(len(begun), begun.shape[1], min(0, quiet - patience))
    for first in range(0, longest, _CHUNK):
        controls = np.zeros((len(going), _CHUNK, model.nu))
        path, sensed = scene.pool.rollout(model, [scene.data], current[going], controls, nstep=_CHUNK)
        # Readings are of the state before a step: that of the first one is where the chunk began.
        before = np.concatenate([current[going, None], path[:, :-1]], axis=1)[:, :, 1 : 1 + states.shape[1]]
        for step in range(_CHUNK):
            live = felt.quiet[going] < quiet  # what has parted may not touch again in the rest of its chunk
            if not live.any():
                break
            felt.note(going[live], before[live, step], _contacts(scene, sensed[live, step]), first + step)
        current[going] = path[:, -1]
        going = going[felt.quiet[going] < quiet]
        if len(going) == 0:
            break
    felt.give_up(going, current[going, 1 : 1 + states.shape[1]], longest)
    return _described(scene, begun, felt, step_s)


def _settle(scene: ContactScene, model: mujoco.MjModel, states: np.ndarray) -> None:
    """Lower the struck body to where it rests on its table, in place; else it would first drop a little."""
    gravity = model.opt.gravity / max(np.linalg.norm(model.opt.gravity), 1e-9)
    if abs(gravity @ scene.axes[2]) < 0.99:
        return
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data, nstep=round(_SETTLING_S / model.opt.timestep))
    at = int(model.jnt_qposadr[scene.free])
    change = (data.qpos[at : at + 3] - model.qpos0[at : at + 3]) @ scene.axes[2]
    if abs(change) < _FALLS_M:  # else nothing carries it: it moves freely
        states[:, at : at + 3] += change * scene.axes[2]


def _contacts(scene: ContactScene, sensed: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Forces [N, K] along the normals, these [N, K, 2] and places about the centre of mass [N, K, 2]."""
    slots = sensed[:, scene.columns[0]].reshape(len(sensed), -1, _WIDTH)
    centre = sensed[:, scene.columns[1]]
    force = np.where(slots[..., 0] > 0, slots[..., 1], 0.0)
    return force, slots[..., 7:10] @ scene.axes[:2].T, (slots[..., 4:7] - centre[:, None]) @ scene.axes[:2].T


def _described(scene: ContactScene, begun: np.ndarray, felt: _Felt, step_s: float) -> SceneImpacts:
    """The impacts as strikes on the struck body, in its frame."""
    yaw = scene.poses(begun)[:, 2]
    total = np.maximum(felt.impulse, 1e-12)
    length = np.maximum(np.linalg.norm(felt.normal, axis=1), 1e-12)
    normal = felt.normal / length[:, None]
    normal[felt.impulse <= 0] = [1.0, 0.0]
    point = felt.moment / total[:, None]
    middle, spread = _near(scene, begun)
    shift = normal[:, 0] * (middle - point)[:, 1] - normal[:, 1] * (middle - point)[:, 0]
    relative, mobility = _relative(scene, begun, point, normal)
    along = (relative * normal).sum(axis=1)
    across = normal[:, 0] * relative[:, 1] - normal[:, 1] * relative[:, 0]
    strikes = Strikes(
        np.maximum(np.hypot(along, across), 1e-6),
        np.arctan2(across, along),
        rotated(point, -yaw),
        rotated(normal, -yaw),
    )
    change = scene.velocities(felt.ended) - scene.velocities(begun)
    gained = np.column_stack([rotated(change[:, :2], -yaw), change[:, 2]])
    return SceneImpacts(
        strikes, gained, Patch(shift, spread), mobility, felt.ended, felt.parted * step_s, felt.impulse > 0, yaw
    )


def _near(scene: ContactScene, states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Middle [N, 2] about the centre of mass, and scatter [N], of the places at which the two nearly touch."""
    middle, spread = np.zeros((len(states), 2)), np.zeros(len(states))
    data = scene.wide_data
    for row, state in enumerate(states):
        data.qpos[:] = state[: scene.model.nq]
        mujoco.mj_fwdPosition(scene.wide, data)
        contact = data.contact
        ours = np.isin(contact.geom, scene.strikers).any(axis=1) & np.isin(contact.geom, scene.touching).any(axis=1)
        if not ours.any():
            continue
        # Nearer places count more: what is a few tenths of a millimetre away is pressed, too.
        weight = np.exp(-(contact.dist[ours] - contact.dist[ours].min()) / _SINKS_M)
        weight /= weight.sum()
        places = (contact.pos[ours] - data.xipos[scene.struck]) @ scene.axes[:2].T
        middle[row] = weight @ places
        spread[row] = np.sqrt(weight @ ((places - middle[row]) ** 2).sum(axis=1))
    return middle, spread


def _relative(
    scene: ContactScene, states: np.ndarray, points: np.ndarray, normals: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Velocity [N, 2] of the striker's surface from the struck one's, at points [N, 2]; and its mobility [N, 3]."""
    found, mobility = np.zeros((len(states), 2)), np.zeros((len(states), 3))
    model, nq = scene.model, scene.model.nq
    for row, (state, point, normal) in enumerate(zip(states, points, normals, strict=True)):
        data = scene.at(state[:nq])
        place = data.xipos[scene.struck] + scene.axes[:2].T @ point
        striker = scene.jacobians(place, scene.striker)[0]
        motion = striker - scene.jacobians(place, scene.struck)[0]
        found[row] = scene.axes[:2] @ (motion @ state[nq : nq + model.nv])
        # The effective mass of an arm: J M^-1 J^T, in the contact's own directions.
        across = np.array([-normal[1], normal[0]])
        directions = np.stack([normal, across]) @ scene.axes[:2] @ striker
        solved = np.zeros_like(directions)
        mujoco.mj_makeM(model, data)
        mujoco.mj_factorM(model, data)
        mujoco.mj_solveM(model, data, solved, directions)
        gives = float(model.body_mass[scene.struck]) * directions @ solved.T
        mobility[row] = gives[0, 0], gives[0, 1], gives[1, 1]
    return found, mobility


class _Felt:
    """What has acted so far in N simulated impacts, and how each ended."""

    def __init__(self, count: int, size: int, quiet: int) -> None:
        self.impulse = np.zeros(count)
        self.normal, self.moment = np.zeros((count, 2)), np.zeros((count, 2))
        # Below zero: before the first touch the two may take longer than between two.
        self.quiet, self.parted = np.full(count, quiet), np.zeros(count, int)
        self.ended = np.zeros((count, size))

    def note(
        self, rows: np.ndarray, states: np.ndarray, contacts: tuple[np.ndarray, np.ndarray, np.ndarray], step: int
    ) -> None:
        """Take in one time step of the impacts in `rows`."""
        force, normal, place = contacts
        pressed = force.sum(axis=1)
        self.impulse[rows] += pressed
        self.normal[rows] += (force[..., None] * normal).sum(axis=1)
        self.moment[rows] += (force[..., None] * place).sum(axis=1)
        touches = pressed > 0
        # The first step without force is when the two have parted, unless they touch again within `apart_s`.
        first = ~touches & (self.quiet[rows] == 0)
        self.ended[rows[first]], self.parted[rows[first]] = states[first], step
        self.quiet[rows] = np.where(touches, 0, self.quiet[rows] + 1)

    def give_up(self, rows: np.ndarray, states: np.ndarray, step: int) -> None:
        """End the impacts in which the two touch still."""
        late = rows[self.quiet[rows] == 0]
        self.ended[late], self.parted[late] = states[self.quiet[rows] == 0], step
