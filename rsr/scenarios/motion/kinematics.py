"""Where sites of a model are: forward kinematics of many postures at once, in numpy, and where commands would lead."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np

from rsr.common import product, turned
from rsr.scenarios.parameters.bindings import element_id

_FREE, _BALL, _SLIDE = (mujoco.mjtJoint.mjJNT_FREE, mujoco.mjtJoint.mjJNT_BALL, mujoco.mjtJoint.mjJNT_SLIDE)


def site_positions(model: mujoco.MjModel, qpos: np.ndarray, sites: Iterable[int]) -> np.ndarray:
    """Positions in the world [B, sites, 3] at qpos [B, nq]; equal to `mj_kinematics`, for a whole batch."""
    sites = list(sites)
    poses: dict[int, tuple[np.ndarray, np.ndarray]] = {
        0: (np.zeros((len(qpos), 3)), np.tile([1.0, 0.0, 0.0, 0.0], (len(qpos), 1)))
    }
    for body in carriers(model, sites):
        poses[body] = _pose(model, body, *poses[int(model.body_parentid[body])], qpos)
    places = []
    for site in sites:
        position, orientation = poses[int(model.site_bodyid[site])]
        places.append(position + turned(orientation, model.site_pos[site]))
    return np.stack(places, axis=1)


def forward_kinematics(
    mjcf: str | Path | mujoco.MjModel, site: str, joints: Sequence[str]
) -> Callable[[np.ndarray], np.ndarray]:
    """Make the function from positions of hinges and slides [..., n] to a site's position in the world [..., 3].

    Other joints stay at the model's reference.

    Examples:
        >>> tool = forward_kinematics("arm.xml", "tool", ["shoulder", "elbow"])  # doctest: +SKIP
        >>> tool(np.zeros((64, 2))).shape  # doctest: +SKIP
        (64, 3)
    """
    model = mujoco.MjModel.from_xml_path(str(mjcf)) if isinstance(mjcf, str | Path) else mjcf
    at = element_id(model, "site", site, "forward kinematics")
    places = [model.jnt_qposadr[element_id(model, "joint", name, "forward kinematics")] for name in joints]

    def where(positions: np.ndarray) -> np.ndarray:
        flat = positions.reshape(-1, len(places))
        qpos = np.tile(model.qpos0, (len(flat), 1))
        qpos[:, places] = flat
        return site_positions(model, qpos, [at])[:, 0].reshape(*positions.shape[:-1], 3)

    return where


def carriers(model: mujoco.MjModel, sites: Iterable[int]) -> list[int]:
    """Bodies that carry the sites, parents first."""
    found = set()
    for site in sites:
        body = int(model.site_bodyid[site])
        while body:
            found.add(body)
            body = int(model.body_parentid[body])
    return sorted(found)  # MuJoCo numbers parents before their children


def _pose(
    model: mujoco.MjModel, body: int, position: np.ndarray, orientation: np.ndarray, qpos: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Position [B, 3] and orientation [B, 4] of a body whose parent has these."""
    # Offsets and turns of nothing are left out: limits ask for many postures in every control step.
    position = position + turned(orientation, model.body_pos[body])
    if model.body_quat[body, 0] != 1.0:
        orientation = product(orientation, np.broadcast_to(model.body_quat[body], orientation.shape))
    first = int(model.body_jntadr[body])
    for joint in range(first, first + int(model.body_jntnum[body])):
        start = int(model.jnt_qposadr[joint])
        if model.jnt_type[joint] == _FREE:
            return qpos[:, start : start + 3], _unit(qpos[:, start + 3 : start + 7])
        axis = model.jnt_axis[joint]
        if model.jnt_type[joint] == _SLIDE:
            moved = qpos[:, start : start + 1] - model.qpos0[start]
            position = position + turned(orientation, axis * moved)
            continue
        # A hinge or ball turns the body about the joint's anchor, which stays where it is.
        arm = model.jnt_pos[joint]
        anchor = position + turned(orientation, arm) if arm.any() else position
        if model.jnt_type[joint] == _BALL:
            turn = _unit(qpos[:, start : start + 4])
        else:
            half = 0.5 * (qpos[:, start : start + 1] - model.qpos0[start])
            turn = np.concatenate([np.cos(half), axis * np.sin(half)], axis=-1)
        orientation = product(orientation, turn)
        position = anchor - turned(orientation, arm) if arm.any() else anchor
    return position, orientation


def _unit(quaternion: np.ndarray) -> np.ndarray:
    return quaternion / np.maximum(np.linalg.norm(quaternion, axis=-1, keepdims=True), 1e-12)


@dataclass(frozen=True, eq=False)
class Reach:
    """Where commands lead a robot: to the postures that positions ask for, or that speeds come to in one step.

    Args:
        measured: (channel, its indices into qpos) of all channels that show coordinates.
        joints: [nu], the joint that each command moves; -1 where it moves none.
        kinds: [nu], "position", "velocity" or "force".
        signs: [nu], -1 where a positive command drives the joint backwards.
    """

    model: mujoco.MjModel
    measured: tuple[tuple[str, tuple[int, ...]], ...]
    joints: np.ndarray
    kinds: np.ndarray
    signs: np.ndarray

    def posture(self, channels: Mapping[str, np.ndarray], count: int) -> np.ndarray:
        """Measured qpos [B, nq]; the model's reference where nothing is measured."""
        qpos = np.tile(self.model.qpos0, (count, 1))
        for name, places in self.measured:
            if name in channels:
                qpos[:, list(places)] = channels[name]
        return qpos

    def led_to(self, command: np.ndarray, channels: Mapping[str, np.ndarray], dt_s: float) -> np.ndarray:
        """Postures [B, nq] after commands [B, nu]; forces lead nowhere by themselves: where they act."""
        qpos = self.posture(channels, len(command))
        places = self.model.jnt_qposadr[np.maximum(self.joints, 0)]
        for kind, reached in (("position", command), ("velocity", qpos[:, places] + dt_s * self.signs * command)):
            chosen = (self.kinds == kind) & (self.joints >= 0)
            qpos[:, places[chosen]] = reached[:, chosen]
        return qpos

    def still(self, previous: np.ndarray) -> np.ndarray:
        """Commands [B, nu] under which nothing is led anywhere."""
        return np.where(self.kinds == "velocity", 0.0, previous)

    @property
    def all_positions(self) -> bool:
        return bool((self.kinds == "position").all())

    def outward(self, channels: Mapping[str, np.ndarray], count: int, dt_s: float) -> tuple[np.ndarray, np.ndarray]:
        """Bounds [B, nu] of commands that would drive a joint beyond its range; turning back is always free.

        A speed may lead to the end of the range within one step. A force may not push outward where the joint is
        beyond it already; how fast it gets there is up to the force.
        """
        places = self.model.jnt_qposadr[np.maximum(self.joints, 0)]
        shown = [place for name, indices in self.measured if name in channels for place in indices]
        limited = (self.joints >= 0) & (self.model.jnt_limited[np.maximum(self.joints, 0)] > 0)
        limited &= np.isin(places, shown) & (self.kinds != "position")
        lower, upper = self.model.jnt_range[np.maximum(self.joints, 0)].T
        here = self.posture(channels, count)[:, places]
        down, up = np.minimum(lower - here, 0.0), np.maximum(upper - here, 0.0)
        force = self.kinds == "force"
        down = np.where(limited, np.where(force, np.where(down < 0, -np.inf, 0.0), down / dt_s), -np.inf)
        up = np.where(limited, np.where(force, np.where(up > 0, np.inf, 0.0), up / dt_s), np.inf)
        return np.where(self.signs > 0, down, -up), np.where(self.signs > 0, up, -down)
