"""A scenario's channels as Python says them: each becomes one entry of a scenario's YAML file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import mujoco

from rsr.common import ScenarioError
from rsr.scenarios.channels.mjcf_sensors import described
from rsr.scenarios.parameters.bindings import element_id

Entry = dict[str, Any]
"""One mapping of the YAML file; `rsr.scenarios.yaml_keys` lists its keys."""

_AXES = ("x", "y", "z")
_SEVERAL = ("joints", "joint_velocities", "sensor")
"""Readings of which one channel may name several."""


@dataclass(frozen=True)
class Measured:
    """A channel that shows coordinates or sensors of the model; made by `joints`, `sensor` and the like."""

    reads: str
    names: tuple[str, ...]
    noise: float | None = None
    bias_std: float = 0.0
    initial_states: bool = False
    unit: str | None = None

    def entry(self, model: mujoco.MjModel, where: str) -> Entry:
        """The channel as the YAML file says it."""
        named: str | list[str] = list(self.names) if self.reads in _SEVERAL else self.names[0]
        entry: Entry = {**self._description(model, where), "reads": {self.reads: named}}
        if self.noise is not None:
            entry["noise"] = self.noise
        if self.bias_std:
            entry["bias_std"] = self.bias_std
        if self.initial_states:
            entry["mode"] = "initial_states"
        return entry

    def _description(self, model: mujoco.MjModel, where: str) -> Entry:
        match self.reads:
            case "joints" | "joint_velocities":
                unit = _joint_unit(model, self.names, where)
                speed = "/s" if self.reads == "joint_velocities" else ""
                return {"columns": list(self.names), "unit": f"{unit}{speed}", "frame": "joint"}
            case "sensor":
                return described(model, self.names, self.unit, where)
            case "free_joint_quaternion":
                return {"columns": ["qw", "qx", "qy", "qz"], "unit": "1", "frame": "world"}
            case "free_joint_position":
                return {"columns": list(_AXES), "unit": "m", "frame": "world"}
            case "free_joint_linear_velocity":
                return {"columns": [f"v{axis}" for axis in _AXES], "unit": "m/s", "frame": "world"}
            case _:
                return {"columns": [f"w{axis}" for axis in _AXES], "unit": "rad/s", "frame": "body"}


def joints(*names: str, noise: float, bias_std: float = 0.0) -> Measured:
    """Positions of hinge (rad) or slide (m) joints, one column a joint.

    Args:
        names: joints of the MJCF, in the order of the array's columns.
        noise: standard deviation of the measurement, in rad or m.
        bias_std: where the encoders' zero is set anew for each run: how far it lies from 0, standard deviation.

    Examples:
        >>> joints("shoulder", "elbow", noise=0.002).names
        ('shoulder', 'elbow')
    """
    return Measured("joints", names, noise, bias_std)


def free_joint_position(name: str, noise: float) -> Measured:
    """Position x, y, z of a free body in the world, m.

    Args:
        name: of the free joint (`<freejoint name="..."/>`).
        noise: standard deviation of the measurement, in m.

    Examples:
        >>> free_joint_position("cube", noise=0.0005).reads
        'free_joint_position'
    """
    return Measured("free_joint_position", (name,), noise)


def free_joint_quaternion(name: str, noise: float) -> Measured:
    """Orientation of a free body in the world, as a unit quaternion w, x, y, z.

    Args:
        name: of the free joint.
        noise: standard deviation of the measurement, in rad.

    Examples:
        >>> free_joint_quaternion("cube", noise=0.01).reads
        'free_joint_quaternion'
    """
    return Measured("free_joint_quaternion", (name,), noise)


def joint_velocities(*names: str, initial_states: bool = False) -> Measured:
    """Velocities of joints, rad/s or m/s. They are checked and stored; residuals are taken of positions.

    Args:
        names: joints of the MJCF, in the order of the array's columns.
        initial_states: let simulations start with these velocities instead of those estimated from positions. Only
            where they are neither delayed nor rough differences.

    Examples:
        >>> joint_velocities("shoulder", initial_states=True).reads
        'joint_velocities'
    """
    return Measured("joint_velocities", names, initial_states=initial_states)


def sensor(*names: str, noise: float, unit: str | None = None, bias_std: float = 0.0) -> Measured:
    """Readings of sensors of the MJCF, such as an IMU, joint torques or the pose of a tool, one after the other.

    Args:
        names: sensors of the MJCF; an orientation (framequat) has a channel of its own.
        noise: standard deviation of the measurement, in the sensor's unit; in rad for an orientation.
        unit: of the columns; by default that of the sensor's type.
        bias_std: where the sensor's zero differs from run to run: how far it lies from 0, standard deviation.

    Examples:
        >>> sensor("imu_gyro", noise=0.01).reads
        'sensor'
    """
    return Measured("sensor", names, noise, bias_std, unit=unit)


@dataclass(frozen=True)
class Commanded:
    """The channel that becomes MuJoCo's `ctrl`; made by `actuators`."""

    names: tuple[str, ...]
    unit: str | None = None

    def entry(self, model: mujoco.MjModel, where: str) -> Entry:
        """The channel as the YAML file says it; columns in another order than the MJCF's would drive other joints."""
        known = tuple(model.actuator(index).name for index in range(model.nu))
        if self.names != known:
            raise ScenarioError(
                got=f"actuators {', '.join(self.names) or '(none)'}",
                expected=f"all of the MJCF, in its order: {', '.join(name or '(unnamed)' for name in known) or 'none'}",
                where=where,
                next_step="Order the names, and the columns of the arrays, as the MJCF does; name what has no name.",
            )
        unit = self.unit or _command_unit(model)
        return {"columns": list(self.names), "unit": unit, "frame": "joint", "stamp": "held_until_next"}


def actuators(*names: str, unit: str | None = None) -> Commanded:
    """Commands, one column an actuator: row i is in force from the time of row i until that of row i + 1.

    Args:
        names: all actuators of the MJCF, in its order.
        unit: of the columns; by default the joint's unit for position servos, "1" for anything else.

    Examples:
        >>> actuators("shoulder", "elbow").names
        ('shoulder', 'elbow')
    """
    return Commanded(names, unit)


def _joint_unit(model: mujoco.MjModel, names: tuple[str, ...], where: str) -> str:
    hinges = {model.jnt_type[element_id(model, "joint", name, where)] == mujoco.mjtJoint.mjJNT_HINGE for name in names}
    if len(hinges) != 1:
        raise ScenarioError(
            got=f"hinges and slides in one channel ({', '.join(names)})" if names else "no joints",
            expected="joints of one unit, rad or m",
            where=where,
            next_step="Make one channel of the hinges and another of the slides.",
        )
    return "rad" if hinges.pop() else "m"


def _command_unit(model: mujoco.MjModel) -> str:
    """The joint's unit where all actuators are position servos of hinges, or all of slides; else "1"."""
    kinds = {_transmission(model, index) if is_servo(model, index) else "1" for index in range(model.nu)}
    return kinds.pop() if len(kinds) == 1 else "1"


def is_servo(model: mujoco.MjModel, actuator: int) -> bool:
    """Whether a command is a position: what the gain adds at the command, the bias takes at the position."""
    return model.actuator_gainprm[actuator, 0] == -model.actuator_biasprm[actuator, 1] != 0.0


def _transmission(model: mujoco.MjModel, actuator: int) -> str:
    if model.actuator_trntype[actuator] != mujoco.mjtTrn.mjTRN_JOINT:
        return "1"
    return unit_at(model, model.actuator_trnid[actuator, 0], ("rad", "m"))


def unit_at(model: mujoco.MjModel, joint: int, units: tuple[str, str]) -> str:
    """The unit at a hinge, or at a slide."""
    return units[int(model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_SLIDE)]
