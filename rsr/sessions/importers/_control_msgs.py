"""Messages of ros2_control whose definitions bags before ROS 2 Iron do not have: type -> fields of each version of it.

A version is taken if a message is exactly as long as it says. Names and types of fields only, newest version first.
"""

from __future__ import annotations

from itertools import chain

_STAMPED = "std_msgs/Header header"
_JOINTS = "string[] joint_names"
_SET_AND_FELT = ("reference", "feedback", "error", "output")
_FORMER = ("desired", "actual", "error")


def _state(points: tuple[str, ...], several: bool, *more: str) -> str:
    """Fields of a trajectory controller's state; `several` axes a joint came with Galactic."""
    rows = [_STAMPED, _JOINTS, *(f"trajectory_msgs/JointTrajectoryPoint {name}" for name in points)]
    if several:
        rows.append("string[] multi_dof_joint_names")
        rows += [f"trajectory_msgs/MultiDOFJointTrajectoryPoint multi_dof_{name}" for name in points]
    return "\n".join((*rows, *more))


def _fields(*rows: str) -> tuple[str]:
    """The one version of a type; a row that begins with + stands for several numbers."""
    named = ([f"float64 {name}" for name in row[1:].split()] if row[0] == "+" else [row] for row in rows)
    return ("\n".join(chain.from_iterable(named)),)


_PID = f"{_STAMPED}\nbuiltin_interfaces/Duration timestep"
_INTERFACES = "InterfaceValue[] interface_values"
VERSIONS: dict[str, tuple[str, ...]] = {
    "JointTrajectoryControllerState": (
        _state(_SET_AND_FELT, True, "float64 speed_scaling_factor"),
        _state(_SET_AND_FELT, True),
        # Humble says the same twice; under other names, so that only one of the two is taken for a measurement.
        _state((*_SET_AND_FELT, "deprecated_desired", "deprecated_actual"), True),
        _state(_FORMER, True),
        _state(_FORMER, False),
    ),
    "DynamicJointState": _fields(_STAMPED, _JOINTS, _INTERFACES),
    "DynamicInterfaceGroupValues": _fields(_STAMPED, "string[] interface_groups", _INTERFACES),
    "DynamicInterfaceValues": _fields(_STAMPED, "InterfaceValue states", "InterfaceValue commands"),
    "InterfaceValue": _fields("string[] interface_names", "float64[] values"),
    "JointControllerState": _fields(
        _STAMPED,
        "+ set_point process_value process_value_dot error time_step command p i d i_clamp",
        "bool antiwindup",
    ),
    "JointJog": _fields(_STAMPED, _JOINTS, "float64[] displacements", "float64[] velocities", "+ duration"),
    "PidState": (
        *_fields(_PID, "+ error error_dot i_term p_gain i_gain d_gain output"),
        *_fields(_PID, "+ error error_dot p_error i_error d_error p_term i_term d_term i_max i_min output"),
    ),
    "SingleDOFState": _fields("string name", "+ reference feedback feedback_dot error error_dot time_step output"),
    "SingleDOFStateStamped": _fields(_STAMPED, "SingleDOFState dof_state"),
    "MultiDOFStateStamped": _fields(_STAMPED, "SingleDOFState[] dof_states"),
    "MultiDOFCommand": _fields("string[] dof_names", "float64[] values", "float64[] values_dot"),
}
"""Name in `control_msgs/msg` -> fields of its versions."""
