"""From a scenario's YAML and MJCF to a checked `Scenario`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import mujoco

from rsr.common import ScenarioError, inside, read_yaml
from rsr.scenarios.channels.observed import check_order, columns_error, parse_channels
from rsr.scenarios.channels.sensor_errors import parse_delays, parse_scales
from rsr.scenarios.collision import parse_collision
from rsr.scenarios.effects.applied import Effects
from rsr.scenarios.effects.effect_reading import parse_effects
from rsr.scenarios.finding import TASK_FILE, file_of, is_built_in, scenario_file, scenario_files, stated_task_file
from rsr.scenarios.metrics import default_evaluation, parse_evaluation
from rsr.scenarios.models.activations import check_activations, settling_steps
from rsr.scenarios.models.guarded_mjcf import is_finite
from rsr.scenarios.models.model_source import read_model
from rsr.scenarios.motion.commands import StatedLimits, check_angle_unit, parse_limits
from rsr.scenarios.parameters.bindings import Binding, bind, in_order
from rsr.scenarios.parameters.space import Parameter, ParameterSpace
from rsr.scenarios.per_episode import EpisodeValue, check_written_once, multiplier, parse_per_episode
from rsr.scenarios.scenario import EPISODE_S, Scenario
from rsr.scenarios.structure import parse_structure
from rsr.scenarios.tasks.stated_task import channels_of_task
from rsr.scenarios.yaml_keys import check_fields
from rsr.sessions import Channel

_MOST_SUBSTEPS = 100_000
_SURPRISES = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RuntimeError, mujoco.FatalError)
"""Errors of contents that pass every check by name and still cannot be: they are reported in one sentence, too."""


def load_scenario(name: str | Path) -> Scenario:
    """Load a built-in scenario by name, or any scenario by the path of its YAML file or of the folder that holds it.

    While its files stay as they are, it is the same object.

    Examples:
        >>> load_scenario("double_pendulum").space.names[0]
        'upper_mass'
    """
    path = scenario_file(name)
    path = path.absolute()
    return _loaded(path, () if is_built_in(path) else _state_of(path))


def scenario_of(artifact: Path, name: str) -> Scenario:
    """Load the scenario of a stored policy or calibration: the copy saved with it or its campaign's, or a built-in one.

    Args:
        artifact: its folder.
        name: of the scenario, as the artifact says it.

    Raises:
        ConfigError: there is none of this name.
    """
    return load_scenario(file_of(artifact, name))


@lru_cache(maxsize=64)
def _loaded(path: Path, state: tuple) -> Scenario:
    """The scenario of a file, read again when `state` says that one of its files changed."""
    try:
        document = read_yaml(path)
    except (OSError, ValueError) as error:
        raise _unfit(path, " ".join(str(error).split()), "YAML") from error
    try:
        scenario = _scenario(path, _with_task(path, document))
        if not (is_built_in(path) or is_finite(scenario)):
            raise _unfit(path, "masses, inertias, damping or gravity that are not finite", "finite ones at `nominal`")
        return scenario
    except _SURPRISES as error:
        words = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise _unfit(path, f"contents that do not fit together ({words})", "a scenario") from error


def _state_of(path: Path) -> tuple:
    """Sizes and times of the files that a scenario is made of."""
    stats = ((str(each), each.stat()) for each in scenario_files(path))
    return tuple((name, stat.st_mtime_ns, stat.st_size) for name, stat in stats)


def _scenario(path: Path, document: Mapping[str, Any]) -> Scenario:
    where, folder = path.name, path.parent
    fields = check_fields("scenario", document, where)
    model, mjcf, source = read_model(folder, fields["mjcf"], fields.get("adds", {}), is_built_in(path), where)
    built = build(document, model, mjcf, where, source, folder)
    return replace(built, file=path, other_channels=built.other_channels + _of_policy(document, folder))


def _with_task(path: Path, document: Any) -> Any:
    """The document, with the task that lies in a file beside it put in where its name stands."""
    file = stated_task_file(path, document)
    if file is None:
        return document
    try:
        inside(path.parent, file.name)
        return {**document, "task": read_yaml(file)}
    except (OSError, ValueError) as error:
        raise _unfit(file, " ".join(str(error).split()), "YAML, as a section `task` would have it") from error


def _unfit(path: Path, got: str, expected: str) -> ScenarioError:
    next_step = "Correct the file there; docs/scenarios.md has an example."
    return ScenarioError(got=got, expected=expected, where=str(path), next_step=next_step)


def build(
    document: Mapping[str, Any],
    model: mujoco.MjModel,
    mjcf: Path,
    where: str,
    source: mujoco.MjSpec | None = None,
    folder: Path | None = None,
) -> Scenario:
    """Check what a YAML file says against the compiled MJCF, and make the scenario.

    Args:
        document: the keys that `rsr.scenarios.yaml_keys` lists; `where` names it in an error.
        mjcf: where the model came from.
        source: what the model was compiled from, if it was no file.
        folder: where Python that the document names lies; by default the MJCF's.
    """
    check_fields("scenario", document, where)
    observed, velocities, others = parse_channels(model, document["channels"], where)
    names = tuple(channel.channel.name for channel in observed)
    _check_channel(document["gap_channel"], names, f"{where}, gap_channel")
    if document.get("command") is not None:
        _check_command(model, document, where)
    _check_time_step(model, document["control_dt_s"], where)
    check_activations(model, where)
    space = ParameterSpace(tuple(_parameter(name, entry) for name, entry in document["parameters"].items()))
    per_episode = parse_per_episode(document.get("per_episode", {}), where)
    bindings, delay = _bindings(model, document, where)
    _check_history(document, delay, where)
    scenario = Scenario(
        name=document["name"],
        title=document["title"],
        mjcf=mjcf,
        control_dt_s=document["control_dt_s"],
        history_steps=document.get("history_steps", _reached_back(document)),
        episode_steps=document.get("episode_steps", max(1, round(EPISODE_S / document["control_dt_s"]))),
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
        bias_window_s=document.get("bias_window_s", Scenario.bias_window_s),
        structure=parse_structure(document.get("structure", {}), f"{where}, structure"),
        sensor_delays=parse_delays(document["parameters"], observed, where),
        sensor_scales=parse_scales(document["parameters"], observed, where),
        collision=parse_collision(model, document["collision"], f"{where}, collision")
        if "collision" in document
        else None,
        source=source,
        limits=_limits(model, document, where),
        effects=_effects(model, document, space, bindings, per_episode, folder or mjcf.parent, where),
        per_episode=per_episode,
        task=document.get("task"),
    )
    scenario = replace(scenario, history_steps=scenario.history_steps + scenario.reach_steps)
    return _with_settling(scenario) if model.na else scenario


def _with_settling(scenario: Scenario) -> Scenario:
    """The scenario with as many commands before a window as its activations may remember."""
    slowest = scenario.model(scenario.space.upper)
    steps = settling_steps((scenario.base_model, slowest), scenario.control_dt_s)
    return replace(scenario, history_steps=scenario.history_steps + steps, settling_steps=steps)


def _effects(
    model: mujoco.MjModel,
    document: Mapping[str, Any],
    space: ParameterSpace,
    bindings: tuple[Binding, ...],
    per_episode: tuple[EpisodeValue, ...],
    folder: Path,
    where: str,
) -> Effects | None:
    if not document.get("effects"):
        return None
    where, channels = f"{where}, effects", document["channels"]
    return parse_effects(model, document["effects"], space, channels, bindings, per_episode, folder, where)


def _limits(model: mujoco.MjModel, document: Mapping[str, Any], where: str) -> StatedLimits | None:
    if "limits" not in document:
        return None
    if document.get("command") is None:
        raise ScenarioError(
            got="limits, and nothing that is commanded",
            expected="`command`, the channel that becomes `ctrl`",
            where=where,
            next_step="Name the command, or leave `limits` away.",
        )
    columns = tuple(document["channels"][document["command"]]["columns"])
    return parse_limits(model, columns, document["limits"], f"{where}, limits")


def _of_policy(document: Mapping[str, Any], folder: Path) -> tuple[Channel, ...]:
    """Channels that a session with a policy has besides: its action, and how much of it was cut, where not declared."""
    command, section = document.get("command"), document.get("task")
    in_python = (folder / TASK_FILE).is_file()
    if section is not None and in_python:
        got, expected, next_step = f"a section `task`, and {TASK_FILE} beside it", "one of the two", "Remove one."
        raise ScenarioError(got=got, expected=expected, where=str(folder), next_step=next_step)
    if section is not None and command is None:
        got, expected = "a section `task`, and nothing that is commanded", "`command`, the channel that becomes `ctrl`"
        raise ScenarioError(got=got, expected=expected, where=str(folder), next_step="Name it, or leave `task` away.")
    if command is None or not (in_python or section):
        return ()
    columns = tuple(document["channels"][command]["columns"])
    own = (
        Channel("action", columns, "1", "joint", stamp="held_until_next"),
        Channel("clipped", ("share",), "1", "joint", stamp="held_until_next"),
        *(channels_of_task(section, document["channels"]) if section else ()),
    )
    return tuple(channel for channel in own if channel.name not in document["channels"])


def _check_time_step(model: mujoco.MjModel, control_dt_s: float, where: str) -> None:
    steps = control_dt_s / model.opt.timestep if model.opt.timestep > 0 else 0.0
    if not 0.5 <= steps <= _MOST_SUBSTEPS or abs(steps - round(steps)) > 1e-6 * steps:
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
    reach_s = document.get("history_steps", _reached_back(document)) * document["control_dt_s"]
    if entry["upper"] > reach_s + 1e-9:
        raise ScenarioError(
            got=f"history_steps that reach {reach_s:g} s back, and a delay of up to {entry['upper']:g} s",
            expected="history_steps times control_dt_s no shorter than the longest delay",
            where=f"{where}, parameter {name}",
            next_step="Raise history_steps, or leave it out; or lower the bound.",
        )


def _reached_back(document: Mapping[str, Any]) -> int:
    """Control steps that the longest delay of commands reaches back."""
    longest = max((entry["upper"] for entry in document["parameters"].values() if "delays" in entry), default=0.0)
    return math.ceil(longest / document["control_dt_s"] - 1e-9)


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
    if not model.nu:
        raise ScenarioError(
            got=f"command '{name}', and a model without actuators",
            expected="an actuator for each of its columns",
            where=where,
            next_step="Add them to the MJCF, or in `adds`: "
            'mjcf: <actuator><position name="a" joint="a" kp="10"/></actuator>.',
        )
    place = f"{where}, channel {name}"
    if len(columns) != model.nu:
        raise columns_error(tuple(columns), f"{model.nu}, one an actuator of the MJCF", place)
    check_angle_unit(model, f"{where}, mjcf")
    actuators = range(model.nu)
    check_order(tuple(columns), [model.actuator(index).name for index in actuators], place)
    if (model.actuator_trntype == mujoco.mjtTrn.mjTRN_JOINT).all():
        check_order(tuple(columns), [model.joint(model.actuator_trnid[index, 0]).name for index in actuators], place)


_ACTIONS = ("sets", "scales", "delays", "sensor_delay", "sensor_gain", "sensor_bias", "times")
_MODES: tuple[tuple[str, Literal["set", "scale"]], ...] = (("sets", "set"), ("scales", "scale"))


def _parameter(name: str, entry: Mapping[str, Any]) -> Parameter:
    check_fields("parameter", entry, f"parameter {name}")
    fields = {key: value for key, value in entry.items() if key not in _ACTIONS}
    parameter = Parameter(name=name, **fields)
    if not parameter.lower <= parameter.nominal <= parameter.upper:
        raise ScenarioError(
            got=f"nominal {parameter.nominal} outside [{parameter.lower}, {parameter.upper}]",
            expected="lower <= nominal <= upper",
            where=f"parameter {name}",
            next_step="Correct the bounds in the scenario's YAML file.",
        )
    return parameter


def _bindings(model: mujoco.MjModel, document: Mapping[str, Any], where: str) -> tuple[tuple[Binding, ...], int | None]:
    """Where parameters and values per episode act, and the index of the parameter that delays commands."""
    of_parameters: list[Binding] = []
    alone: list[Binding] = []
    delay, given = None, document.get("per_episode", {})
    for index, (name, entry) in enumerate(document["parameters"].items()):
        place = f"{where}, parameter {name}"
        times = multiplier(entry, list(given), place)
        for key, mode in _MODES:
            of_parameters += [bind(model, index, mode, target, place, times) for target in entry.get(key, [])]
        delay = index if "delays" in entry else delay
    for index, (name, entry) in enumerate(given.items()):
        place = f"{where}, per_episode {name}"
        for key, mode in _MODES:
            alone += [bind(model, None, mode, target, place, index) for target in entry.get(key, [])]
    by_parameters, by_episodes = (
        [(each.element, i, each.field) for each in some for i in each.ids] for some in (of_parameters, alone)
    )
    check_written_once(by_parameters, by_episodes, where)
    return in_order([*of_parameters, *alone]), delay
