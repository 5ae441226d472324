"""A scenario to a folder: scenario.yaml and its MJCF, which `load_scenario` reads back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import mujoco
import yaml

from rsr.common import read_yaml, write_bytes, write_text
from rsr.scenarios.channels.observed import Observed, RecordedVelocity
from rsr.scenarios.channels.sensor_errors import SCALES, SensorScale
from rsr.scenarios.collision import CollisionPair, SceneCollision
from rsr.scenarios.models.mjcf import write_mjcf
from rsr.scenarios.parameters.bindings import Binding, element_name, free_joint_name
from rsr.scenarios.parameters.space import Parameter
from rsr.scenarios.per_episode import EpisodeValue
from rsr.scenarios.python_beside import python_files
from rsr.scenarios.scenario import Scenario
from rsr.sessions import Channel

_FREE = mujoco.mjtJoint.mjJNT_FREE


def save_scenario(scenario: Scenario, folder: Path) -> Path:
    """See `Scenario.save`."""
    mjcf = folder / f"{scenario.mjcf.stem}.xml"
    write_mjcf(scenario.spec(), scenario.base_model, mjcf, scenario.mjcf if scenario.source is None else None)
    _copy_shape(scenario, folder)
    _copy_laws(scenario, folder)
    path = folder / "scenario.yaml"
    write_text(path, yaml.safe_dump(document_of(scenario, mjcf.name), sort_keys=False, width=120))
    return path


def document_of(scenario: Scenario, mjcf: str) -> dict[str, Any]:
    """The scenario as its YAML file says it; what is None or empty is left out."""
    document = {
        "name": scenario.name,
        "title": scenario.title,
        "mjcf": mjcf,
        "control_dt_s": scenario.control_dt_s,
        "episode_steps": scenario.episode_steps,
        "gap_channel": scenario.gap_channel,
        "command": scenario.command,
        "history_steps": scenario.delay_steps - scenario.reach_steps,
        "repeats_share": scenario.repeats_share,
        "window_s": scenario.window_s,
        "gap_horizon_s": scenario.gap_horizon_s,
        "bias_window_s": scenario.bias_window_s,
        "structure": {option: list(values) for option, values in scenario.structure},
        "channels": _channels(scenario),
        "parameters": {each.name: _parameter(scenario, index, each) for index, each in enumerate(scenario.space)},
        "per_episode": {each.name: _per_episode(scenario, i, each) for i, each in enumerate(scenario.per_episode)},
        "evaluation": _evaluation(scenario),
        "collision": scenario.collision and _collision(scenario.collision),
        "effects": scenario.effects and dict(scenario.effects.document),
        **_carried_over(scenario),
    }
    return _given(document)


def _carried_over(scenario: Scenario) -> dict[str, Any]:
    """Sections that a scenario's own YAML file has and that are not made here."""
    document = {} if scenario.file is None else read_yaml(scenario.file)
    carried = {key: document[key] for key in ("limits", "stand_in") if key in document}
    return carried | ({} if scenario.task is None else {"task": dict(scenario.task)})


def _given(mapping: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in mapping.items() if value not in (None, "", {}, [])}


def _channels(scenario: Scenario) -> dict[str, dict[str, Any]]:
    entries = {each.channel.name: _observed(scenario, each) for each in scenario.observed}
    entries |= {each.channel.name: _velocity(scenario, each) for each in scenario.velocities}
    return entries | {channel.name: _described(channel) for channel in scenario.other_channels}


def _described(channel: Channel) -> dict[str, Any]:
    frame = {"columns": list(channel.columns), "unit": channel.unit, "frame": channel.frame}
    return {**frame, "clock": channel.clock, "stamp": channel.stamp}


def _observed(scenario: Scenario, observed: Observed) -> dict[str, Any]:
    joints = _joints(scenario, observed.dofs)
    model = scenario.base_model
    if observed.sensor_columns:
        reads: dict[str, Any] = {"sensor": _sensors(model, observed.sensor_columns)}
    elif model.jnt_type[joints[0]] == _FREE:
        kind = "free_joint_quaternion" if observed.kind == "quaternion" else "free_joint_position"
        reads = {kind: free_joint_name(model, joints[0])}
    else:
        reads = {"joints": [model.joint(joint).name for joint in joints]}
    entry = {**_described(observed.channel), "reads": reads, "noise": observed.noise}
    axis = {} if observed.noise_axis is None else {"noise_axis": list(observed.noise_axis)}
    return {**entry, **axis, **({"bias_std": observed.bias_std} if observed.bias_std else {})}


def _velocity(scenario: Scenario, velocity: RecordedVelocity) -> dict[str, Any]:
    joints = _joints(scenario, velocity.dofs)
    model = scenario.base_model
    if model.jnt_type[joints[0]] == _FREE:
        linear = velocity.dofs[0] == model.jnt_dofadr[joints[0]]
        kind = "free_joint_linear_velocity" if linear else "free_joint_angular_velocity"
        reads: dict[str, Any] = {kind: free_joint_name(model, joints[0])}
    else:
        reads = {"joint_velocities": [model.joint(joint).name for joint in joints]}
    mode = "initial_states" if velocity.initial else "recorded"
    return {**_described(velocity.channel), "reads": reads, "mode": mode}


def _sensors(model: mujoco.MjModel, columns: Sequence[int]) -> list[str]:
    """Names of the sensors that fill columns of `sensordata`, in the order of these."""
    first = {int(model.sensor_adr[index]): model.sensor(index).name for index in range(model.nsensor)}
    return [first[each] for each in columns if each in first]


def _joints(scenario: Scenario, dofs: Sequence[int]) -> list[int]:
    return [int(scenario.base_model.dof_jntid[dof]) for dof in dofs]


def _parameter(scenario: Scenario, index: int, parameter: Parameter) -> dict[str, Any]:
    entry: dict[str, Any] = {key: value for key, value in asdict(parameter).items() if key != "name"}
    writing = [each for each in scenario.bindings if each.parameter == index]
    entry |= _targets(scenario, writing)
    times = next((each.times for each in writing if each.times is not None), None)
    entry["times"] = None if times is None else scenario.per_episode[times].name
    entry["delays"] = "command" if scenario.delay_parameter == index else None
    entry["sensor_delay"] = [channel for channel, owner in scenario.sensor_delays if owner == index]
    for key, kind in SCALES.items():
        acting = [each for each in scenario.sensor_scales if each.parameter == index and each.kind == kind]
        entry[key] = [_scaled_place(scenario, each) for each in acting]
    return _given(entry)


def _scaled_place(scenario: Scenario, scale: SensorScale) -> str:
    columns = scenario.observed_channel(scale.channel).channel.columns
    return scale.channel if len(scale.columns) == len(columns) else f"{scale.channel}.{columns[scale.columns[0]]}"


def _per_episode(scenario: Scenario, index: int, value: EpisodeValue) -> dict[str, Any]:
    entry = {key: said for key, said in asdict(value).items() if key != "name"}
    acting = [each for each in scenario.bindings if each.parameter is None and each.times == index]
    return _given(entry | _targets(scenario, acting))


def _targets(scenario: Scenario, acting: Sequence[Binding]) -> dict[str, Any]:
    modes = (("sets", "set"), ("scales", "scale"))
    return {key: [_target(scenario, each) for each in acting if each.mode == mode] for key, mode in modes}


def _target(scenario: Scenario, binding: Binding) -> dict[str, Any]:
    names = [element_name(scenario.base_model, binding.element, index) for index in binding.ids]
    return {binding.element: names if len(names) > 1 else names[0], "field": binding.field}


def _evaluation(scenario: Scenario) -> dict[str, Any]:
    judged = scenario.evaluation
    metrics = {
        each.name: {"channel": each.channel, "statistic": each.statistic, "display_unit": each.display_unit}
        for each in judged.metrics
    }
    flight = asdict(judged.free_flight) if judged.free_flight else None
    return _given(
        {"starts": list(judged.starts), "horizon_s": judged.horizon_s, "metrics": metrics, "free_flight": flight}
    )


def _collision(declared: CollisionPair | SceneCollision) -> dict[str, Any]:
    entry = _given(asdict(declared))
    return entry | ({"striker": list(declared.striker)} if isinstance(declared, SceneCollision) else {})


def _copy_shape(scenario: Scenario, folder: Path) -> None:
    """The struck block of a collision may be described by a file beside the scenario's."""
    shape = scenario.collision.shape if isinstance(scenario.collision, CollisionPair) else None
    if shape and (scenario.folder / shape).is_file():
        write_bytes(folder / shape, (scenario.folder / shape).read_bytes())


def _copy_laws(scenario: Scenario, folder: Path) -> None:
    """Laws of one's own are Python beside the scenario's file, which may import its neighbours."""
    own = {effect.folder for effect in scenario.effects.each if effect.folder} if scenario.effects else set()
    for source in own:
        for path in python_files(source):
            write_bytes(folder / path.relative_to(source), path.read_bytes())
