"""From a scenario's YAML and MJCF to a checked `Scenario`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import mujoco
import yaml

from rsr.errors import ConfigError, ScenarioError
from rsr.scenarios.bindings import Binding, bind, element_id, free_joint_slice, in_order
from rsr.scenarios.collision import parse_collision
from rsr.scenarios.fields import check_fields
from rsr.scenarios.metrics import default_evaluation, parse_evaluation
from rsr.scenarios.parameters import Parameter, ParameterSpace
from rsr.scenarios.scenario import Kind, Observed, RecordedVelocity, Scenario
from rsr.scenarios.structure import parse_structure
from rsr.sessions import Channel

_ROOM = Path(__file__).parent
_VELOCITIES = {
    "joint_velocities": "joints",
    "free_joint_linear_velocity": "free_joint_position",
    "free_joint_angular_velocity": "free_joint_quaternion",
}
"""What a velocity channel reads -> the coordinates it is the velocity of."""


def built_in_scenarios() -> tuple[str, ...]:
    return tuple(sorted(path.parent.name for path in _ROOM.glob("*/scenario.yaml")))


@cache
def load_scenario(name: str) -> Scenario:
    """Load a built-in scenario by name, or any scenario by the path of its YAML file.

    Example:
        >>> load_scenario("push_cube").space.names[0]
        'table_friction'
    """
    path = _ROOM / name / "scenario.yaml"
    if not path.is_file():
        path = Path(name) / "scenario.yaml" if Path(name).is_dir() else Path(name)
    if path.suffix not in (".yaml", ".yml") or not path.is_file():
        raise ConfigError(
            got=f"scenario '{name}'",
            expected=f"one of {', '.join(built_in_scenarios())}, or the path of a scenario's YAML file",
            where="scenario",
            next_step="Correct the name in params.yaml or on the command line.",
        )
    try:
        return _build(path, yaml.safe_load(path.read_text()))
    except yaml.YAMLError as error:
        raise ScenarioError(
            got=" ".join(str(error).split()),
            expected="YAML",
            where=str(path),
            next_step="Correct the file there; docs/scenarios.md has an example.",
        ) from error


def _build(path: Path, document: Mapping[str, Any]) -> Scenario:
    where = str(path.name)
    check_fields("scenario", document, where)
    model = _compiled(path.parent / document["mjcf"], where)
    observed, velocities, others = _channels(model, document["channels"], where)
    names = tuple(channel.channel.name for channel in observed)
    _check_channel(document["gap_channel"], names, f"{where}, gap_channel")
    if document.get("command") is not None:
        _check_command(model, document, where)
    _check_time_step(model, document["control_dt_s"], where)
    space = ParameterSpace(tuple(_parameter(name, entry) for name, entry in document["parameters"].items()))
    bindings, delay = _bindings(model, document["parameters"], where)
    _check_history(document, delay, where)
    return Scenario(
        name=document["name"],
        title=document["title"],
        mjcf=path.parent / document["mjcf"],
        control_dt_s=document["control_dt_s"],
        history_steps=document.get("history_steps", 0),
        episode_steps=document["episode_steps"],
        space=space,
        bindings=bindings,
        delay_parameter=delay,
        observed=observed,
        other_channels=others,
        command=document.get("command"),
        gap_channel=document["gap_channel"],
        base_model=model,
        evaluation=parse_evaluation(document["evaluation"], names, where)
        if "evaluation" in document
        else default_evaluation(names),
        velocities=velocities,
        repeats_share=document.get("repeats_share"),
        window_s=document.get("window_s", Scenario.window_s),
        gap_horizon_s=document.get("gap_horizon_s", Scenario.gap_horizon_s),
        zero_s=document.get("zero_s", Scenario.zero_s),
        structure=parse_structure(document.get("structure", {}), f"{where}, structure"),
        shifts=_shifts(document["parameters"], names, where),
        collision=parse_collision(model, document["collision"], f"{where}, collision")
        if "collision" in document
        else None,
    )


def _compiled(mjcf: Path, where: str) -> mujoco.MjModel:
    try:
        return mujoco.MjModel.from_xml_path(str(mjcf))
    except ValueError as error:  # MuJoCo's own message names the element, or the file that is not there
        raise ScenarioError(
            got=str(error).strip(),
            expected="an MJCF that MuJoCo compiles",
            where=f"{where}, mjcf: {mjcf.name}",
            next_step="Correct the MJCF.",
        ) from error


def _check_time_step(model: mujoco.MjModel, control_dt_s: float, where: str) -> None:
    steps = control_dt_s / model.opt.timestep
    if round(steps) < 1 or abs(steps - round(steps)) > 1e-6 * steps:
        raise ScenarioError(
            got=f"control_dt_s {control_dt_s:g} with a time step of {model.opt.timestep:g} s in the MJCF",
            expected="a whole number of time steps to a control step",
            where=where,
            next_step='Set <option timestep="..."/> in the MJCF to a whole fraction of control_dt_s.',
        )


def _check_history(document: Mapping[str, Any], delay: int | None, where: str) -> None:
    if delay is None:
        return
    name, entry = list(document["parameters"].items())[delay]
    reach_s = document.get("history_steps", 0) * document["control_dt_s"]
    if entry["upper"] > reach_s + 1e-9:
        raise ScenarioError(
            got=f"history_steps that reach {reach_s:g} s back, and a delay of up to {entry['upper']:g} s",
            expected="history_steps times control_dt_s no shorter than the longest delay",
            where=f"{where}, parameter {name}",
            next_step="Raise history_steps or lower the bound.",
        )


def _channels(
    model: mujoco.MjModel, entries: Mapping[str, Any], where: str
) -> tuple[tuple[Observed, ...], tuple[RecordedVelocity, ...], tuple[Channel, ...]]:
    """Sort the channels into those that positions are compared with, velocities, and others."""
    observed, velocities, others = [], [], []
    for name, entry in entries.items():
        place = f"{where}, channel {name}"
        check_fields("channel", entry, place)
        channel = _channel(name, entry)
        if "reads" not in entry:
            others.append(channel)
        elif next(iter(entry["reads"])) in _VELOCITIES:
            velocities.append(_velocity(model, channel, entry, place))
        else:
            observed.append(_observed(model, channel, entry, place))
    return tuple(observed), tuple(velocities), tuple(others)


def _check_channel(name: str, known: tuple[str, ...], where: str) -> None:
    if name not in known:
        raise ScenarioError(
            got=f"channel '{name}'",
            expected=f"one of {', '.join(known)}",
            where=where,
            next_step="Correct the scenario's YAML file.",
        )


def _check_command(model: mujoco.MjModel, document: Mapping[str, Any], where: str) -> None:
    name = document["command"]
    _check_channel(name, tuple(document["channels"]), f"{where}, command")
    columns = document["channels"][name]["columns"]
    if len(columns) != model.nu:
        raise _columns_error(tuple(columns), f"{model.nu}, one an actuator of the MJCF", f"{where}, channel {name}")


def _channel(name: str, entry: Mapping[str, Any]) -> Channel:
    optional = {key: entry[key] for key in ("clock", "stamp") if key in entry}
    return Channel(name, tuple(entry["columns"]), entry["unit"], entry["frame"], **optional)


def _parameter(name: str, entry: Mapping[str, Any]) -> Parameter:
    check_fields("parameter", entry, f"parameter {name}")
    fields = {key: value for key, value in entry.items() if key not in ("sets", "scales", "delays", "shifts")}
    parameter = Parameter(name=name, **fields)
    if not parameter.lower <= parameter.nominal <= parameter.upper:
        raise ScenarioError(
            got=f"nominal {parameter.nominal} outside [{parameter.lower}, {parameter.upper}]",
            expected="lower <= nominal <= upper",
            where=f"parameter {name}",
            next_step="Correct the bounds in the scenario's YAML file.",
        )
    return parameter


def _bindings(model: mujoco.MjModel, entries: Mapping[str, Any], where: str) -> tuple[tuple[Binding, ...], int | None]:
    bindings: list[Binding] = []
    delay = None
    for index, (name, entry) in enumerate(entries.items()):
        place = f"{where}, parameter {name}"
        bindings += [bind(model, index, "set", target, place) for target in entry.get("sets", [])]
        bindings += [bind(model, index, "scale", target, place) for target in entry.get("scales", [])]
        delay = index if "delays" in entry else delay
    return in_order(bindings), delay


def _shifts(entries: Mapping[str, Any], observed: tuple[str, ...], where: str) -> tuple[tuple[str, int], ...]:
    """Pairs of a channel and the index of the parameter that says how late it is."""
    shifts = []
    for index, (name, entry) in enumerate(entries.items()):
        listed = entry.get("shifts", [])
        for channel in [listed] if isinstance(listed, str) else listed:
            _check_channel(channel, observed, f"{where}, parameter {name}, shifts")
            shifts.append((channel, index))
    return tuple(shifts)


def _observed(model: mujoco.MjModel, channel: Channel, entry: Mapping[str, Any], where: str) -> Observed:
    kind, qpos, dofs = _coordinates(model, entry["reads"], where)
    _check_width(channel, len(qpos), where)
    if "noise" not in entry:
        raise ScenarioError(
            got="no noise",
            expected="the standard deviation of the measurement, in the channel's unit (rad for quaternions)",
            where=where,
            next_step="Add `noise` to the channel: what the sensor's data sheet says, or the scatter at rest.",
        )
    if "zero_std" in entry and kind == "quaternion":
        raise ScenarioError(
            got="zero_std of an orientation",
            expected="zero_std of positions or angles, whose zero is a number a column",
            where=where,
            next_step="Leave `zero_std` away, or give it to a channel that reads joints or positions.",
        )
    return Observed(channel, qpos, dofs, kind, entry["noise"], entry.get("zero_std", 0.0))


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
        raise _columns_error(channel.columns, f"{coordinates}, one a coordinate it reads", where)


def _columns_error(columns: tuple[str, ...], expected: str, where: str) -> ScenarioError:
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
        joints = [element_id(model, "joint", name, where) for name in value]
        hinge = all(model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_HINGE for joint in joints)
        qpos = tuple(int(model.jnt_qposadr[joint]) for joint in joints)
        return "angle" if hinge else "linear", qpos, tuple(int(model.jnt_dofadr[joint]) for joint in joints)
    if key in ("free_joint_position", "free_joint_quaternion"):
        start = int(model.jnt_dofadr[element_id(model, "joint", value, where)])
        if key == "free_joint_position":
            return "linear", free_joint_slice(model, value, "position", where), tuple(range(start, start + 3))
        return "quaternion", free_joint_slice(model, value, "quaternion", where), tuple(range(start + 3, start + 6))
    raise ScenarioError(
        got=f"reads '{key}'",
        expected=f"joints, free_joint_position, free_joint_quaternion, {', '.join(_VELOCITIES)}",
        where=where,
        next_step="Correct the channel in the scenario's YAML file.",
    )
