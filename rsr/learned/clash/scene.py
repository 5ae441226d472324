"""Impacts simulated in a scenario's own scene: any pair of geoms, walls, several contacts at once.

What a simulated impact says, besides the velocity after, is where and along which normal it acted on the whole. Seen
so, an impact of any kind is a strike at one point, and what the simulation leaves over is learnt as for any other.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from functools import cached_property

import mujoco
import numpy as np
from mujoco import rollout as mujoco_rollout
from scipy.spatial import ConvexHull

from rsr.errors import ScenarioError
from rsr.learned.clash.residual import Patch
from rsr.learned.clash.scene_geometry import collides, geoms_of, points_of
from rsr.rotations import rotated
from rsr.scenarios import Scenario
from rsr.scenarios.built_in.strike import Shape, Strikes
from rsr.scenarios.built_in.strike.outline import faces_of
from rsr.scenarios.collision import SceneCollision

_STEP_S = 0.00025
"""Impacts take milliseconds: at 2 ms, MuJoCo's default, most outcomes are others."""
_CHUNK, _LONGEST_S = 16, 0.06
_SLOTS = 4
_SETTLING_S, _FALLS_M = 0.1, 0.005
_TOUCH_M, _FAR_M, _ERR_M = 1e-5, 0.02, 0.003
_PROBE_S, _SLOWEST_M_S, _TURNS = 1e-5, 0.005, 30
_NEAR_M, _SINKS_M = 0.002, 0.0004
_AXES = {"xy": (0, 1), "xz": (0, 2), "yz": (1, 2)}
_DATA = (
    mujoco.mjtConDataField.mjCONDATA_FOUND,
    mujoco.mjtConDataField.mjCONDATA_FORCE,
    mujoco.mjtConDataField.mjCONDATA_POS,
    mujoco.mjtConDataField.mjCONDATA_NORMAL,
    mujoco.mjtConDataField.mjCONDATA_TANGENT,
)
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
    """

    strikes: Strikes
    gained: np.ndarray
    patch: Patch
    mobility: np.ndarray
    ended: np.ndarray
    lasted_s: np.ndarray
    touched: np.ndarray

    def take(self, rows: np.ndarray) -> SceneImpacts:
        ends = (self.mobility[rows], self.ended[rows], self.lasted_s[rows], self.touched[rows])
        return SceneImpacts(self.strikes.take(rows), self.gained[rows], self.patch.take(rows), *ends)


class ContactScene:
    """The scene of a scenario whose collision has the base 'scene'. Keeps one `MjData`, so it serves one thread.

    The striker coasts while the two touch: its actuators are off and its weight is carried, but it is as heavy as its
    joints let it be. What else is in the scene, such as a table, acts as ever.
    """

    def __init__(self, scenario: Scenario) -> None:
        self.scenario, self.declared = scenario, declared_scene(scenario)
        spec, self._columns = _instrumented(scenario, self.declared)
        model = spec.compile()
        for option in ("cone", "integrator", "tolerance"):  # what `structured` may have chosen
            setattr(model.opt, option, getattr(scenario.base_model.opt, option))
        model.opt.timestep = min(_STEP_S, scenario.base_model.opt.timestep)
        model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_ACTUATION
        self._fine = replace(scenario, base_model=model, source=spec)
        self.model, self._data = model, mujoco.MjData(model)
        self.strikers = [model.geom(name).id for name in self.declared.striker]
        self.striker = int(model.geom_bodyid[self.strikers[0]])
        self.struck = int(model.geom_bodyid[model.geom(self.declared.struck).id])
        self._touching = [geom for geom in geoms_of(model, self.struck) if collides(model, geom)]
        self.free = int(model.body_jntadr[self.struck])
        held = int(model.body_jntadr[self.striker])
        self.strikes_freely = held >= 0 and model.jnt_type[held] == mujoco.mjtJoint.mjJNT_FREE
        first, second = np.eye(3)[list(_AXES[self.declared.plane])]
        self.axes = np.stack([first, second, np.cross(first, second)])
        self._wide = copy.copy(model)
        self._wide.geom_margin[:], self._wide.pair_margin[:] = _NEAR_M, _NEAR_M
        self._wide_data = mujoco.MjData(self._wide)
        self._pool = mujoco_rollout.Rollout(nthread=1)

    @cached_property
    def shape(self) -> Shape:
        """The struck body as seen across the plane, about its centre of mass, with its own inertia."""
        model, data = self.model, self._at(self.model.qpos0)
        points = np.concatenate([points_of(model, data, geom) for geom in self._touching])
        flat = (points - data.xipos[self.struck]) @ self.axes[:2].T
        outline = flat[ConvexHull(flat).vertices]
        mass_kg = float(model.body_mass[self.struck])
        turn = data.ximat[self.struck].reshape(3, 3).T @ self.axes[2]
        gyration_m = float(np.sqrt(turn**2 @ model.body_inertia[self.struck] / mass_kg))
        longest = int(np.argmax([face.length_m for face in faces_of(outline)]))
        return Shape(
            self.declared.struck, outline, (longest,), float(np.ptp(points @ self.axes[2])), mass_kg, gyration_m
        )

    # Poses and velocities of the struck body in the plane.

    def poses(self, states: np.ndarray) -> np.ndarray:
        """Centre of mass and turn [N, 3] of the struck body in states [N, n], in the plane (m, m, rad)."""
        start = self._at(self.model.qpos0).xmat[self.struck].reshape(3, 3).copy()
        found = []
        for state in states:
            data = self._at(state[: self.model.nq])
            turn = self.axes @ data.xmat[self.struck].reshape(3, 3) @ start.T @ self.axes.T
            found.append([*(self.axes[:2] @ data.xipos[self.struck]), np.arctan2(turn[1, 0], turn[0, 0])])
        return np.array(found).reshape(-1, 3)

    def velocities(self, states: np.ndarray) -> np.ndarray:
        """Velocity [N, 3] of the struck body's centre of mass and its turning, in the plane (m/s, m/s, rad/s)."""
        found = []
        for state in states:
            data = self._at(state[: self.model.nq])
            linear, angular = self._jacobians(data.xipos[self.struck], self.struck)
            qvel = state[self.model.nq : self.model.nq + self.model.nv]
            found.append([*(self.axes[:2] @ (linear @ qvel)), self.axes[2] @ (angular @ qvel)])
        return np.array(found).reshape(-1, 3)

    def velocity_of(self, state: np.ndarray) -> np.ndarray:
        """Velocity [3] of the struck body's centre of mass in the world."""
        data = self._at(state[: self.model.nq])
        linear, _ = self._jacobians(data.xipos[self.struck], self.struck)
        return linear @ state[self.model.nq : self.model.nq + self.model.nv]

    def place(self, qpos: np.ndarray, qvel: np.ndarray, body: int, pose: np.ndarray, velocity: np.ndarray) -> None:
        """Write pose [3] and velocity [3] in the plane of a free body into qpos [nq] and qvel [nv]."""
        joint = int(self.model.body_jntadr[body])
        at, dof = int(self.model.jnt_qposadr[joint]), int(self.model.jnt_dofadr[joint])
        data = self._at(self.model.qpos0)
        centre, frame = data.xipos[body].copy(), data.xpos[body].copy()
        turn, quaternion = np.zeros(9), np.zeros(4)
        mujoco.mju_axisAngle2Quat(quaternion, self.axes[2], float(pose[2]))
        mujoco.mju_quat2Mat(turn, quaternion)
        offset = turn.reshape(3, 3) @ (frame - centre)
        # What lies across the plane stays as the MJCF has it.
        wanted = centre + self.axes[:2].T @ (pose[:2] - self.axes[:2] @ centre)
        qpos[at : at + 3] = wanted + offset
        mujoco.mju_mulQuat(qpos[at + 3 : at + 7], quaternion, self.model.qpos0[at + 3 : at + 7])
        angular = self.axes[2] * velocity[2]
        qvel[dof : dof + 3] = self.axes[:2].T @ velocity[:2] + np.cross(angular, offset)
        rotation = np.zeros(9)
        mujoco.mju_quat2Mat(rotation, qpos[at + 3 : at + 7])
        qvel[dof + 3 : dof + 6] = rotation.reshape(3, 3).T @ angular  # a free joint's is of the body's own frame

    # From recorded states to those in which the two just touch.

    def gap(self, state: np.ndarray) -> float:
        """Distance of the two in a state [n], m; negative where they overlap."""
        data = self._at(state[: self.model.nq])
        pairs = ((one, other) for one in self.strikers for other in self._touching)
        return min(mujoco.mj_geomDistance(self.model, data, *pair, 1.0, None) for pair in pairs)

    def touching(self, states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Move states [N, n] along their velocities to where the two just touch; and how far that was [N], m.

        Recorded poses err by a millimetre, which would have the two overlap, or touch too late. The distance is NaN
        where the two are not about to touch. Those that graze, less than 3 mm apart, are put together as they are.
        """
        moved, far = states.copy(), np.full(len(states), np.nan)
        for row, state in enumerate(states):
            start = self.gap(state)
            if abs(start) > _FAR_M:
                continue
            found = self._met(state)
            if found is None and abs(start) < _ERR_M:
                found = self._shifted(state)
            if found is not None:
                moved[row], far[row] = found, abs(start)
        return moved, far

    def _met(self, state: np.ndarray) -> np.ndarray | None:
        """The state at which the two touch as they move; None where they do not come nearer."""
        time_s = 0.0
        for _ in range(_TURNS):
            gap = self.gap(self._coasted(state, time_s))
            if abs(gap - _TOUCH_M) < _TOUCH_M / 2:
                return self._coasted(state, time_s)
            nearer = gap - self.gap(self._coasted(state, time_s + _PROBE_S))
            if nearer <= _SLOWEST_M_S * _PROBE_S:
                return None
            time_s += (gap - _TOUCH_M) / nearer * _PROBE_S
        return None

    def _shifted(self, state: np.ndarray) -> np.ndarray | None:
        """The state with the struck body moved by the least that has the two touch: they graze, or recordings err."""
        after, ends = state.copy(), np.zeros(6)
        at = int(self.model.jnt_qposadr[self.free])
        for _ in range(_TURNS):
            gap = self.gap(after)
            if abs(gap - _TOUCH_M) < _TOUCH_M / 2:
                return after
            pairs = [(one, other) for one in self.strikers for other in self._touching]
            distances = [mujoco.mj_geomDistance(self.model, self._data, *pair, 1.0, None) for pair in pairs]
            mujoco.mj_geomDistance(self.model, self._data, *pairs[int(np.argmin(distances))], 1.0, ends)
            outward = self.axes[:2].T @ (self.axes[:2] @ (ends[3:] - ends[:3])) * np.sign(gap)
            if (length := float(np.linalg.norm(outward))) < 1e-9:
                return None
            after[at : at + 3] += (_TOUCH_M - gap) * outward / length
        return None

    def _coasted(self, state: np.ndarray, time_s: float) -> np.ndarray:
        after, nq = state.copy(), self.model.nq
        mujoco.mj_integratePos(self.model, after[:nq], state[nq : nq + self.model.nv], time_s)
        return after

    # Simulation.

    def simulate(self, values: np.ndarray, states: np.ndarray) -> SceneImpacts:
        """Simulate impacts from states [N, n] in which the two just touch, with parameters [P]."""
        model = self._fine.model(values)
        begun = states.copy()
        self._settle(model, begun)
        felt = _Felt(len(states), begun.shape[1])
        full = mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS)
        current = np.zeros((len(states), full))
        current[:, 1 : 1 + states.shape[1]] = begun
        going, step_s = np.arange(len(states)), model.opt.timestep
        quiet = max(1, round(self.declared.apart_s / step_s))
        for first in range(0, round(_LONGEST_S / step_s), _CHUNK):
            controls = np.zeros((len(going), _CHUNK, model.nu))
            path, sensed = self._pool.rollout(model, [self._data], current[going], controls, nstep=_CHUNK)
            # Readings are of the state before a step: that of the first one is where the chunk began.
            before = np.concatenate([current[going, None], path[:, :-1]], axis=1)[:, :, 1 : 1 + states.shape[1]]
            for step in range(_CHUNK):
                felt.note(going, before[:, step], self._contacts(sensed[:, step]), first + step)
            current[going] = path[:, -1]
            going = going[felt.quiet[going] < quiet]
            if len(going) == 0:
                break
        felt.give_up(going, current[going, 1 : 1 + states.shape[1]], round(_LONGEST_S / step_s))
        return self._described(begun, felt, step_s)

    def _settle(self, model: mujoco.MjModel, states: np.ndarray) -> None:
        """Lower the struck body to where it rests on its table, in place; else it would first drop a little."""
        gravity = model.opt.gravity / max(np.linalg.norm(model.opt.gravity), 1e-9)
        if abs(gravity @ self.axes[2]) < 0.99:
            return
        data = mujoco.MjData(model)
        mujoco.mj_step(model, data, nstep=round(_SETTLING_S / model.opt.timestep))
        at = int(model.jnt_qposadr[self.free])
        change = (data.qpos[at : at + 3] - model.qpos0[at : at + 3]) @ self.axes[2]
        if abs(change) < _FALLS_M:  # else nothing carries it: it moves freely
            states[:, at : at + 3] += change * self.axes[2]

    def _contacts(self, sensed: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Forces [N, K] along the normals, these [N, K, 2] and places about the centre of mass [N, K, 2]."""
        slots = sensed[:, self._columns[0]].reshape(len(sensed), -1, _WIDTH)
        centre = sensed[:, self._columns[1]]
        force = np.where(slots[..., 0] > 0, slots[..., 1], 0.0)
        return force, slots[..., 7:10] @ self.axes[:2].T, (slots[..., 4:7] - centre[:, None]) @ self.axes[:2].T

    def _described(self, begun: np.ndarray, felt: _Felt, step_s: float) -> SceneImpacts:
        """The impacts as strikes on the struck body, in its frame."""
        yaw = self.poses(begun)[:, 2]
        total = np.maximum(felt.impulse, 1e-12)
        length = np.maximum(np.linalg.norm(felt.normal, axis=1), 1e-12)
        normal = felt.normal / length[:, None]
        normal[felt.impulse <= 0] = [1.0, 0.0]
        point = felt.moment / total[:, None]
        middle, spread = self._near(begun)
        shift = normal[:, 0] * (middle - point)[:, 1] - normal[:, 1] * (middle - point)[:, 0]
        relative, mobility = self._relative(begun, point, normal)
        along = (relative * normal).sum(axis=1)
        across = normal[:, 0] * relative[:, 1] - normal[:, 1] * relative[:, 0]
        strikes = Strikes(
            np.maximum(np.hypot(along, across), 1e-6),
            np.arctan2(across, along),
            rotated(point, -yaw),
            rotated(normal, -yaw),
        )
        change = self.velocities(felt.ended) - self.velocities(begun)
        gained = np.column_stack([rotated(change[:, :2], -yaw), change[:, 2]])
        return SceneImpacts(
            strikes, gained, Patch(shift, spread), mobility, felt.ended, felt.parted * step_s, felt.impulse > 0
        )

    def _near(self, states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Middle [N, 2] about the centre of mass, and scatter [N], of the places at which the two nearly touch."""
        middle, spread = np.zeros((len(states), 2)), np.zeros(len(states))
        data = self._wide_data
        for row, state in enumerate(states):
            data.qpos[:] = state[: self.model.nq]
            mujoco.mj_fwdPosition(self._wide, data)
            contact = data.contact
            ours = np.isin(contact.geom, self.strikers).any(axis=1) & np.isin(contact.geom, self._touching).any(axis=1)
            if not ours.any():
                continue
            # Nearer places count more: what is a few tenths of a millimetre away is pressed, too.
            weight = np.exp(-(contact.dist[ours] - contact.dist[ours].min()) / _SINKS_M)
            weight /= weight.sum()
            places = (contact.pos[ours] - data.xipos[self.struck]) @ self.axes[:2].T
            middle[row] = weight @ places
            spread[row] = np.sqrt(weight @ ((places - middle[row]) ** 2).sum(axis=1))
        return middle, spread

    def _relative(self, states: np.ndarray, points: np.ndarray, normals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Velocity [N, 2] of the striker's surface from the struck one's, at points [N, 2]; and its mobility [N, 3]."""
        found, mobility = np.zeros((len(states), 2)), np.zeros((len(states), 3))
        model, nq = self.model, self.model.nq
        for row, (state, point, normal) in enumerate(zip(states, points, normals, strict=True)):
            data = self._at(state[:nq])
            place = data.xipos[self.struck] + self.axes[:2].T @ point
            striker = self._jacobians(place, self.striker)[0]
            motion = striker - self._jacobians(place, self.struck)[0]
            found[row] = self.axes[:2] @ (motion @ state[nq : nq + model.nv])
            # The effective mass of an arm: J M^-1 J^T, in the contact's own directions.
            across = np.array([-normal[1], normal[0]])
            directions = np.stack([normal, across]) @ self.axes[:2] @ striker
            solved = np.zeros_like(directions)
            mujoco.mj_makeM(model, data)
            mujoco.mj_factorM(model, data)
            mujoco.mj_solveM(model, data, solved, directions)
            gives = float(model.body_mass[self.struck]) * directions @ solved.T
            mobility[row] = gives[0, 0], gives[0, 1], gives[1, 1]
        return found, mobility

    def _jacobians(self, point: np.ndarray, body: int) -> tuple[np.ndarray, np.ndarray]:
        """Of a point that moves with a body, and of the body's turning: [3, nv] each."""
        linear, angular = np.zeros((3, self.model.nv)), np.zeros((3, self.model.nv))
        mujoco.mj_jac(self.model, self._data, linear, angular, point, body)
        return linear, angular

    def _at(self, qpos: np.ndarray) -> mujoco.MjData:
        self._data.qpos[:] = qpos
        mujoco.mj_kinematics(self.model, self._data)
        mujoco.mj_comPos(self.model, self._data)
        return self._data

    def corrected(self, state: np.ndarray, change: np.ndarray, point: np.ndarray) -> np.ndarray:
        """The state [n] after the struck body gained velocities [3] more, in the plane, by a push at a point [2] of it.

        The striker pays for it, as its own inertia and joints let it.
        """
        model, after, data = self.model, state.copy(), self._at(state[: self.model.nq])
        qvel, paid = after[model.nq : model.nq + model.nv], np.zeros((1, model.nv))
        push, turn = self.axes[:2].T @ change[:2], self.axes[2] * change[2]
        mujoco.mj_makeM(model, data)
        mujoco.mj_factorM(model, data)
        impulse = -self.shape.mass_kg * push
        place = data.xipos[self.struck] + self.axes[:2].T @ point
        mujoco.mj_solveM(model, data, paid, (self._jacobians(place, self.striker)[0].T @ impulse)[None])
        dof = int(model.jnt_dofadr[self.free])
        qvel += paid[0]
        # A free joint's linear velocity is of the body's frame, not of its centre of mass; its angular one is local.
        qvel[dof : dof + 3] += push - np.cross(turn, data.xipos[self.struck] - data.xpos[self.struck])
        qvel[dof + 3 : dof + 6] += data.xmat[self.struck].reshape(3, 3).T @ turn
        return after


class _Felt:
    """What has acted so far in N simulated impacts, and how each ended."""

    def __init__(self, count: int, size: int) -> None:
        self.impulse = np.zeros(count)
        self.normal, self.moment = np.zeros((count, 2)), np.zeros((count, 2))
        self.quiet, self.parted = np.zeros(count, int), np.zeros(count, int)
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


def declared_scene(scenario: Scenario) -> SceneCollision:
    """The collision that the scenario declares, with the base 'scene'."""
    if not isinstance(scenario.collision, SceneCollision):
        raise ScenarioError(
            got="no `collision`" if scenario.collision is None else "a collision with base 'prism'",
            expected="collision: {base: scene, striker: ..., struck: ...}",
            where=f"scenario {scenario.name}",
            next_step="Add `base: scene`, or adapt a surrogate: rsr clash adapt --surrogate DIR.",
        )
    return scenario.collision


def _instrumented(scenario: Scenario, declared: SceneCollision) -> tuple[mujoco.MjSpec, tuple[np.ndarray, np.ndarray]]:
    """The scene with sensors of its contacts, and their columns: contacts, and the struck body's centre of mass."""
    spec = scenario.spec()
    struck, body = spec.geom(declared.struck).parent, spec.geom(declared.striker[0]).parent
    struck.name = struck.name or "clash struck"  # sensors speak of bodies by name
    name = struck.name
    while body.name != "world" and not any(each.type == mujoco.mjtJoint.mjJNT_FREE for each in body.joints):
        body.gravcomp = 1.0
        body = body.parent
    fields = sum(1 << int(each) for each in _DATA)
    for geom in declared.striker:
        spec.add_sensor(
            name=f"clash {geom}",
            type=mujoco.mjtSensor.mjSENS_CONTACT,
            objtype=mujoco.mjtObj.mjOBJ_GEOM,
            objname=geom,
            reftype=mujoco.mjtObj.mjOBJ_BODY,
            refname=name,
            intprm=[fields, 2, _SLOTS],  # 2: the contacts with the largest forces
        )
    spec.add_sensor(
        name="clash centre", type=mujoco.mjtSensor.mjSENS_FRAMEPOS, objtype=mujoco.mjtObj.mjOBJ_BODY, objname=name
    )
    model = spec.compile()
    return spec, (_columns(model, [f"clash {geom}" for geom in declared.striker]), _columns(model, ["clash centre"]))


def _columns(model: mujoco.MjModel, names: list[str]) -> np.ndarray:
    sensors = [model.sensor(name) for name in names]
    return np.concatenate([np.arange(each.adr[0], each.adr[0] + each.dim[0]) for each in sensors])
