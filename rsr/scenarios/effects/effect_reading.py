"""The section `effects` of a scenario's YAML file: read, checked, and each law tried once."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from rsr.common import ScenarioError, short
from rsr.scenarios.effects.applied import Effect, Effects, Setting, Source
from rsr.scenarios.effects.command_laws import COMMAND_LAWS, CommandLaw
from rsr.scenarios.effects.effect_laws import LAWS, Array, JointForces
from rsr.scenarios.parameters.bindings import Binding, element_id
from rsr.scenarios.parameters.space import ParameterSpace
from rsr.scenarios.per_episode import EpisodeValue
from rsr.scenarios.python_beside import load_function
from rsr.scenarios.yaml_keys import check_fields

_ONE_COORDINATE = (int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE))


def parse_effects(
    model: mujoco.MjModel,
    section: Mapping[str, Any],
    space: ParameterSpace,
    channels: Mapping[str, Any],
    bindings: Sequence[Binding],
    per_episode: Sequence[EpisodeValue],
    folder: Path,
    where: str,
) -> Effects:
    """Read the section `effects`, and try each law once.

    Args:
        channels: the section `channels`.

    Raises:
        ScenarioError: an unknown law, joint, argument, parameter or column; or a law that is not pure, or returns
            something else than `JointForces` of its joints.
    """
    known = _Known(space.names, tuple(each.name for each in per_episode), channels, [])
    effects, on_commands = [], []
    for name, entry in section.items():
        place = f"{where}, {name}"
        check_fields("effect", entry, place)
        if entry["law"] in COMMAND_LAWS:
            on_commands.append(_command_law(model, name, entry, known, space, place))
        else:
            effects.append(_effect(model, name, entry, known, folder, place))
    _check_filtered_once(model, on_commands, where)
    _check_replaced_once(model, effects, bindings, where)
    otherwise = np.array([*(each.nominal for each in per_episode), *(each.otherwise for each in known.settings)])
    probes = [_Probe(effect, space.nominal, otherwise) for effect in effects]
    for probe, effect in zip(probes, effects, strict=True):
        probe.check(f"{where}, {effect.name}")
    return Effects(
        each=tuple(effects),
        on_commands=tuple(on_commands),
        settings=tuple(known.settings),
        inputs=model.nu,
        dofs=model.nv,
        reads_load=any(probe.read_load for probe in probes),
        rubbing=tuple(sorted({dof for probe in probes if probe.rubs for dof in probe.effect.dofs})),
        document=dict(section),
    )


@dataclass(frozen=True)
class _Known:
    """Names that arguments may refer to; `settings` grows as they do."""

    parameters: tuple[str, ...]
    per_episode: tuple[str, ...]
    channels: Mapping[str, Any]
    settings: list[Setting]


def _effect(
    model: mujoco.MjModel,
    name: str,
    entry: Mapping[str, Any],
    known: _Known,
    folder: Path,
    where: str,
) -> Effect:
    if ("joints" in entry) == ("actuators" in entry):
        raise _wrong("joints and actuators" if "joints" in entry else "neither joints nor actuators",
                     "joints that it acts on, or actuators that it replaces", where)  # fmt: skip
    actuators = tuple(element_id(model, "actuator", each, where) for each in _listed(entry.get("actuators", [])))
    for actuator in actuators:
        _check_replaceable(model, actuator, where)
    joints = tuple(int(model.actuator_trnid[each, 0]) for each in actuators) or tuple(
        element_id(model, "joint", each, where) for each in _listed(entry["joints"])
    )
    for joint in joints:
        if model.jnt_type[joint] not in _ONE_COORDINATE:
            raise _wrong(f"joint '{model.joint(joint).name}'", "hinges and slides, which have one coordinate", where)
    built_in = entry["law"] in LAWS
    if not (built_in or ".py:" in entry["law"]):
        known_laws = ", ".join((*LAWS, *COMMAND_LAWS))
        raise _wrong(f"law {short(entry['law'])}", f"one of {known_laws}, or FILE.py:NAME beside this file", where)
    law = LAWS[entry["law"]] if built_in else load_function(folder, entry["law"], where)
    given = entry.get("arguments", {})
    _check_arguments(law, given, where)
    arguments = []
    for argument, value in given.items():
        listed = value if isinstance(value, list) else [value]
        if len(listed) not in (1, len(joints)):
            raise _wrong(f"{len(listed)} values of {argument}", f"one, or one for each of {len(joints)} joints", where)
        place = f"{where}, {argument}"
        arguments.append((argument, tuple(_source(each, known, place) for each in listed)))
    limited = model.actuator_ctrllimited[list(actuators), None] > 0
    lower, upper = np.where(limited, model.actuator_ctrlrange[list(actuators)], (-np.inf, np.inf)).T.tolist()
    return Effect(
        name=name,
        law=entry["law"],
        folder=None if built_in else folder,
        qpos=tuple(model.jnt_qposadr[list(joints)].tolist()),
        dofs=tuple(model.jnt_dofadr[list(joints)].tolist()),
        actuators=actuators,
        arguments=tuple(arguments),
        command_range=(tuple(lower), tuple(upper)),
    )


def _command_law(
    model: mujoco.MjModel,
    name: str,
    entry: Mapping[str, Any],
    known: _Known,
    space: ParameterSpace,
    where: str,
) -> CommandLaw:
    """A law of commands. A latency may be recorded command by command; a lag is known when a rollout begins."""
    law, (wanted, least) = entry["law"], COMMAND_LAWS[entry["law"]]
    if "joints" in entry or "actuators" not in entry:
        raise _wrong(
            "no actuators" if "actuators" not in entry else "joints", f"actuators, whose commands {law} changes", where
        )
    actuators = tuple(element_id(model, "actuator", each, where) for each in _listed(entry["actuators"]))
    for actuator in actuators:
        if model.actuator_actnum[actuator]:
            got = f"actuator '{model.actuator(actuator).name}' with internal state"
            raise _wrong(got, "one without, such as <motor> or <position>", where)
    given = entry.get("arguments", {})
    if wanted not in given or set(given) - {wanted, "longest"}:
        raise _wrong(f"arguments {', '.join(given) or '(none)'}", f"{wanted}, in s, and where needed longest", where)
    value, longest = given[wanted], given.get("longest")
    if isinstance(value, Mapping) and law != "latency":
        raise _wrong("a recorded column", "a number, a parameter's name or a value per episode", f"{where}, {wanted}")
    source = _source(value, known, f"{where}, {wanted}")
    if source.parameter is not None:
        parameter = space.parameters[source.parameter]
        shortest, longest = parameter.lower, parameter.upper
    elif source.column is None:
        shortest = longest = source.constant
    else:
        shortest = longest if isinstance(longest, int | float) else -1.0
        if shortest <= 0:
            raise _wrong(f"longest {short(longest)}", f"the longest {wanted} of all episodes, in s", where)
    if not shortest >= least:
        raise _wrong(f"{wanted} of {shortest:g} s", f"{least:g} s at least", where)
    _check_within(value, float(longest or 0.0), f"{where}, {wanted}")
    return CommandLaw(
        name=name,
        law=law,
        actuators=actuators,
        constant=source.constant,
        parameter=source.parameter,
        column=source.column,
        longest_s=float(longest or 0.0),
        varies=isinstance(value, Mapping),
    )


def _check_within(value: Any, longest: float, where: str) -> None:
    """Refuse what stands for unrecorded latencies where it is not within their bounds."""
    otherwise = np.ravel(value["otherwise"]) if isinstance(value, Mapping) else np.zeros(1)
    if not (otherwise.min() >= 0.0 and otherwise.max() <= longest):
        raise _wrong(f"otherwise {short(value['otherwise'])}", f"0 to {longest:g} s, its `longest`", where)


def _check_filtered_once(model: mujoco.MjModel, laws: Sequence[CommandLaw], where: str) -> None:
    """Refuse a second latency or lag of a command: as one number they say the same."""
    taken: dict[tuple[str, int], str] = {}
    for law in laws:
        for actuator in law.actuators:
            other = taken.setdefault((law.law, actuator), law.name)
            if other != law.name:
                name = model.actuator(actuator).name
                raise _wrong(f"actuator '{name}' in {other} and {law.name}", f"one {law.law} each", where)


def _check_arguments(law: Any, given: Mapping[str, Any], where: str) -> None:
    """Refuse names that the law does not take, and the lack of one that it needs."""
    if not callable(law):
        raise _wrong(f"a {type(law).__name__}", "a function law(xp, joint, *, arguments)", where)
    signature = inspect.signature(law).parameters.values()
    taken = {each.name: each.default for each in signature if each.kind is inspect.Parameter.KEYWORD_ONLY}
    if sum(each.kind is not inspect.Parameter.KEYWORD_ONLY for each in signature) != 2:
        raise _wrong(f"{law.__name__}{inspect.signature(law)}", "a function law(xp, joint, *, arguments)", where)
    for name in given:
        if name not in taken:
            raise _wrong(f"argument '{name}'", f"some of {', '.join(taken) or 'none'}", where)
    missing = [name for name, default in taken.items() if default is inspect.Parameter.empty and name not in given]
    if missing:
        raise _wrong(f"no {', '.join(missing)}", f"all that the law needs, of {', '.join(taken)}", where)


def _source(value: Any, known: _Known, where: str) -> Source:
    """One argument: a number, the name of a parameter or value per episode, or `{channel, column, otherwise}`."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return Source(float(value))
    if isinstance(value, str):
        if value in known.per_episode:
            return Source(column=known.per_episode.index(value))
        if value not in known.parameters:
            names = ", ".join((*known.parameters, *known.per_episode))
            raise _wrong(f"parameter {short(value)}", f"one of {names}, or a number", where)
        return Source(parameter=known.parameters.index(value))
    if not isinstance(value, Mapping):
        raise _wrong(short(value), "a number, a parameter's name, or {channel, column, otherwise}", where)
    entry = check_fields("setting", value, where)
    if entry["channel"] not in known.channels:
        raise _wrong(f"channel '{entry['channel']}'", f"one of {', '.join(known.channels)}", where)
    columns = list(known.channels[entry["channel"]]["columns"])
    if entry["column"] not in columns:
        raise _wrong(f"column '{entry['column']}'", f"one of {', '.join(columns)}", where)
    low, high = np.broadcast_to(np.asarray(entry["otherwise"], float), 2).tolist()
    setting = Setting(entry["channel"], columns.index(entry["column"]), low, high)
    if setting not in known.settings:
        known.settings.append(setting)
    return Source(column=len(known.per_episode) + known.settings.index(setting))


def _check_replaceable(model: mujoco.MjModel, actuator: int, where: str) -> None:
    """Refuse actuators that do more than pull at one joint."""
    name = model.actuator(actuator).name
    if model.actuator_trntype[actuator] != mujoco.mjtTrn.mjTRN_JOINT:
        raise _wrong(f"actuator '{name}' of no joint", "an actuator of a joint", where)
    if not np.isclose(model.actuator_gear[actuator, 0], 1.0):
        gear = model.actuator_gear[actuator, 0]
        raise _wrong(f"actuator '{name}' with gear {gear:g}", "gear 1: a gear is an argument of the law", where)
    if model.actuator_actnum[actuator]:
        raise _wrong(f"actuator '{name}' with internal state", "one without, such as <motor> or <position>", where)


def _check_replaced_once(
    model: mujoco.MjModel, effects: Sequence[Effect], bindings: Sequence[Binding], where: str
) -> None:
    """Refuse an actuator that two effects replace, and parameters that write what is replaced."""
    taken: dict[int, str] = {}
    for effect in effects:
        for actuator in effect.actuators:
            name = model.actuator(actuator).name
            if actuator in taken:
                raise _wrong(f"actuator '{name}' in {taken[actuator]} and {effect.name}", "one effect each", where)
            taken[actuator] = effect.name
    for binding in bindings:
        for index in binding.ids if binding.element == "actuator" else ():
            if index in taken:
                raise _wrong(
                    f"a parameter that is {binding.field} of actuator '{model.actuator(index).name}'",
                    f"a parameter that is an argument of effect {taken[index]}, which replaces it",
                    where,
                )


# Trying a law: what a user's function may do wrong, found when the scenario is loaded.


class _Probe:
    """Calls a law on random motions and looks at what it does."""

    def __init__(self, effect: Effect, params: np.ndarray, settings: np.ndarray) -> None:
        self.effect, self._params, self._settings = effect, params, settings
        self.read_load = self.rubs = False

    def check(self, where: str) -> None:
        """Raise where the law is not pure, not finite, or of the wrong shape."""
        rng, joints, batch = np.random.default_rng(0), len(self.effect.dofs), 3
        arrays = rng.uniform(-1.0, 1.0, (5, batch, joints))
        watched = _Watched(*arrays.copy(), step_s=0.001)
        params, settings = (np.tile(each, (batch, 1)) for each in (self._params, self._settings))
        values = self.effect.completed(np, self.effect.values(np, params), params, settings)
        with np.errstate(all="ignore"):
            made = self.effect.function(np, watched, **values)
            again = self.effect.function(np, _Watched(*arrays.copy(), step_s=0.001), **values)
        if not isinstance(made, JointForces):
            raise _wrong(f"a {type(made).__name__}", "rsr.JointForces(torque=..., ...)", where)
        if not all(np.array_equal(one, other) for one, other in zip(watched.arrays, arrays, strict=True)):
            raise _wrong("a law that changes its inputs in place", "a pure function: make new arrays", where)
        for name in ("torque", "damping", "dry_friction"):
            value, shape = np.asarray(getattr(made, name), float), (batch, joints)
            if not _fits(value.shape, shape):
                raise _wrong(f"{name} of shape {value.shape} for joints of shape {shape}", "the joints' shape", where)
            if not np.isfinite(value).all():
                raise _wrong(
                    f"{name} that is not finite", "finite forces at any motion, with nominal parameters", where
                )
            if not np.array_equal(value, np.asarray(getattr(again, name), float)):
                raise _wrong(f"{name} that differs between two equal calls", "a pure function, without chance", where)
        self.read_load, self.rubs = watched.read_load, bool(np.any(made.dry_friction))


class _Watched:
    """A `JointMotion` that notes whether its load is read."""

    def __init__(
        self, position: Array, velocity: Array, command: Array, drive: Array, load: Array, step_s: float
    ) -> None:
        self.position, self.velocity, self.command, self.drive, self._load = position, velocity, command, drive, load
        self.step_s, self.read_load = step_s, False

    @property
    def load(self) -> Array:
        self.read_load = True
        return self._load

    @property
    def arrays(self) -> tuple[Array, ...]:
        return self.position, self.velocity, self.command, self.drive, self._load


def _fits(shape: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    """Whether an array broadcasts to a shape without making it larger."""
    aligned = zip(shape[::-1], wanted[::-1], strict=False)
    return len(shape) <= len(wanted) and all(own in (1, other) for own, other in aligned)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _wrong(got: str, expected: str, where: str) -> ScenarioError:
    next_step = "Correct the section `effects` of the scenario's YAML file; docs/effects.md has all laws."
    return ScenarioError(got=got, expected=expected, where=where, next_step=next_step)
