"""The scene of a user's own in which impacts are simulated: its two bodies, seen in the plane in which they move."""

from __future__ import annotations

import copy
from dataclasses import replace
from functools import cached_property

import mujoco
import numpy as np
from mujoco import rollout as mujoco_rollout
from scipy.spatial import ConvexHull

from rsr.common import ScenarioError
from rsr.learned.clash.scenes.geometry import collides, geoms_of, points_of
from rsr.scenarios import Scenario, SceneCollision
from rsr.scenarios.built_in.strike import Shape, faces_of

_STEP_S = 0.00025
"""Impacts take milliseconds: at 2 ms, MuJoCo's default, most outcomes are others."""
_NEAR_M = 0.002
_SLOTS = 4
_AXES = {"xy": (0, 1), "xz": (0, 2), "yz": (1, 2)}
_DATA = (
    mujoco.mjtConDataField.mjCONDATA_FOUND,
    mujoco.mjtConDataField.mjCONDATA_FORCE,
    mujoco.mjtConDataField.mjCONDATA_POS,
    mujoco.mjtConDataField.mjCONDATA_NORMAL,
    mujoco.mjtConDataField.mjCONDATA_TANGENT,
)


class ContactScene:
    """The scene of a scenario whose collision has the base 'scene'. Keeps one `MjData`, so it serves one thread.

    The striker coasts while the two touch: its actuators are off and its weight is carried, but it is as heavy as its
    joints let it be. What else is in the scene, such as a table, acts as ever.

    Attributes:
        fine: the scenario at the time step of impacts, with sensors of the pair's contacts in `columns`.
        wide: the model with contacts from a little before the two touch.
        touching: geoms of the struck body that collide.
    """

    def __init__(self, scenario: Scenario) -> None:
        self.scenario, self.declared = scenario, declared_scene(scenario)
        spec, self.columns = _instrumented(scenario, self.declared)
        model = spec.compile()
        for option in ("cone", "integrator", "tolerance"):  # what `structured` may have chosen
            setattr(model.opt, option, getattr(scenario.base_model.opt, option))
        model.opt.timestep = min(_STEP_S, scenario.base_model.opt.timestep)
        model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_ACTUATION
        self.fine = replace(scenario, base_model=model, source=spec)
        self.model, self.data = model, mujoco.MjData(model)
        self.strikers = [model.geom(name).id for name in self.declared.striker]
        self.striker = int(model.geom_bodyid[self.strikers[0]])
        self.struck = int(model.geom_bodyid[model.geom(self.declared.struck).id])
        self.touching = [geom for geom in geoms_of(model, self.struck) if collides(model, geom)]
        self.free = int(model.body_jntadr[self.struck])
        held = int(model.body_jntadr[self.striker])
        self.strikes_freely = held >= 0 and model.jnt_type[held] == mujoco.mjtJoint.mjJNT_FREE
        first, second = np.eye(3)[list(_AXES[self.declared.plane])]
        self.axes = np.stack([first, second, np.cross(first, second)])
        self.wide = copy.copy(model)
        self.wide.geom_margin[:], self.wide.pair_margin[:] = _NEAR_M, _NEAR_M
        self.wide_data = mujoco.MjData(self.wide)
        self.pool = mujoco_rollout.Rollout(nthread=1)

    @cached_property
    def shape(self) -> Shape:
        """The struck body as seen across the plane, about its centre of mass, with its own inertia."""
        model, data = self.model, self.at(self.model.qpos0)
        points = np.concatenate([points_of(model, data, geom) for geom in self.touching])
        flat = (points - data.xipos[self.struck]) @ self.axes[:2].T
        outline = flat[ConvexHull(flat).vertices]
        mass_kg = float(model.body_mass[self.struck])
        turn = data.ximat[self.struck].reshape(3, 3).T @ self.axes[2]
        gyration_m = float(np.sqrt(turn**2 @ model.body_inertia[self.struck] / mass_kg))
        longest = int(np.argmax([face.length_m for face in faces_of(outline)]))
        return Shape(
            self.declared.struck, outline, (longest,), float(np.ptp(points @ self.axes[2])), mass_kg, gyration_m
        )

    @cached_property
    def turn_std_rad(self) -> float:
        """How far off recorded turns of the struck body are, by the noise that its channels declare."""
        noise = np.zeros(self.model.nv)
        for observed in self.scenario.observed:
            noise[list(observed.dofs)] = observed.noise
        first = int(self.model.jnt_dofadr[self.free])
        if (turning := noise[first + 3 : first + 6].max()) > 0:
            return float(turning)
        # Of places alone: a turn is seen by where both ends of the body are.
        reach = np.linalg.norm(self.shape.outline, axis=1).max()
        return float(noise[first : first + 3].max() / (np.sqrt(2) * reach))

    # Poses and velocities of the struck body in the plane.

    def poses(self, states: np.ndarray) -> np.ndarray:
        """Centre of mass and turn [N, 3] of the struck body in states [N, n], in the plane (m, m, rad)."""
        start = self.at(self.model.qpos0).xmat[self.struck].reshape(3, 3).copy()
        found = []
        for state in states:
            data = self.at(state[: self.model.nq])
            turn = self.axes @ data.xmat[self.struck].reshape(3, 3) @ start.T @ self.axes.T
            found.append([*(self.axes[:2] @ data.xipos[self.struck]), np.arctan2(turn[1, 0], turn[0, 0])])
        return np.array(found).reshape(-1, 3)

    def velocities(self, states: np.ndarray) -> np.ndarray:
        """Velocity [N, 3] of the struck body's centre of mass and its turning, in the plane (m/s, m/s, rad/s)."""
        found = []
        for state in states:
            data = self.at(state[: self.model.nq])
            linear, angular = self.jacobians(data.xipos[self.struck], self.struck)
            qvel = state[self.model.nq : self.model.nq + self.model.nv]
            found.append([*(self.axes[:2] @ (linear @ qvel)), self.axes[2] @ (angular @ qvel)])
        return np.array(found).reshape(-1, 3)

    def velocity_of(self, state: np.ndarray) -> np.ndarray:
        """Velocity [3] of the struck body's centre of mass in the world."""
        data = self.at(state[: self.model.nq])
        linear, _ = self.jacobians(data.xipos[self.struck], self.struck)
        return linear @ state[self.model.nq : self.model.nq + self.model.nv]

    def place(self, qpos: np.ndarray, qvel: np.ndarray, body: int, pose: np.ndarray, velocity: np.ndarray) -> None:
        """Write pose [3] and velocity [3] in the plane of a free body into qpos [nq] and qvel [nv]."""
        joint = int(self.model.body_jntadr[body])
        at, dof = int(self.model.jnt_qposadr[joint]), int(self.model.jnt_dofadr[joint])
        data = self.at(self.model.qpos0)
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

    def jacobians(self, point: np.ndarray, body: int) -> tuple[np.ndarray, np.ndarray]:
        """Of a point that moves with a body, and of the body's turning: [3, nv] each."""
        linear, angular = np.zeros((3, self.model.nv)), np.zeros((3, self.model.nv))
        mujoco.mj_jac(self.model, self.data, linear, angular, point, body)
        return linear, angular

    def at(self, qpos: np.ndarray) -> mujoco.MjData:
        self.data.qpos[:] = qpos
        mujoco.mj_kinematics(self.model, self.data)
        mujoco.mj_comPos(self.model, self.data)
        return self.data

    def corrected(self, state: np.ndarray, change: np.ndarray, point: np.ndarray) -> np.ndarray:
        """The state [n] after the struck body gained velocities [3] more, in the plane, by a push at a point [2] of it.

        The striker pays for it, as its own inertia and joints let it.
        """
        model, after, data = self.model, state.copy(), self.at(state[: self.model.nq])
        qvel, paid = after[model.nq : model.nq + model.nv], np.zeros((1, model.nv))
        push, turn = self.axes[:2].T @ change[:2], self.axes[2] * change[2]
        mujoco.mj_makeM(model, data)
        mujoco.mj_factorM(model, data)
        impulse = -self.shape.mass_kg * push
        place = data.xipos[self.struck] + self.axes[:2].T @ point
        mujoco.mj_solveM(model, data, paid, (self.jacobians(place, self.striker)[0].T @ impulse)[None])
        dof = int(model.jnt_dofadr[self.free])
        qvel += paid[0]
        # A free joint's linear velocity is of the body's frame, not of its centre of mass; its angular one is local.
        qvel[dof : dof + 3] += push - np.cross(turn, data.xipos[self.struck] - data.xpos[self.struck])
        qvel[dof + 3 : dof + 6] += data.xmat[self.struck].reshape(3, 3).T @ turn
        return after


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
