"""Impacts of other kinds than a round nose on a lying block: flat on flat, at corners, on walls, between free bodies.

Two polygons in the plane, pressed together where they overlap: at many places of both outlines a Hertz-like spring with
losses that grow with depth and speed (Hunt and Crossley), rubbed by Stribeck friction. Pressure spreads over whole
sides, loss falls with speed, friction falls with slip, and forces differ from impact to impact. MuJoCo, in which the
product simulates such scenes, has two corner contacts, a linear spring and Coulomb's law in their place.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rsr.common import generator, rotated

KINDS = ("flat", "corner", "wall", "free")
"""A flat pad on a rail against a side, or against a corner, of a block at rest; a block that turns against a wall; two
free blocks, both moving."""
_STEP_S, _LONGEST_S, _APART_S = 1e-5, 0.04, 0.004
_SPACING_M = 0.003
_HALF = {"struck": (0.035, 0.025), "pad": (0.01, 0.02), "wall": (0.02, 0.4), "other": (0.03, 0.03)}
_MASS = {"struck": 0.15, "pad": 3.0, "other": 0.1}
_SPEED_STD_M_S, _SPIN_STD_RAD_S = 0.006, 0.12
_PLACE_STD_M, _TURN_STD_RAD = 0.0003, np.radians(0.25)


@dataclass(frozen=True)
class Material:
    """Hidden numbers of a contact: stiffness [N/m^1.25 per m of outline], loss [s/m], friction at rest and fast."""

    stiffness: float
    loss_s_m: float
    sticking: float
    slipping: float
    creep_m_s: float
    scatter: float


class ContactStandIn:
    """One kind, one material, one pair of bodies that are not quite as drawn. Equal seeds, equal recordings."""

    def __init__(self, kind: str, seed: int) -> None:
        self.kind, self._seed = kind, seed
        rng = generator(seed, "contact worlds", kind)
        slipping = rng.uniform(0.12, 0.4)
        self._material = Material(
            stiffness=float(np.exp(rng.uniform(np.log(1.5e9), np.log(8e9)))),  # they sink in by some tenths of a mm
            loss_s_m=rng.uniform(0.5, 2.5),  # restitution of 0.4 to 0.85 at half a metre a second
            sticking=slipping * rng.uniform(1.2, 1.8),
            slipping=slipping,
            creep_m_s=rng.uniform(0.03, 0.1),
            scatter=rng.uniform(0.02, 0.05),
        )
        self.names = ("struck", {"wall": "wall", "free": "other"}.get(kind, "pad"))
        self._outlines = [_outline(_HALF[name]) for name in self.names]
        drawn = [_MASS.get(name, np.inf) for name in self.names]
        self._mass = np.array(drawn) * rng.uniform(0.97, 1.03, 2)
        square = np.array([(np.array(_HALF[name]) ** 2).sum() / 3 for name in self.names])
        self._inertia = self._mass * square * rng.uniform(0.92, 1.08, 2)
        if kind in ("flat", "corner"):
            self._inertia[1] = np.inf
        self._pressing = (0,) if kind == "wall" else (0, 1)  # no corner of a wall is ever met
        self._centre = rng.normal(0, 0.0007, 2)
        self._free = np.array([[1, 1, 1], {"wall": [0, 0, 0], "free": [1, 1, 1]}.get(kind, [1, 0, 0])], float)

    def record(self, count: int, visit: int = 0) -> dict[str, np.ndarray]:
        """Let bodies collide at random, and measure: columns of a table, by name."""
        rng = generator(self._seed, "contact worlds", "record", self.kind, visit)
        pose, velocity = self._starts(count, rng)
        before = pose.copy(), velocity.copy()
        after = self._collide(
            pose.copy(), velocity.copy(), np.exp(self._material.scatter * rng.normal(size=(2, count)))
        )
        return self._measured(*before, after, rng)

    def _starts(self, count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Poses and velocities [2, N, 3] of both bodies, a little apart."""
        pose, velocity = np.zeros((2, count, 3)), np.zeros((2, count, 3))
        speed, place = rng.uniform(0.2, 0.8, count), rng.uniform(-0.7, 0.7, count)
        side = rng.integers(4, size=count) * np.pi / 2
        if self.kind == "flat":  # a pad that is up to four degrees off the side
            pose[0, :, 2] = side + np.radians(rng.uniform(-4, 4, count))
            pose[0, :, 1] = place * 0.02
        elif self.kind == "corner":
            pose[0, :, 2] = side + np.radians(rng.uniform(15, 75, count))
            pose[0, :, 1] = place * 0.01
        elif self.kind == "wall":
            pose[0, :, 2] = rng.uniform(-np.pi, np.pi, count)
            heading = np.radians(rng.uniform(-40, 40, count))
            velocity[0] = np.column_stack(
                [-speed * np.cos(heading), speed * np.sin(heading), rng.uniform(-6, 6, count)]
            )
        else:
            pose[0, :, 2], pose[1, :, 2] = rng.uniform(-np.pi, np.pi, (2, count))
            pose[0, :, 1] = place * 0.02
            velocity[0] = np.column_stack([-0.4 * speed, rng.uniform(-0.1, 0.1, count), rng.uniform(-4, 4, count)])
            velocity[1] = np.column_stack([0.6 * speed, rng.uniform(-0.1, 0.1, count), rng.uniform(-4, 4, count)])
        if self.kind in ("flat", "corner"):
            velocity[1, :, 0] = speed
        # From afar the two come nearer until they are a tenth of a millimetre apart.
        pose[0, :, 0] = 0.3
        for _ in range(60):
            gap = self._depths(pose)
            closing = np.maximum(velocity[1, :, 0] - velocity[0, :, 0], 0.05)
            pose[0, :, 0] -= np.clip(-gap - 1e-4, 0, None) * np.where(closing > 0, 0.9, 0)
        return pose, velocity

    def _depths(self, pose: np.ndarray) -> np.ndarray:
        """How far the two overlap at most, [N]; negative: apart."""
        return np.max([self._pressed(pose, body)[0].max(axis=1) for body in self._pressing], axis=0)

    def _pressed(self, pose: np.ndarray, body: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of the places along one outline: depth [N, K] in the other body, its outward normal, and place [N, K, 2]."""
        place = rotated(self._outlines[body][None], pose[body, :, 2:]) + pose[body, :, None, :2]
        other = 1 - body
        local = rotated(place - pose[other, :, None, :2], -pose[other, :, 2:])
        inside = np.array(_HALF[self.names[other]]) - np.abs(local)  # to the four sides
        side = inside.argmin(axis=-1)
        normal = np.where(side[..., None] == np.arange(2), np.sign(local), 0.0)
        return inside.min(axis=-1), rotated(normal, pose[other, :, 2:]), place

    def _collide(self, pose: np.ndarray, velocity: np.ndarray, factors: np.ndarray) -> np.ndarray:
        """Velocities [2, N, 3] when the two have parted."""
        material, count = self._material, pose.shape[1]
        touched, apart_s, ended = np.zeros(count, bool), np.zeros(count), velocity.copy()
        going = np.arange(count)
        for _ in range(round(_LONGEST_S / _STEP_S)):
            now, moving = pose[:, going], velocity[:, going]
            force, torque = np.zeros((2, len(going), 2)), np.zeros((2, len(going)))
            for body in self._pressing:
                depth, normal, place = self._pressed(now, body)
                depth = np.maximum(depth, 0)
                slip = self._slip(now, moving, place, body)
                sinking = -(slip * normal).sum(axis=-1)
                # Hunt and Crossley: losses grow with depth, so that force neither jumps nor pulls.
                push = material.stiffness * _SPACING_M / 2 * depth**1.25
                push *= np.maximum(1 + material.loss_s_m * factors[0, going, None] * sinking, 0)
                tangent = np.stack([-normal[..., 1], normal[..., 0]], axis=-1)
                rubbing = (slip * tangent).sum(axis=-1)
                fall = np.exp(-np.abs(rubbing) / 0.15)
                mu = factors[1, going, None] * (material.slipping + (material.sticking - material.slipping) * fall)
                each = push[..., None] * (normal - (mu * np.tanh(rubbing / material.creep_m_s))[..., None] * tangent)
                for owner, sign in ((body, 1.0), (1 - body, -1.0)):
                    arm = place - self._centre_of(now, owner)[:, None]
                    force[owner] += sign * each.sum(axis=1)
                    torque[owner] += sign * (arm[..., 0] * each[..., 1] - arm[..., 1] * each[..., 0]).sum(axis=1)
            change = np.concatenate(
                [force / self._mass[:, None, None], (torque / self._inertia[:, None])[..., None]], axis=-1
            )
            velocity[:, going] += _STEP_S * change * self._free[:, None]
            pose[:, going] += _STEP_S * velocity[:, going]
            touching = np.abs(force[0]).sum(axis=1) > 0
            touched[going] |= touching
            ended[:, going[touching]] = velocity[:, going[touching]]
            apart_s[going] = np.where(touching, 0, apart_s[going] + _STEP_S)
            going = going[~(touched[going] & (apart_s[going] > _APART_S))]
            if len(going) == 0:
                break
        return ended

    def _centre_of(self, pose: np.ndarray, body: int) -> np.ndarray:
        """Places [N, 2] of a body's true centre of mass."""
        off = self._centre if body == 0 else np.zeros(2)
        return pose[body, :, :2] + rotated(np.broadcast_to(off, (pose.shape[1], 2)), pose[body, :, 2])

    def _slip(self, pose: np.ndarray, velocity: np.ndarray, place: np.ndarray, body: int) -> np.ndarray:
        """Velocity [N, K, 2] of a body's surface from the other's, at places [N, K, 2]."""
        both = []
        for owner in (body, 1 - body):
            arm = place - self._centre_of(pose, owner)[:, None]
            spin = velocity[owner, :, None, 2]
            both.append(velocity[owner, :, None, :2] + np.stack([-spin * arm[..., 1], spin * arm[..., 0]], axis=-1))
        return both[0] - both[1]

    def _measured(
        self, pose: np.ndarray, velocity: np.ndarray, after: np.ndarray, rng: np.random.Generator
    ) -> dict[str, np.ndarray]:
        """What motion capture makes of it: poses, and velocities fitted to frames before and after."""
        speed = np.array([_SPEED_STD_M_S, _SPEED_STD_M_S, _SPIN_STD_RAD_S])
        place = np.array([_PLACE_STD_M, _PLACE_STD_M, _TURN_STD_RAD])

        def seen(values: np.ndarray, std: np.ndarray) -> np.ndarray:
            return values + std * rng.normal(size=values.shape)

        moving = self.kind in ("wall", "free")
        columns: dict[str, np.ndarray] = dict(zip(("x", "y", "turn"), seen(pose[0], place).T, strict=True))
        first = seen(velocity[0], speed) if moving else velocity[0]
        columns |= dict(zip(("vx", "vy", "spin"), first.T, strict=True))
        if self.kind == "free":
            columns |= dict(zip(("striker_x", "striker_y", "striker_turn"), seen(pose[1], place).T, strict=True))
            names = ("striker_vx", "striker_vy", "striker_spin")
            columns |= dict(zip(names, seen(velocity[1], speed).T, strict=True))
        elif self.kind != "wall":
            columns |= {"rail": seen(pose[1], place)[:, 0], "rail_speed": seen(velocity[1], speed)[:, 0]}
        return columns | dict(zip(("post_vx", "post_vy", "post_spin"), seen(after[0], speed).T, strict=True))


def _outline(half: tuple[float, float]) -> np.ndarray:
    """Places [K, 2] along a rectangle's sides, corners among them."""
    corners = np.array([(1, -1), (1, 1), (-1, 1), (-1, -1)]) * half
    sides = []
    for start, end in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        count = max(2, round(float(np.linalg.norm(end - start)) / _SPACING_M))
        sides.append(start + (end - start) * (np.arange(count) / count)[:, None])
    return np.concatenate(sides)


_SCENE = """<mujoco model="{kind}">
  <option timestep="0.001" gravity="0 0 0" cone="elliptic" integrator="implicitfast"/>
  <worldbody>{striker}
    <body name="block">
      <freejoint name="block"/><geom name="block" type="box" size="0.035 0.025 0.02" mass="0.15"/>
    </body>
  </worldbody>
  <contact><pair name="hit" geom1="striker" geom2="block" condim="3" solref="0.004 0.5"/></contact>
</mujoco>
"""
_STRIKERS = {
    "wall": '<geom name="striker" type="box" size="0.02 0.4 0.05" contype="0" conaffinity="0"/>',
    "free": '<body><freejoint/><geom name="striker" type="box" size="0.03 0.03 0.02" mass="0.1"/></body>',
    "pad": '<body><joint name="rail" type="slide" axis="1 0 0"/>'
    '<geom name="striker" type="box" size="0.01 0.02 0.02" mass="3"/></body>',
}
_YAML = """name: {kind}
title: Two bodies that collide in the plane
mjcf: scene.xml
control_dt_s: 0.004
episode_steps: 100
gap_channel: block
collision: {{base: scene, striker: striker, struck: block}}
channels:
  block: {{columns: [x, y, z], unit: m, frame: world, noise: 0.0003, reads: {{free_joint_position: block}}}}
parameters:
  friction:
    {{nominal: 0.3, lower: 0.02, upper: 1.5, unit: "1", prior_std: 1.0, sets: [{{pair: hit, field: friction}}]}}
  damping_ratio:
    {{nominal: 0.5, lower: 0.03, upper: 2.0, unit: "1", prior_std: 1.0, sets: [{{pair: hit, field: damping_ratio}}]}}
  contact_time:
    {{nominal: 0.004, lower: 0.001, upper: 0.02, unit: s, prior_std: 0.7, sets: [{{pair: hit, field: contact_time}}]}}
"""


def write_scene(kind: str, folder: Path) -> Path:
    """Write scenario and MJCF with the geometry of a kind: what a user of the product would write."""
    folder.mkdir(parents=True, exist_ok=True)
    striker = _STRIKERS.get(kind, _STRIKERS["pad"])
    (folder / "scene.xml").write_text(_SCENE.format(kind=kind, striker=striker))
    (folder / "scenario.yaml").write_text(_YAML.format(kind=kind))
    return folder
