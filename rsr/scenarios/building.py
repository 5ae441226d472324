"""A scenario made in Python: the same document as a YAML file's, checked by the same code."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import mujoco

from rsr.common import ScenarioError
from rsr.scenarios.channels.declared_channels import Commanded, Measured
from rsr.scenarios.loading import build
from rsr.scenarios.models.mjcf import compiled
from rsr.scenarios.parameters.declared_parameters import TunedParameter
from rsr.scenarios.scenario import Scenario

_WHERE = "Scenario.from_mjcf"
_NAME = re.compile(r"[^A-Za-z0-9_-]+")


def from_mjcf(
    mjcf: str | Path | mujoco.MjSpec,
    dt: float,
    measured: Mapping[str, Measured],
    tune: Mapping[str, TunedParameter],
    command: Mapping[str, Commanded] | None,
    name: str | None,
    title: str | None,
    episode_s: float,
    options: Mapping[str, Any],
) -> Scenario:
    """See `Scenario.from_mjcf`."""
    source = None if isinstance(mjcf, str | Path) else mjcf.copy()
    path = Path(mjcf) if isinstance(mjcf, str | Path) else Path(f"{mjcf.modelname or 'model'}.xml")
    model = compiled(path, _WHERE) if source is None else _compiled_spec(source)
    if not dt > 0:
        raise _refused(f"dt {dt}", "the time between two rows of a run, in s", _WHERE)
    name = name or _NAME.sub("_", path.stem).strip("_-") or "model"
    parameters = _parameters(model, tune)
    if shared := set(measured) & set(command or {}):
        raise _refused(f"'{shared.pop()}' twice", "one name a channel, measured or commanded", _WHERE)
    document = {
        "name": name,
        "title": title or name,
        "mjcf": path.name,
        "control_dt_s": float(dt),
        "episode_steps": max(1, round(episode_s / dt)),
        "channels": {**_channels(model, measured, Measured), **_channels(model, command or {}, Commanded)},
        "parameters": parameters,
        "gap_channel": next((key for key, value in measured.items() if value.noise is not None), ""),
        **({"command": _only(command)} if command else {}),
        **{key: value for key, value in options.items() if value is not None},
    }
    return build(document, model, path, _WHERE, source)


def _compiled_spec(spec: mujoco.MjSpec) -> mujoco.MjModel:
    try:
        return spec.compile()
    except ValueError as error:
        raise ScenarioError(
            got=str(error).strip(),
            expected="an MjSpec that MuJoCo compiles",
            where=_WHERE,
            next_step="Correct the MjSpec.",
        ) from error


def _channels(model: mujoco.MjModel, given: Mapping[str, Any], kind: type[Measured] | type[Commanded]) -> dict:
    made = "rsr.joints, rsr.free_joint_position, ..." if kind is Measured else "rsr.actuators"
    for name, channel in given.items():
        if not isinstance(channel, kind):
            raise _refused(f"{name}: {channel!r}", f"what {made} makes", _WHERE)
    return {name: channel.entry(model, f"{_WHERE}, channel {name}") for name, channel in given.items()}


def _parameters(model: mujoco.MjModel, tune: Mapping[str, TunedParameter]) -> dict[str, dict[str, Any]]:
    if not tune:
        raise _refused("nothing to tune", "at least one parameter", _WHERE)
    for name, parameter in tune.items():
        if not isinstance(parameter, TunedParameter):
            raise _refused(f"{name}: {parameter!r}", "what rsr.scale, rsr.absolute, rsr.delay, ... make", _WHERE)
    return {name: parameter.entry(model, f"{_WHERE}, parameter {name}") for name, parameter in tune.items()}


def _only(command: Mapping[str, Commanded]) -> str:
    names: Sequence[str] = list(command)
    if len(names) > 1:
        raise _refused(f"commands {', '.join(names)}", "one channel, one column an actuator", _WHERE)
    return names[0]


def _refused(got: str, expected: str, where: str) -> ScenarioError:
    return ScenarioError(got=got, expected=expected, where=where, next_step="Correct this argument.")
