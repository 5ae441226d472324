"""Channels that show the simulator, its coordinates or its sensors: how precisely, and how a YAML file says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import mujoco

from rsr.common import ScenarioError
from rsr.scenarios.channels.mjcf_sensors import sensor_reading
from rsr.scenarios.parameters.bindings import element_id, free_joint_id
from rsr.scenarios.yaml_keys import check_fields
from rsr.sessions import Channel

Kind = Literal["linear", "angle", "quaternion"]
_VELOCITIES = {
    "joint_velocities": "joints",
    "free_joint_linear_velocity": "free_joint_position",
    "free_joint_angular_velocity": "free_joint_quaternion",
}
"""Reading of a velocity channel -> the coordinates that it is the velocity of."""


@dataclass(frozen=True)
class Observed:
    """A channel that a simulator predicts, and how precisely the lab measures it.

    Args:
        places: indices into a row of states (`Scenario.state_size`), one a column: coordinates lie in qpos, readings
            of sensors at the end.
        dofs: indices into qvel of the same joint coordinates; none where it reads sensors.
        kind: how differences are taken; "quaternion" ones are rotation vectors in rad.
        noise: standard deviation of the measurement, in the channel's unit (rad for quaternions).
        bias_std: how far the sensor's zero differs from episode to episode, standard deviation; 0 if it does not.
        noise_axis: the one axis of the world about which a measured orientation is wrong, where the body cannot tilt.
        sensor_columns: of MuJoCo's `sensordata`, one a column; none where it reads coordinates.
    """

    channel: Channel
    places: tuple[int, ...]
    dofs: tuple[int, ...]
    kind: Kind
    noise: float
    bias_std: float = 0.0
    sensor_columns: tuple[int, ...] = ()
    noise_axis: tuple[float, float, float] | None = None

    @property
    def qpos(self) -> tuple[int, ...]:
        """Indices into qpos, one a column; none where it reads sensors."""
        return () if self.sensor_columns else self.places

    @property
    def tangent_width(self) -> int:
        """Columns of differences of this channel's values: a quaternion's four differ by a rotation vector's three."""
        return 3 if self.kind == "quaternion" else self.channel.width


@dataclass(frozen=True)
class RecordedVelocity:
    """A channel of velocities as the lab computed them. No residual is taken of it.

    Args:
        dofs: indices into qvel, one a column. Angular velocities of a free joint are in the body's frame, as MuJoCo's.
        initial: simulations start with these velocities; otherwise they are estimated from positions (`smooth`), which
            is better wherever the lab's are delayed or from rough differences.
    """

    channel: Channel
    dofs: tuple[int, ...]
    initial: bool


def parse_channels(
    model: mujoco.MjModel, entries: Mapping[str, Any], where: str
) -> tuple[tuple[Observed, ...], tuple[RecordedVelocity, ...], tuple[Channel, ...]]:
    """Sort the channels into those that positions are compared with, velocities, and others."""
    observed, velocities, others = [], [], []
    readings = model.nq + model.nv + model.na  # where the next sensor's readings lie in a row of states
    for name, entry in entries.items():
        place = f"{where}, channel {name}"
        check_fields("channel", entry, place)
        channel = _channel(name, entry)
        if "reads" in entry:
            check_order(channel.columns, _names_read(entry["reads"], channel.columns), place)
        if "reads" not in entry:
            others.append(channel)
        elif next(iter(entry["reads"])) in _VELOCITIES:
            velocities.append(_velocity(model, channel, entry, place))
        else:
            observed.append(_observed(model, channel, entry, readings, place))
            readings += len(observed[-1].sensor_columns)
    return tuple(observed), tuple(velocities), tuple(others)


def _channel(name: str, entry: Mapping[str, Any]) -> Channel:
    optional = {key: entry[key] for key in ("clock", "stamp") if key in entry}
    return Channel(name, tuple(entry["columns"]), entry["unit"], entry["frame"], **optional)


def _observed(model: mujoco.MjModel, channel: Channel, entry: Mapping[str, Any], readings: int, where: str) -> Observed:
    kind, places, dofs, sensor_columns = _shown(model, entry["reads"], readings, where)
    _check_width(channel, len(places), where)
    if "noise" not in entry:
        raise ScenarioError(
            got="no noise",
            expected="the standard deviation of the measurement, in the channel's unit (rad for quaternions)",
            where=where,
            next_step="Add `noise` to the channel: what the sensor's data sheet says, or the scatter at rest.",
        )
    if "bias_std" in entry and kind == "quaternion":
        raise ScenarioError(
            got="bias_std of an orientation",
            expected="bias_std of positions or angles, whose zero is a number a column",
            where=where,
            next_step="Leave `bias_std` away, or give it to a channel that reads joints or positions.",
        )
    axis = tuple(entry["noise_axis"]) if "noise_axis" in entry else None
    return Observed(channel, places, dofs, kind, entry["noise"], entry.get("bias_std", 0.0), sensor_columns, axis)


def _shown(
    model: mujoco.MjModel, reads: Mapping[str, Any], readings: int, where: str
) -> tuple[Kind, tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Kind, places in a row of states, degrees of freedom and columns of `sensordata` of a channel."""
    if next(iter(reads)) != "sensor":
        return (*_coordinates(model, reads, where), ())
    reading = sensor_reading(model, reads["sensor"], where)
    if reading.joints:  # sensors of joint positions: coordinates, which windows can begin with
        return (*_of_joints(model, reading.joints), ())
    places = tuple(range(readings, readings + len(reading.columns)))
    return "quaternion" if reading.quaternion else "linear", places, (), reading.columns


def _velocity(model: mujoco.MjModel, channel: Channel, entry: Mapping[str, Any], where: str) -> RecordedVelocity:
    (key, value), *_ = entry["reads"].items()
    _, _, dofs = _coordinates(model, {_VELOCITIES[key]: value}, where)
    _check_width(channel, len(dofs), where)
    mode = entry.get("mode", "recorded")
    if mode not in ("recorded", "initial_states"):
        raise ScenarioError(
            got=f"mode '{mode}'",
            expected="recorded or initial_states",
            where=where,
            next_step="Correct the channel in the scenario's YAML file.",
        )
    return RecordedVelocity(channel, dofs, mode == "initial_states")


def _check_width(channel: Channel, coordinates: int, where: str) -> None:
    if coordinates != channel.width:
        raise columns_error(channel.columns, f"{coordinates}, one a coordinate it reads", where)


def _names_read(reads: Mapping[str, Any], columns: tuple[str, ...]) -> tuple[str, ...]:
    """What the coordinates of a channel are called, in the order in which it shows them."""
    (key, value), *_ = reads.items()
    if key in ("joints", "joint_velocities"):
        return tuple(value)
    if key == "free_joint_quaternion":
        prefix = "q" if all(column.startswith("q") for column in columns) else ""
        return tuple(f"{prefix}{axis}" for axis in "wxyz")
    return tuple("xyz") if key.startswith("free_joint") else ()


def check_order(columns: tuple[str, ...], names: Sequence[str], where: str) -> None:
    """Refuse a column that is called like another coordinate than the one it stands for.

    Data would drive the wrong one, or be compared with it, and nothing else would notice.
    """
    if any(column in names and column != name for column, name in zip(columns, names, strict=False)):
        raise ScenarioError(
            got=f"columns {', '.join(columns)}",
            expected=f"the order {', '.join(names)}",
            where=where,
            next_step="A column stands for the coordinate in its place: reorder them, or call them otherwise.",
        )


def columns_error(columns: tuple[str, ...], expected: str, where: str) -> ScenarioError:
    return ScenarioError(
        got=f"{len(columns)} columns ({', '.join(columns)})",
        expected=expected,
        where=where,
        next_step="Name one column a coordinate in the scenario's YAML file.",
    )


def _coordinates(
    model: mujoco.MjModel, reads: Mapping[str, Any], where: str
) -> tuple[Kind, tuple[int, ...], tuple[int, ...]]:
    (key, value), *_ = reads.items()
    if key == "joints":
        return _of_joints(model, [element_id(model, "joint", name, where) for name in value])
    if key in ("free_joint_position", "free_joint_quaternion"):
        joint = free_joint_id(model, value, where)
        qpos, dof = int(model.jnt_qposadr[joint]), int(model.jnt_dofadr[joint])
        if key == "free_joint_position":
            return "linear", tuple(range(qpos, qpos + 3)), tuple(range(dof, dof + 3))
        return "quaternion", tuple(range(qpos + 3, qpos + 7)), tuple(range(dof + 3, dof + 6))
    raise ScenarioError(
        got=f"reads '{key}'",
        expected=f"joints, free_joint_position, free_joint_quaternion, sensor, {', '.join(_VELOCITIES)}",
        where=where,
        next_step="Correct the channel in the scenario's YAML file.",
    )


def _of_joints(model: mujoco.MjModel, joints: Sequence[int]) -> tuple[Kind, tuple[int, ...], tuple[int, ...]]:
    hinge = all(model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_HINGE for joint in joints)
    qpos = tuple(int(model.jnt_qposadr[joint]) for joint in joints)
    return "angle" if hinge else "linear", qpos, tuple(int(model.jnt_dofadr[joint]) for joint in joints)
