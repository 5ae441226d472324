"""Choices that no number can stand for: friction cone, contact dimension, integrator, solver tolerance.

A scenario lists under `structure` what is to be compared; a calibration stores what won, and whoever simulates with
that calibration applies it (`structured`). The friction cone alone can matter more than all numbers together.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import mujoco

from rsr.common import ScenarioError
from rsr.scenarios.scenario import Scenario

Word = str | int | float
Choices = tuple[tuple[str, tuple[Word, ...]], ...]
"""Option -> the values to compare."""

_CONES = {"pyramidal": mujoco.mjtCone.mjCONE_PYRAMIDAL, "elliptic": mujoco.mjtCone.mjCONE_ELLIPTIC}
_INTEGRATORS = {
    "Euler": mujoco.mjtIntegrator.mjINT_EULER,
    "RK4": mujoco.mjtIntegrator.mjINT_RK4,
    "implicit": mujoco.mjtIntegrator.mjINT_IMPLICIT,
    "implicitfast": mujoco.mjtIntegrator.mjINT_IMPLICITFAST,
}
_CONDIMS = (1, 3, 4, 6)


def _set_cone(model: mujoco.MjModel, value: Any) -> None:
    model.opt.cone = _CONES[value]


def _set_integrator(model: mujoco.MjModel, value: Any) -> None:
    model.opt.integrator = _INTEGRATORS[value]


def _set_tolerance(model: mujoco.MjModel, value: Any) -> None:
    model.opt.tolerance = float(value)


def _set_condim(model: mujoco.MjModel, value: Any) -> None:
    """Of all contact pairs, and of the geoms that may touch without one."""
    model.pair_dim[:] = value
    model.geom_condim[:] = value


_WRITERS: dict[str, Callable[[mujoco.MjModel, Any], None]] = {
    "cone": _set_cone,
    "condim": _set_condim,
    "integrator": _set_integrator,
    "tolerance": _set_tolerance,
}
_ALLOWED: dict[str, tuple[Word, ...] | None] = {
    "cone": tuple(_CONES),
    "condim": _CONDIMS,
    "integrator": tuple(_INTEGRATORS),
    "tolerance": None,
}
"""Values of each option; None: any number above 0 and below 1."""


def parse_structure(entry: Any, where: str) -> Choices:
    """Read `structure:` of a scenario's YAML file."""
    if not isinstance(entry, Mapping):
        raise _refused(f"{type(entry).__name__} instead of a mapping", ", ".join(_WRITERS), where)
    return tuple((option, _values(option, values, where)) for option, values in entry.items())


def _values(option: str, values: Any, where: str) -> tuple[Word, ...]:
    if option not in _WRITERS:
        raise _refused(f"'{option}'", f"one of {', '.join(_WRITERS)}", where)
    listed = values if isinstance(values, list) else [values]
    for value in listed:
        _check(option, value, f"{where}, {option}")
    return tuple(float(value) for value in listed) if option == "tolerance" else tuple(listed)


def _check(option: str, value: Any, where: str) -> None:
    allowed = _ALLOWED[option]
    if allowed is not None and value not in allowed:
        raise _refused(f"'{value}'", f"one of {', '.join(map(str, allowed))}", where)
    if allowed is None:
        try:
            fits = 0.0 < float(value) < 1.0
        except (TypeError, ValueError):
            fits = False
        if not fits:
            raise _refused(f"'{value}'", "a number above 0 and below 1", where)


def candidates(choices: Choices) -> list[dict[str, Word]]:
    """All combinations, the first values of all options first."""
    options = [option for option, _ in choices]
    return [dict(zip(options, each, strict=True)) for each in itertools.product(*(values for _, values in choices))]


def structured(scenario: Scenario, chosen: Mapping[str, Word]) -> Scenario:
    """The scenario with choices applied to its model; the same object where there are none.

    Example:
        >>> structured(load_scenario("cube_toss"), {"cone": "pyramidal"})  # doctest: +SKIP
    """
    if not chosen:
        return scenario
    model = copy.copy(scenario.base_model)
    for option, value in chosen.items():
        _values(option, value, "structure")
        _WRITERS[option](model, value)
    return replace(scenario, base_model=model)


def _refused(got: str, expected: str, where: str) -> ScenarioError:
    return ScenarioError(
        got=got,
        expected=expected,
        where=where,
        next_step="Correct `structure` in the scenario's YAML file; docs/scenarios.md explains every key.",
    )
