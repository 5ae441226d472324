"""What a model says of its commands: their kind, their range, and the one that keeps the robot where it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import mujoco
import numpy as np

from rsr.common import ScenarioError, short
from rsr.scenarios.motion.braking import braking_of
from rsr.scenarios.motion.kinematics import Reach
from rsr.scenarios.motion.limits import Box, CommandLimits, MotionLimits, SiteLimit
from rsr.scenarios.scenario import Scenario
from rsr.scenarios.tasks.task import Task
from rsr.scenarios.yaml_keys import check_fields

_JOINT, _TENDON = mujoco.mjtTrn.mjTRN_JOINT, mujoco.mjtTrn.mjTRN_TENDON
_AFFINE = mujoco.mjtBias.mjBIAS_AFFINE
_DEGREES_SUSPECTED = (30.0, 120.0)
"""Commands between so many times as wide as the joint's range: a radian is 57 degrees."""
SPEED = 2.0
"""Of a position command by default: rad/s or m/s."""
ACCELERATION = 35.0
"""Of a position or speed command by default: rad/s^2 or m/s^2."""
BRAKE_SHARE = 0.5
"""Of a drive's force, for braking by default: as much again is left for weight, payload and what the model misses."""


def command_kinds(model: mujoco.MjModel) -> np.ndarray:
    """Kind of each command [nu]: "position" or "velocity" of a joint or a tendon, or "force" for all others."""
    gain, bias = model.actuator_gainprm[:, 0], model.actuator_biasprm
    servo = np.isin(model.actuator_trntype, (_JOINT, _TENDON)) & (model.actuator_biastype == _AFFINE) & (gain > 0)
    servo &= np.isclose(model.actuator_gear[:, 0], 1.0)
    # A position servo pulls back in proportion to the position it is away from: force = kp ctrl - kp q - kv v. That of
    # a speed brakes in proportion to it: force = kv ctrl - kv v.
    position = servo & np.isclose(bias[:, 1], -gain)
    velocity = servo & np.isclose(bias[:, 1], 0.0) & np.isclose(bias[:, 2], -gain)
    return np.where(position, "position", np.where(velocity, "velocity", "force"))


def position_joints(model: mujoco.MjModel) -> np.ndarray:
    """The joint whose position each actuator is commanded to [nu]; -1 where it is a force, a speed, or a tendon's."""
    of_joint = (command_kinds(model) == "position") & (model.actuator_trntype == _JOINT)
    return np.where(of_joint, model.actuator_trnid[:, 0], -1)


def rest_command(model: mujoco.MjModel, qpos: np.ndarray) -> np.ndarray:
    """Commands [B, nu] that keep a robot at rest at qpos [B, nq]: its own position for servos, 0 for speeds and forces.

    With a keyframe, forces are those of its `ctrl`: a quadrotor's hover, say.
    """
    return rest_commands(model)(qpos)


def rest_commands(model: mujoco.MjModel) -> Callable[[np.ndarray], np.ndarray]:
    """`rest_command` of one model, which is looked through once."""
    joints, still = position_joints(model), _at_rest(model)
    places, (lower, upper) = model.jnt_qposadr[np.maximum(joints, 0)], command_range(model)
    return lambda qpos: np.clip(np.where(joints >= 0, qpos[:, places], still), lower, upper)


def _at_rest(model: mujoco.MjModel) -> np.ndarray:
    return model.key_ctrl[0] if model.nkey else np.zeros(model.nu)


def readings_at_rest(model: mujoco.MjModel, qpos: np.ndarray, command: np.ndarray) -> np.ndarray:
    """Readings [B, nsensordata] of the model's sensors at rest."""
    data, readings = mujoco.MjData(model), np.zeros((len(qpos), model.nsensordata))
    for row in range(len(qpos) if model.nsensor else 0):
        data.qpos[:], data.ctrl[:] = qpos[row], command[row]
        mujoco.mj_forward(model, data)
        readings[row] = data.sensordata
    return readings


def command_range(model: mujoco.MjModel) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper bounds of the commands [nu], infinite where the model states none."""
    limited = model.actuator_ctrllimited.astype(bool)
    lower, upper = np.where(limited[:, None], model.actuator_ctrlrange, (-np.inf, np.inf)).T
    joints = position_joints(model)
    bounded = (joints >= 0) & (model.jnt_limited[np.maximum(joints, 0)] > 0)
    ranges = model.jnt_range[np.maximum(joints, 0)]
    return np.where(bounded, np.maximum(lower, ranges[:, 0]), lower), np.where(
        bounded, np.minimum(upper, ranges[:, 1]), upper
    )


def check_angle_unit(model: mujoco.MjModel, where: str) -> None:
    """Refuse a hinge whose range looks like radians that were read as degrees, which an MJCF's angles are by default.

    Ranges of commands are never converted, so they then lie 57 times as far apart. Training would keep within the
    joint's range, a third of a degree, and call that the robot.
    """
    joints = position_joints(model)
    for actuator in np.flatnonzero((joints >= 0) & (model.actuator_ctrllimited > 0)):
        joint = int(joints[actuator])
        width, asked = np.ptp(model.jnt_range[joint]), np.ptp(model.actuator_ctrlrange[actuator])
        hinge = model.jnt_limited[joint] and model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_HINGE
        if (
            hinge
            and width <= np.deg2rad(4 * np.pi)
            and _DEGREES_SUSPECTED[0] * width < asked < _DEGREES_SUSPECTED[1] * width
        ):
            lower, upper = model.jnt_range[joint]
            named = f"joint '{model.joint(joint).name or joint}'"
            raise ScenarioError(
                got=f"{named} with a range of {lower:.3g} to {upper:.3g} rad, and commands over {asked:.3g} rad",
                expected="commands within the joint's range",
                where=where,
                next_step='Angles of an MJCF are in degrees unless it says <compiler angle="radian"/>: add that, or '
                "correct `range` of the joint or `ctrlrange` of its actuator.",
            )


def reach_of(scenario: Scenario) -> Reach:
    """Where the scenario's commands lead, as far as its channels show the joints."""
    model = scenario.base_model
    measured = tuple((each.channel.name, each.qpos) for each in scenario.observed if each.qpos)
    joints = np.where(model.actuator_trntype == _JOINT, model.actuator_trnid[:, 0], -1)
    signs = np.where(model.actuator_gear[:, 0] < 0, -1.0, 1.0)
    return Reach(model, measured, joints, command_kinds(model), signs)


def limits_of(scenario: Scenario, task: Task) -> MotionLimits:
    """The task's own limits of motion, or those that the model and the scenario's YAML file state.

    Raises:
        ScenarioError: both the task and the YAML file state some.
    """
    if task.limits is None:
        return stated_limits(scenario)
    if scenario.limits is not None:
        raise _wrong("limits", "those of the task alone, which has limits of its own", scenario.name)
    return task.limits


def stated_limits(scenario: Scenario) -> CommandLimits:
    """Limits that the model states, narrowed by the scenario's YAML file.

    Where the model says nothing of it, positions and speeds change no faster than an arm should, forces as they like.
    """
    model, stated = scenario.base_model, scenario.limits or StatedLimits()
    kinds = command_kinds(model)
    position = kinds == "position"
    rate = np.where(position, SPEED, np.where(kinds == "velocity", ACCELERATION, np.inf))
    lower, upper = command_range(model)
    numbers = {
        "command_lower": np.fmax(lower, stated.column("command_lower", model.nu)),
        "command_upper": np.fmin(upper, stated.column("command_upper", model.nu)),
        "command_rate": stated.column("command_rate", model.nu, rate),
        "command_acceleration": stated.column(
            "command_acceleration", model.nu, np.where(position, ACCELERATION, np.inf)
        ),
        "safe_command": stated.column("safe_command", model.nu, np.where(position, np.nan, _at_rest(model))),
    }
    rows: dict[str, Any] = {name: tuple(values.tolist()) for name, values in numbers.items()}
    return CommandLimits(
        **rows,
        reach=reach_of(scenario),
        step_s=scenario.control_dt_s,
        sites=stated.sites,
        brakes=braking_of(scenario, kinds == "force", stated.brake_share),
    )


# The section `limits` of a scenario's YAML file.


@dataclass(frozen=True)
class StatedLimits:
    """What the YAML file says of limits.

    Args:
        numbers: key -> (index of the command, number) of those that it speaks of.
        sites: limits of named sites.
        brake_share: share of a drive's force that braking is trusted to have.
    """

    numbers: Mapping[str, tuple[tuple[int, float], ...]] = field(default_factory=dict, hash=False)
    sites: tuple[SiteLimit, ...] = ()
    brake_share: float = BRAKE_SHARE

    def column(self, key: str, size: int, default: np.ndarray | float = np.nan) -> np.ndarray:
        """One number a command [size]."""
        values = np.array(np.broadcast_to(default, size), float)
        for index, value in self.numbers.get(key, ()):
            values[index] = value
        return values


def parse_limits(model: mujoco.MjModel, columns: tuple[str, ...], section: Any, where: str) -> StatedLimits:
    """Read the section `limits`.

    Args:
        columns: of the command channel, one an actuator.

    Raises:
        ScenarioError: an unknown key, column or site, or a number that is wider than what the model states.
    """
    check_fields("limits", section, where)
    numbers = {
        key: tuple(_numbers(section[key], columns, f"{where}, {key}"))
        for key in ("command_lower", "command_upper", "command_rate", "command_acceleration", "safe_command")
        if key in section
    }
    sites = tuple(_site(model, name, entry, where) for name, entry in section.get("sites", {}).items())
    _check_narrower(model, columns, numbers, where)
    if any(np.isfinite(each.speed) for each in sites) and (command_kinds(model) == "force").all():
        raise _wrong("the speed of a site", "none where forces are commanded: they do not say how fast it moves", where)
    return StatedLimits(numbers, sites, section.get("brake_share", BRAKE_SHARE))


def _numbers(value: Any, columns: tuple[str, ...], where: str) -> list[tuple[int, float]]:
    """One number for all commands, or a mapping from columns."""
    named: dict[str, Any] = dict.fromkeys(columns, value)
    if isinstance(value, Mapping):
        named = dict(value)
    for column, number in named.items():
        if column not in columns:
            raise _wrong(short(column), f"one of {', '.join(columns)}", where)
        if not isinstance(number, int | float) or isinstance(number, bool) or not np.isfinite(number):
            raise _wrong(short(number), "a number, or one for each of some columns of the command", where)
    return [(columns.index(column), float(number)) for column, number in named.items()]


def _check_narrower(
    model: mujoco.MjModel,
    columns: tuple[str, ...],
    numbers: Mapping[str, tuple[tuple[int, float], ...]],
    where: str,
) -> None:
    lower, upper = command_range(model)
    for key, entries in numbers.items():
        for index, value in entries:
            place = f"{where}, {key} of {columns[index]}"
            if key in ("command_rate", "command_acceleration"):
                if value <= 0:
                    raise _wrong(f"{value:g}", "a number above 0", place)
            elif not lower[index] <= value <= upper[index]:
                raise _wrong(
                    f"{value:g}", f"a number in {lower[index]:g} to {upper[index]:g}, as the model has it", place
                )


def _site(model: mujoco.MjModel, name: str, entry: Any, where: str) -> SiteLimit:
    where = f"{where}, site {short(name)}"
    site = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_SITE, str(name))
    if site < 0:
        known = [model.site(index).name or "(unnamed)" for index in range(model.nsite)]
        expected = f"one of {', '.join(known)}" if known else "a site of the MJCF, which has none"
        raise _wrong(f"site {short(name)}", expected, where)
    check_fields("site", entry, where)
    inside = _box(entry["inside"], f"{where}, inside") if "inside" in entry else None
    keep_out = tuple(_box(box, f"{where}, keep_out") for box in entry.get("keep_out", []))
    return SiteLimit(name, site, inside, keep_out, float(entry.get("speed", np.inf)))


def _box(entry: Any, where: str) -> Box:
    check_fields("box", entry, where)
    if not all(low < high for low, high in zip(entry["box_lower"], entry["box_upper"], strict=True)):
        raise _wrong(f"from {entry['box_lower']} to {entry['box_upper']}", "each number below its partner", where)
    lower, upper = (tuple(float(each) for each in entry[key]) for key in ("box_lower", "box_upper"))
    return Box(lower, upper)  # type: ignore[arg-type]


def _wrong(got: str, expected: str, where: str) -> ScenarioError:
    return ScenarioError(
        got=got, expected=expected, where=where, next_step="Correct the section `limits` of the scenario's YAML file."
    )
