"""Effects: physics that MuJoCo lacks, as laws of joints (`effect_laws`), applied in every physics step.

Arguments of a law are numbers, parameters of the scenario, or columns that a recording has (a gain that differs from
run to run, a supply voltage, a torque switched off). C batches, MJX and environments call the same `Effects.forces`.
What is done to commands before they act is in `rsr.scenarios.effects.command_laws`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from rsr.scenarios.effects.command_laws import CommandLaw
from rsr.scenarios.effects.effect_laws import LAWS, Array, JointMotion, Law
from rsr.scenarios.python_beside import blamed, load_function

LOAD_HELD_S = 0.01
"""How long the load that laws see is held, at most: computing it costs more than half of a physics step."""
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
        lowest, largest: of the value where nothing was recorded: in training and on a stand-in each command draws its
            own between them, and everywhere else it is their mean.
    """

    channel: str
    column: int
    lowest: float
    largest: float

    @property
    def otherwise(self) -> float:
        """The value where nothing was recorded and nothing is drawn."""
        return 0.5 * (self.lowest + self.largest)


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
        each: those that exert forces.
        on_commands: those that delay or filter commands.
        settings: recorded columns, which follow the commands and the values per episode.
        reads_load: whether a law looks at the load of its joints.
        rubbing: degrees of freedom that effects give dry friction.
        document: the section `effects` as it was written.
    """

    each: tuple[Effect, ...]
    on_commands: tuple[CommandLaw, ...]
    settings: tuple[Setting, ...]
    inputs: int
    dofs: int
    reads_load: bool
    rubbing: tuple[int, ...]
    document: Mapping[str, Any] = field(hash=False)

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
            dofs = _columns(effect.dofs)
            joint = JointMotion(
                position=qpos[..., _columns(effect.qpos)],
                velocity=qvel[..., dofs],
                command=_clipped(xp, commands, effect),
                drive=drive[..., dofs],
                load=load[..., dofs],
                step_s=step_s,
            )
            made = law(xp, joint, **effect.completed(xp, values, params, settings))
            shape = joint.velocity
            if effect.actuators:
                drive = _added(drive, made.torque, shape, on_dofs)
                ctrl = _added(ctrl, made.torque, shape, on_actuators)
            else:
                torque = _added(torque, made.torque, shape, on_dofs)
                load = _added(load, made.torque, shape, on_dofs)
            damping = _added(damping, made.damping, shape, on_dofs)
            dry = _added(dry, made.dry_friction, shape, on_dofs)
        return Applied(ctrl, torque, damping, xp.maximum(dry, 0.0))

    def arguments(self, xp: Any, params: Array) -> list[tuple[Law, dict[str, Array | None]]]:
        """Each effect's law, and its arguments as far as parameters [..., P] say them: once a rollout."""
        return [(effect.function, effect.values(xp, params)) for effect in self.each]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all effects."""
        return tuple(each.name for each in (*self.each, *self.on_commands))

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


@cache
def _columns(indices: tuple[int, ...]) -> slice | list[int]:
    """Some columns of an array; those that lie side by side as a view, which costs a tenth of a copy."""
    first = indices[0]
    adjoining = indices == tuple(range(first, first + len(indices)))
    return slice(first, first + len(indices)) if adjoining else list(indices)


def _places(indices: tuple[int, ...], size: int) -> np.ndarray | None:
    """A matrix [J, size] with a 1 in each row; None where it would be the identity."""
    return None if indices == tuple(range(size)) else np.eye(size)[list(indices)]


def _added(total: Array, value: Array, shape: Array, places: np.ndarray | None) -> Array:
    """Add a law's result, a number or [..., 1 or J], in its places [J, n], None if each is in its own."""
    if isinstance(value, float) and value == 0.0:
        return total
    whole = value if np.shape(value) == shape.shape else value + 0.0 * shape
    return total + (whole if places is None else whole @ places)


def _clipped(xp: Any, commands: Array, effect: Effect) -> Array:
    """The commands of the actuators that an effect replaces, within their range."""
    if not effect.actuators:
        return 0.0
    own = commands[..., _columns(effect.actuators)]
    lower, upper = effect.command_range
    unlimited = lower == (-math.inf,) * len(lower) and upper == (math.inf,) * len(upper)
    return own if unlimited else xp.minimum(xp.maximum(own, np.array(lower)), np.array(upper))
