"""MuJoCo's own sensors as channels: which columns of `sensordata` they fill, in which unit, and how they differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import mujoco

from rsr.common import ScenarioError

_Sensor = mujoco.mjtSensor
_JOINT_POSITION = _Sensor.mjSENS_JOINTPOS
_QUATERNIONS = (_Sensor.mjSENS_FRAMEQUAT, _Sensor.mjSENS_BALLQUAT)
_UNITS = {
    _Sensor.mjSENS_TOUCH: "N",
    _Sensor.mjSENS_ACCELEROMETER: "m/s^2",
    _Sensor.mjSENS_VELOCIMETER: "m/s",
    _Sensor.mjSENS_GYRO: "rad/s",
    _Sensor.mjSENS_FORCE: "N",
    _Sensor.mjSENS_TORQUE: "N m",
    _Sensor.mjSENS_RANGEFINDER: "m",
    _Sensor.mjSENS_TENDONPOS: "m",
    _Sensor.mjSENS_TENDONVEL: "m/s",
    _Sensor.mjSENS_TENDONACTFRC: "N",
    _Sensor.mjSENS_BALLQUAT: "1",
    _Sensor.mjSENS_BALLANGVEL: "rad/s",
    _Sensor.mjSENS_FRAMEPOS: "m",
    _Sensor.mjSENS_FRAMEQUAT: "1",
    _Sensor.mjSENS_FRAMEXAXIS: "1",
    _Sensor.mjSENS_FRAMEYAXIS: "1",
    _Sensor.mjSENS_FRAMEZAXIS: "1",
    _Sensor.mjSENS_FRAMELINVEL: "m/s",
    _Sensor.mjSENS_FRAMEANGVEL: "rad/s",
    _Sensor.mjSENS_FRAMELINACC: "m/s^2",
    _Sensor.mjSENS_FRAMEANGACC: "rad/s^2",
    _Sensor.mjSENS_SUBTREECOM: "m",
    _Sensor.mjSENS_SUBTREELINVEL: "m/s",
    _Sensor.mjSENS_GEOMDIST: "m",
    _Sensor.mjSENS_CLOCK: "s",
}
_JOINT_UNITS = {
    _JOINT_POSITION: ("rad", "m"),
    _Sensor.mjSENS_JOINTVEL: ("rad/s", "m/s"),
    _Sensor.mjSENS_JOINTACTFRC: ("N m", "N"),
}
"""Type of sensor -> unit at a hinge, at a slide."""
_AXES = {1: ("",), 3: ("_x", "_y", "_z"), 4: ("_w", "_x", "_y", "_z")}


@dataclass(frozen=True)
class SensorReading:
    """Sensors of the MJCF that one channel shows.

    Args:
        columns: of `sensordata`, one a column of the channel.
        quaternion: the channel is one orientation, wxyz.
        joints: where all sensors are `jointpos`: the joints that they read, which then are the channel's coordinates.
    """

    columns: tuple[int, ...]
    quaternion: bool
    joints: tuple[int, ...]


def sensor_reading(model: mujoco.MjModel, names: object, where: str) -> SensorReading:
    """Find the sensors that a channel names: one name, or a list of them."""
    ids = [sensor_id(model, name, where) for name in ([names] if isinstance(names, str) else _listed(names, where))]
    kinds = [_Sensor(model.sensor_type[index]) for index in ids]
    if any(kind in _QUATERNIONS for kind in kinds) and len(ids) > 1:
        raise _refused(
            f"an orientation among {len(ids)} sensors ({', '.join(model.sensor(index).name for index in ids)})",
            "a channel of its own for each framequat or ballquat: its differences are rotations",
            where,
        )
    columns = tuple(
        column
        for index in ids
        for column in range(model.sensor_adr[index], model.sensor_adr[index] + model.sensor_dim[index])
    )
    joints = tuple(int(model.sensor_objid[index]) for index in ids) if set(kinds) == {_JOINT_POSITION} else ()
    return SensorReading(columns, kinds[0] in _QUATERNIONS, joints)


def sensor_id(model: mujoco.MjModel, name: object, where: str) -> int:
    """Find a sensor by name, or say which there are."""
    index = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_SENSOR, name) if isinstance(name, str) else -1
    if index < 0:
        known = [model.sensor(each).name or "(unnamed)" for each in range(model.nsensor)]
        raise _refused(
            f"sensor '{name}'", f"one of {', '.join(known)}" if known else "a sensor: the MJCF has none", where
        )
    return index


def described(model: mujoco.MjModel, names: Sequence[str], unit: str | None, where: str) -> dict[str, object]:
    """Columns, unit and frame of a channel of these sensors, as the YAML file says them."""
    ids = [sensor_id(model, name, where) for name in names]
    units = {_unit(model, index) for index in ids}
    if unit is None and (len(units) != 1 or None in units):
        kinds = ", ".join(f"{model.sensor(i).name} ({_Sensor(model.sensor_type[i]).name[7:].lower()})" for i in ids)
        raise _refused(f"no unit for {kinds}", "one unit a channel", where, 'Say it: rsr.sensor(..., unit="N").')
    columns = [f"{name}{axis}" for name, index in zip(names, ids, strict=True) for axis in _axes(model, index)]
    return {"columns": columns, "unit": unit or units.pop(), "frame": _frame(model, ids)}


def _unit(model: mujoco.MjModel, index: int) -> str | None:
    kind = _Sensor(model.sensor_type[index])
    if kind in _JOINT_UNITS:
        slides = model.jnt_type[model.sensor_objid[index]] == mujoco.mjtJoint.mjJNT_SLIDE
        return _JOINT_UNITS[kind][int(slides)]
    return _UNITS.get(kind)


def _axes(model: mujoco.MjModel, index: int) -> Sequence[str]:
    size = int(model.sensor_dim[index])
    return _AXES.get(size) or tuple(f"_{number}" for number in range(size))


def _frame(model: mujoco.MjModel, ids: Sequence[int]) -> str:
    """The world's for sensors of frames without a reference, joints' for those of joints, else the sensor's own."""
    kinds = [_Sensor(model.sensor_type[index]) for index in ids]
    if all(kind in _JOINT_UNITS for kind in kinds):
        return "joint"
    of_frames = all("FRAME" in kind.name or "SUBTREE" in kind.name for kind in kinds)
    return "world" if of_frames and all(model.sensor_refid[index] < 0 for index in ids) else "sensor"


def _listed(names: object, where: str) -> Sequence[object]:
    if not isinstance(names, list | tuple) or not names:
        raise _refused(f"{names!r}", "the name of a sensor of the MJCF, or a list of them", where)
    return names


def _refused(got: str, expected: str, where: str, next_step: str | None = None) -> ScenarioError:
    return ScenarioError(
        got=got,
        expected=expected,
        where=where,
        next_step=next_step or "Correct the name in the scenario's YAML file or add it to the MJCF.",
    )
