"""From a scenario's YAML and MJCF to a checked `Scenario`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import yaml

from rsr.errors import ConfigError, ScenarioError
from rsr.scenarios.bindings import Binding, bind, element_id, free_joint_slice
from rsr.scenarios.parameters import Parameter, ParameterSpace
from rsr.scenarios.scenario import Kind, Observed, Scenario
from rsr.sessions import Channel

_ROOM = Path(__file__).parent


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
        path = Path(name)
    if path.suffix not in (".yaml", ".yml") or not path.is_file():
        raise ConfigError(
            got=f"scenario '{name}'",
            expected=f"one of {', '.join(built_in_scenarios())}, or the path of a scenario's YAML file",
            where="scenario",
            next_step="Correct the name in params.yaml or on the command line.",
        )
    return _build(path, yaml.safe_load(path.read_text()))


def _build(path: Path, document: Mapping[str, Any]) -> Scenario:
    where = str(path.name)
    model = mujoco.MjModel.from_xml_path(str(path.parent / document["mjcf"]))
    observed, others = [], []
    for name, entry in document["channels"].items():
        channel = _channel(name, entry)
        if "reads" in entry:
            observed.append(_observed(model, channel, entry, f"{where}, channel {name}"))
        else:
            others.append(channel)
    bindings, delay = _bindings(model, document["parameters"], where)
    return Scenario(
        name=document["name"],
        title=document["title"],
        mjcf=path.parent / document["mjcf"],
        control_dt_s=document["control_dt_s"],
        history_steps=document["history_steps"],
        episode_steps=document["episode_steps"],
        space=ParameterSpace(tuple(_parameter(name, entry) for name, entry in document["parameters"].items())),
        bindings=bindings,
        delay_parameter=delay,
        observed=tuple(observed),
        other_channels=tuple(others),
        command=document["command"],
        gap_channel=document["gap_channel"],
        base_model=model,
    )


def _channel(name: str, entry: Mapping[str, Any]) -> Channel:
    optional = {key: entry[key] for key in ("clock", "stamp") if key in entry}
    return Channel(name, tuple(entry["columns"]), entry["unit"], entry["frame"], **optional)


def _parameter(name: str, entry: Mapping[str, Any]) -> Parameter:
    fields = {key: value for key, value in entry.items() if key not in ("sets", "scales", "delays")}
    parameter = Parameter(name=name, **fields)
    if not parameter.lower <= parameter.nominal <= parameter.upper:
        raise ScenarioError(
            got=f"nominal {parameter.nominal} outside [{parameter.lower}, {parameter.upper}]",
            expected="lower <= nominal <= upper",
            where=f"parameter {name}",
            next_step="Correct the bounds in the scenario's YAML file.",
        )
    return parameter


def _bindings(
    model: mujoco.MjModel, entries: Mapping[str, Any], where: str
) -> tuple[tuple[Binding, ...], int | None]:
    bindings: list[Binding] = []
    delay = None
    for index, (name, entry) in enumerate(entries.items()):
        place = f"{where}, parameter {name}"
        bindings += [bind(model, index, "set", target, place) for target in entry.get("sets", [])]
        bindings += [bind(model, index, "scale", target, place) for target in entry.get("scales", [])]
        delay = index if "delays" in entry else delay
    return tuple(bindings), delay


def _observed(model: mujoco.MjModel, channel: Channel, entry: Mapping[str, Any], where: str) -> Observed:
    kind, qpos, dofs = _coordinates(model, entry["reads"], where)
    if len(qpos) != channel.width:
        raise ScenarioError(
            got=f"{channel.width} columns ({', '.join(channel.columns)})",
            expected=f"{len(qpos)}, one a coordinate it reads",
            where=where,
            next_step="Name one column a coordinate in the scenario's YAML file.",
        )
    return Observed(channel, qpos, dofs, kind, entry["noise"])


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
            return "linear", free_joint_slice(model, value, "position", where), tuple(np.arange(start, start + 3))
        return "quaternion", free_joint_slice(model, value, "quaternion", where), tuple(np.arange(start + 3, start + 6))
    raise ScenarioError(
        got=f"reads '{key}'",
        expected="joints, free_joint_position or free_joint_quaternion",
        where=where,
        next_step="Correct the channel in the scenario's YAML file.",
    )
