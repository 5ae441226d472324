"""What each simulator, and so each method of calibration, can do: one table, asked before any work is done.

A row is something that a scenario may have. Where a simulator lacks it, the scenario is refused with the alternative,
or, for the methods that differentiate, derivatives come from differences in C. `rsr capabilities` prints the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import mujoco
import numpy as np

from rsr.common import ScenarioError

if TYPE_CHECKING:
    from rsr.scenarios.scenario import Scenario

SIMULATOR_OF = {"cmaes": "mujoco", "sysid": "mujoco", "mjx": "mjx", "adam": "mjx", "clash": "hybrid", "gnn": "gnn"}
"""Method of calibration -> the simulator that it searches with."""
SIMULATORS = tuple(dict.fromkeys(SIMULATOR_OF.values()))
_MJX_SENSORS = tuple(
    getattr(mujoco.mjtSensor, f"mjSENS_{name}")
    for name in (
        *("JOINTVEL", "TENDONPOS", "TENDONVEL", "ACTUATORPOS", "ACTUATORVEL", "BALLQUAT", "BALLANGVEL"),
        *("FRAMEPOS", "FRAMEQUAT", "FRAMEXAXIS", "FRAMEYAXIS", "FRAMEZAXIS", "FRAMELINVEL", "FRAMEANGVEL"),
        *("VELOCIMETER", "GYRO", "MAGNETOMETER", "SUBTREECOM", "SUBTREELINVEL", "SUBTREEANGMOM"),
        *("ACCELEROMETER", "FRAMELINACC", "FRAMEANGACC", "ACTUATORFRC", "JOINTACTFRC", "TENDONACTFRC"),
    )
)
"""Those with exact derivatives: none flows through contact forces, which touch, force and torque sensors read; and MJX
leaves some types at 0 without a word."""
MJX_LACKS_LEAVES = (
    *("actuator_armature", "actuator_damping", "actuator_dampingpoly", "cam_ipd", "geom_adhesion", "geom_surfacevel"),
    *("pair_adhesion", "tendon_width"),
)
"""Arrays of a C model that an MJX model has not."""


@dataclass(frozen=True)
class Capability:
    """A row of the table.

    Args:
        kind: field, effect, sensor, integrator, actuator, recording or scene.
        feature: what a scenario has, in words.
        can: simulators that can do it.
        used: what of it a scenario has, each in a few words.
        expected: what a simulator that lacks it expects instead.
        instead: what to do then.
    """

    kind: str
    feature: str
    can: tuple[str, ...]
    used: Callable[[Scenario], list[str]]
    expected: str
    instead: str


_OTHER = "Calibrate with another method, such as sysid or cmaes."
_NO_DERIVATIVES = "Calibrate it with method `cmaes`, which needs no derivatives, or change the MJCF."
_PHYSICS = ("mujoco", "mjx")


def _named(words: str, names: list[str]) -> list[str]:
    return [f"{words} ({', '.join(names)})"] if names else []


def _integrators(*wanted: mujoco.mjtIntegrator) -> Callable[[Scenario], list[str]]:
    def used(scenario: Scenario) -> list[str]:
        kind = mujoco.mjtIntegrator(scenario.base_model.opt.integrator)
        return [f"derivatives through the contact solves of integrator {kind.name[6:]}"] if kind in wanted else []

    return used


def _sensors(scenario: Scenario, differentiable: bool) -> list[str]:
    base, found = scenario.base_model, []
    for observed in scenario.observed:
        for column in observed.sensor_columns:
            index = int(np.searchsorted(base.sensor_adr, column, side="right")) - 1
            kind = mujoco.mjtSensor(base.sensor_type[index])
            if (kind in _MJX_SENSORS) == differentiable:
                found.append(f"sensor '{base.sensor(index).name}' of type {kind.name[7:].lower()}")
    return list(dict.fromkeys(found))


def _fields_that_mjx_lacks(scenario: Scenario) -> list[str]:
    written = [
        (each, leaf) for each in scenario.bindings for leaf in each.changes(scenario.base_model, np.float64(1.0))
    ]
    return [f"the field {each.field} of a {each.element}" for each, leaf in written if leaf in MJX_LACKS_LEAVES]


def _tendons_with_inertia(scenario: Scenario) -> list[str]:
    moved = scenario.base_model.ntendon and any(binding.moves_inertia for binding in scenario.bindings)
    return ["tendons together with a tunable mass, inertia or armature"] if moved else []


def _joints_that_are_not_free(scenario: Scenario) -> list[str]:
    base = scenario.base_model
    bound = np.flatnonzero(base.jnt_type != mujoco.mjtJoint.mjJNT_FREE)
    return _named("joints that are not free", [base.joint(index).name or str(index) for index in bound])


_ERRORS = "no parameters of sensors"
TABLE: tuple[Capability, ...] = (
    Capability("field", "parameters of the model", SIMULATORS, lambda s: [], "", ""),
    Capability(
        *("field", f"by MuJoCo's name: {', '.join(MJX_LACKS_LEAVES)}", ("mujoco",)),
        *(_fields_that_mjx_lacks, "", _NO_DERIVATIVES),
    ),
    Capability(
        *("field", "masses, inertias or armatures beside tendons", ("mujoco",)),
        *(_tendons_with_inertia, "", _NO_DERIVATIVES),
    ),
    Capability(
        *("effect", "laws of forces and of commands", _PHYSICS),
        lambda s: _named("effects", list(s.effects.names) if s.effects else []),
        "no effects, which only MuJoCo and MJX apply",
        _OTHER,
    ),
    Capability(
        *("sensor", "touch, force, torque and other types without derivatives", ("mujoco",)),
        *(lambda s: _sensors(s, differentiable=False), "channels of positions", _NO_DERIVATIVES),
    ),
    Capability(
        *("sensor", "gyro, accelerometer, poses, velocities, actuators' forces", _PHYSICS),
        *(lambda s: _sensors(s, differentiable=True), "channels of positions", _OTHER),
    ),
    Capability(
        *("sensor", "delay, gain and bias as parameters", _PHYSICS),
        lambda s: _named("parameters of sensors", [s.space.names[index] for index in s.sensor_parameters]),
        _ERRORS,
        _OTHER,
    ),
    Capability(
        *("actuator", "internal state (timeconst)", _PHYSICS),
        lambda s: ["actuators with internal state"] if s.base_model.na else [],
        "actuators without internal state",
        _OTHER,
    ),
    Capability(
        *("recording", "values per episode", _PHYSICS),
        lambda s: _named("values per episode", [each.name for each in s.per_episode]),
        "the same simulator for every recording",
        _OTHER,
    ),
    Capability("integrator", "Euler, implicitfast", ("mujoco", "mjx", "hybrid"), lambda s: [], "", ""),
    Capability(
        *("integrator", "RK4", ("mujoco", "hybrid")),
        *(_integrators(mujoco.mjtIntegrator.mjINT_RK4), "", _NO_DERIVATIVES),
    ),
    Capability(
        *("integrator", "implicit", ("mujoco", "hybrid")),
        *(_integrators(mujoco.mjtIntegrator.mjINT_IMPLICIT), "", _NO_DERIVATIVES),
    ),
    Capability(
        *("scene", "joints that are not free", ("mujoco", "mjx", "hybrid")),
        *(_joints_that_are_not_free, "free bodies alone, which nobody drives", _OTHER),
    ),
    Capability(
        *("scene", "no section `collision`", ("mujoco", "mjx", "gnn")),
        lambda s: ["no section `collision`"] if s.collision is None else [],
        "the pair of geoms that collide",
        "Declare it in the scenario's YAML file (docs/clash.md), or calibrate with another method.",
    ),
)
"""The table, a row a feature."""


def lacking(scenario: Scenario, simulator: str) -> Iterator[tuple[Capability, str]]:
    """Rows that a scenario needs and a simulator lacks, with what of the scenario needs them."""
    for row in TABLE:
        # A learned simulator of free bodies steps by itself: integrators are not asked of it.
        if simulator not in row.can and not (simulator == "gnn" and row.kind == "integrator"):
            yield from ((row, used) for used in row.used(scenario))


def check_simulated(scenario: Scenario, simulator: str, what: str) -> None:
    """Refuse a scenario with anything that a simulator lacks.

    Args:
        what: that it simulates, in words.

    Raises:
        ScenarioError: with what it lacks, and what to do.
    """
    for row, used in lacking(scenario, simulator):
        expected = f"{row.expected or 'a scenario without it'}, for a simulator of {what}"
        raise ScenarioError(got=used, expected=expected, where=f"scenario {scenario.name}", next_step=row.instead)


def check_method(scenario: Scenario, method: str, sensitivity: str = "mjx") -> None:
    """Refuse, before any work, a scenario with anything that a method of calibration cannot do.

    Args:
        sensitivity: of the methods that differentiate; all but `mjx` fall back on differences.

    Raises:
        ScenarioError: with what the method lacks, and another that has it.
    """
    simulator = SIMULATOR_OF.get(method, "mujoco")
    if simulator == "mjx" and sensitivity != "mjx":
        return
    for row, used in lacking(scenario, simulator):
        raise ScenarioError(
            got=used,
            expected=f"what method {method} can do (`rsr capabilities` lists it)",
            where=f"scenario {scenario.name}, method {method}",
            next_step=row.instead,
        )


def cells() -> list[tuple[str, ...]]:
    """The table in words: kind, feature, and what each simulator does."""
    return [(row.kind, row.feature, *(_cell(row, simulator) for simulator in SIMULATORS)) for row in TABLE]


def headings() -> tuple[str, ...]:
    """Headings of `cells`: each simulator with its methods."""
    methods = {each: [name for name, owner in SIMULATOR_OF.items() if owner == each] for each in SIMULATORS}
    return ("", "a scenario has", *(f"{', '.join(methods[each])} ({each})" for each in SIMULATORS))


def _cell(row: Capability, simulator: str) -> str:
    if simulator == "gnn" and row.kind == "integrator":
        return "its own"
    if simulator in row.can:
        return "exact derivatives" if simulator == "mjx" and "delay" not in row.feature else "yes"
    return "by differences" if simulator == "mjx" else "no"
