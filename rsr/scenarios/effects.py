"""Effects: physics that MuJoCo lacks, as laws (`rsr.scenarios.effect_laws`) of joints, applied in every physics step.

Arguments of a law are numbers, parameters of the scenario, or columns that a recording has (a gain that differs from
run to run, a supply voltage, a torque switched off). C batches, MJX and environments call the same `Effects.forces`.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from rsr.errors import ScenarioError
from rsr.outside import short
from rsr.scenarios.bindings import Binding, element_id
from rsr.scenarios.effect_laws import LAWS, Array, JointForces, JointMotion, Law
from rsr.scenarios.parameters import ParameterSpace
from rsr.scenarios.per_episode import EpisodeValue
from rsr.scenarios.python_beside import blamed, load_function
from rsr.scenarios.yaml_keys import check_fields

LOAD_HELD_S = 0.01
"""How long the load that laws see is held, at most: computing it costs more than half of a physics step."""
_ONE_COORDINATE = (int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE))
_MUJOCO_SOLREF, _MUJOCO_SOLIMP = (0.02, 1.0), (0.9, 0.95, 0.001, 0.5, 2.0)
_STICKING = (0.9999, 0.9999, 0.001, 0.5, 2.0)
"""Impedance of dry friction. With MuJoCo's own, a small servo that sticks creeps by 0.03 rad in six seconds."""


@dataclass(frozen=True)
class Source:
    """Where an argument's number comes from: a constant, a parameter [P], or a column beside the commands [C]."""

    constant: float = 0.0
    parameter: int | None = None
    column: int | None = None


@dataclass(frozen=True)
class Setting:
    """A recorded column that a law's argument follows.

    Args:
        otherwise: the value where nothing was recorded: in training and on a stand-in.
    """

    channel: str
    column: int
    otherwise: float


@dataclass(frozen=True)
class Effect:
    """One law on some joints.

    Args:
        law: name of a built-in law, or `FILE.py:NAME` in `folder`.
        actuators: that it replaces, one a joint; none for an effect on joints.
        arguments: name -> one source for all joints, or one a joint.
        command_range: of the actuators it replaces, [2, J].
    """

    name: str
    law: str
    folder: Path | None
    qpos: tuple[int, ...]
    dofs: tuple[int, ...]
    actuators: tuple[int, ...]
    arguments: tuple[tuple[str, tuple[Source, ...]], ...]
    command_range: tuple[tuple[float, ...], tuple[float, ...]]

    @property
    def function(self) -> Law:
        """The law; one of the user's is named by its file in what it raises."""
        if self.folder is None:
            return LAWS[self.law]
        return blamed(load_function(self.folder, self.law), self.folder, f"effect {self.name}")

    def values(self, xp: Any, params: Array) -> dict[str, Array | None]:
        """Values [..., 1 or J] of the arguments at parameters [..., P]; None for what recorded settings say."""
        return {
            name: None if any(source.column is not None for source in sources) else _stacked(xp, sources, params, None)
            for name, sources in self.arguments
        }

    def completed(
        self, xp: Any, values: Mapping[str, Array | None], params: Array, settings: Array
    ) -> dict[str, Array]:
        """`values`, with those that follow the settings [..., C] of this moment."""
        given = dict(self.arguments)
        return {
            name: _stacked(xp, given[name], params, settings) if value is None else value
            for name, value in values.items()
        }


def _stacked(xp: Any, sources: tuple[Source, ...], params: Array, settings: Array | None) -> Array:
    """Value [..., 1 or J] of an argument; a constant for all joints stays a number, which is cheaper."""

    def one(source: Source) -> Array:
        if source.parameter is not None:
            return params[..., source.parameter]
        return source.constant if source.column is None or settings is None else settings[..., source.column]

    only = sources[0]
    if len(sources) > 1:
        return xp.stack(xp.broadcast_arrays(*map(one, sources)), axis=-1)
    return only.constant if only.parameter is None and only.column is None else one(only)[..., None]


@dataclass(frozen=True)
class Applied:
    """Forces and commands of all effects in one physics step.

    Args:
        ctrl: [..., nu].
        torque, damping, dry_friction: [..., nv], beside what the model has.
    """

    ctrl: Array
    torque: Array
    damping: Array
    dry_friction: Array


@dataclass(frozen=True)
class Effects:
    """All effects of a scenario, in the order of its YAML file.

    Args:
        settings: recorded columns, which follow the commands and the values per episode.
        reads_load: whether a law looks at the load of its joints.
        rubbing: degrees of freedom that effects give dry friction.
        document: the section `effects` as it was written.
    """

    each: tuple[Effect, ...]
    settings: tuple[Setting, ...]
    inputs: int
    dofs: int
    reads_load: bool
    rubbing: tuple[int, ...]
    document: Mapping[str, Any]

    def forces(
        self,
        xp: Any,
        arguments: Sequence[tuple[Law, Mapping[str, Array | None]]],
        params: Array,
        controls: Array,
        qpos: Array,
        qvel: Array,
        load: Array,
        step_s: float,
    ) -> Applied:
        """Evaluate all laws, in numpy or JAX.

        Args:
            arguments: of `arguments`, at these parameters.
            params: [..., P].
            controls: [..., nu + C], commands, values per episode and settings.
            qpos, qvel, load: [..., nq], [..., nv], [..., nv].
        """
        commands, settings = controls[..., : self.inputs], controls[..., self.inputs :]
        drive = torque = damping = dry = xp.zeros_like(qvel)
        ctrl = commands * self._kept
        for effect, (law, values), (on_dofs, on_actuators) in zip(self.each, arguments, self._spreads, strict=True):
            dofs = list(effect.dofs)
            joint = JointMotion(
                position=qpos[..., list(effect.qpos)],
                velocity=qvel[..., dofs],
                command=_clipped(xp, commands, effect),
                drive=drive[..., dofs],
                load=load[..., dofs],
                step_s=step_s,
            )
            made = law(xp, joint, **effect.completed(xp, values, params, settings))
            shape = joint.velocity
            if effect.actuators:
                drive = drive + _spread(made.torque, shape, on_dofs)
                ctrl = ctrl + _spread(made.torque, shape, on_actuators)
            else:
                exerted = _spread(made.torque, shape, on_dofs)
                torque, load = torque + exerted, load + exerted
            damping = damping + _spread(made.damping, shape, on_dofs)
            dry = dry + _spread(made.dry_friction, shape, on_dofs)
        return Applied(ctrl, torque, damping, xp.maximum(dry, 0.0))

    def arguments(self, xp: Any, params: Array) -> list[tuple[Law, dict[str, Array | None]]]:
        """Each effect's law, and its arguments as far as parameters [..., P] say them: once a rollout."""
        return [(effect.function, effect.values(xp, params)) for effect in self.each]

    @property
    def laws(self) -> tuple[Law, ...]:
        """One function an effect."""
        return tuple(effect.function for effect in self.each)

    def load_steps(self, step_s: float) -> int:
        """Physics steps of one control step for which the load is held."""
        return max(1, int(LOAD_HELD_S / step_s + 1e-9))

    def prepare(self, model: mujoco.MjModel) -> None:
        """Make the actuators that effects replace exert their `ctrl`, and dry friction stick, in place."""
        taken = sorted({actuator for effect in self.each for actuator in effect.actuators})
        model.actuator_gaintype[taken] = mujoco.mjtGain.mjGAIN_FIXED
        model.actuator_biastype[taken] = mujoco.mjtBias.mjBIAS_NONE
        model.actuator_gainprm[taken] = 0.0
        model.actuator_gainprm[taken, 0] = 1.0
        model.actuator_biasprm[taken] = 0.0
        model.actuator_ctrllimited[taken] = 0
        for dof in self.rubbing:
            # What the MJCF says of it stays. MuJoCo allows no time constant below two steps.
            own = np.concatenate([model.dof_solref[dof], model.dof_solimp[dof]])
            if np.allclose(own, _MUJOCO_SOLREF + _MUJOCO_SOLIMP):
                model.dof_solref[dof] = (2.0 * model.opt.timestep, 1.0)
                model.dof_solimp[dof] = _STICKING

    @cached_property
    def _kept(self) -> np.ndarray:
        """[nu], 0 for actuators that effects replace."""
        kept = np.ones(self.inputs)
        kept[[actuator for effect in self.each for actuator in effect.actuators]] = 0.0
        return kept

    @cached_property
    def _spreads(self) -> tuple[tuple[np.ndarray | None, np.ndarray | None], ...]:
        """For each effect, matrices [J, nv] and [J, nu] that put its joints' numbers in their places."""
        return tuple((_places(effect.dofs, self.dofs), _places(effect.actuators, self.inputs)) for effect in self.each)


def _places(indices: tuple[int, ...], size: int) -> np.ndarray | None:
    """A matrix [J, size] with a 1 in each row; None where it would be the identity."""
    return None if indices == tuple(range(size)) else np.eye(size)[list(indices)]


def _spread(value: Array, shape: Array, places: np.ndarray | None) -> Array:
    """Put a law's result, a number or [..., 1 or J], into its places [J, n], None if each is in its own."""
    if isinstance(value, float) and value == 0.0:
        return 0.0
    whole = value if np.shape(value) == shape.shape else value + 0.0 * shape
    return whole if places is None else whole @ places


def _clipped(xp: Any, commands: Array, effect: Effect) -> Array:
    """The commands of the actuators that an effect replaces, within their range."""
    if not effect.actuators:
        return 0.0
    own = commands[..., list(effect.actuators)]
    lower, upper = np.array(effect.command_range)
    return xp.clip(own, lower, upper) if np.isfinite([lower, upper]).any() else own


# The section `effects` of a scenario's YAML file.


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
    effects = []
    for name, entry in section.items():
        place = f"{where}, {name}"
        check_fields("effect", entry, place)
        effects.append(_effect(model, name, entry, known, folder, place))
    _check_replaced_once(model, effects, bindings, where)
    otherwise = np.array([*(each.nominal for each in per_episode), *(each.otherwise for each in known.settings)])
    probes = [_Probe(effect, space.nominal, otherwise) for effect in effects]
    for probe, effect in zip(probes, effects, strict=True):
        probe.check(f"{where}, {effect.name}")
    return Effects(
        each=tuple(effects),
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
        raise _wrong(f"law {short(entry['law'])}", f"one of {', '.join(LAWS)}, or FILE.py:NAME beside this file", where)
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
    setting = Setting(entry["channel"], columns.index(entry["column"]), float(entry["otherwise"]))
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
