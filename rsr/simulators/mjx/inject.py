"""A scenario's parameters [P] inside an MJX model: the same bindings as in C, as differentiable writes."""

from __future__ import annotations

import copy

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
from mujoco import mjx

from rsr.errors import ScenarioError
from rsr.scenarios import Scenario
from rsr.simulators.mjx.constants import refresh_constants
from rsr.simulators.mjx.gyroscopic import correct, turning_bodies
from rsr.simulators.mjx.implicit import forward
from rsr.simulators.mjx.writers import CHANGES_INERTIA, WRITERS, spread

LINE_SEARCH_ITERATIONS = 16


class Injector:
    """Makes MJX models from parameters. Refuses scenarios that MJX cannot simulate, naming the feature it lacks."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self._base = scenario.base_model
        self._refreshes = any((binding.element, binding.field) in CHANGES_INERTIA for binding in scenario.bindings)
        _check_fields(scenario, self._refreshes)
        self._turning = turning_bodies(self._base, scenario.bindings)
        self._template, self.data = _put(_converging(_with_all_rows(scenario)), scenario.name)

    def model(self, values: jax.Array) -> mjx.Model:
        """Write values [P], physical units, and refresh derived constants."""
        model = self._template
        for binding in self.scenario.bindings:
            written = spread(values[binding.parameter], binding.read(self._base), binding.mode)
            write = WRITERS[binding.element, binding.field]
            model = model.tree_replace(write(model, self._base, np.array(binding.ids), written))
        return refresh_constants(model, self._base, self.data) if self._refreshes else model

    def step(self, model: mjx.Model, data: mjx.Data) -> mjx.Data:
        """Advance one physics step as C does."""
        data = correct(model, self._base, forward(model, data), self._turning)
        if model.opt.integrator == mjx.IntegratorType.EULER:
            return mjx.euler(model, data)
        return mjx.implicit(model, data)

    def values(self, coordinates: jax.Array) -> jax.Array:
        """Physical units [P] of unconstrained coordinates [P]."""
        logarithmic = np.array([parameter.scale == "log" for parameter in self.scenario.space])
        steps = np.array([parameter.unit_step for parameter in self.scenario.space])
        return jnp.where(logarithmic, jnp.exp(jnp.where(logarithmic, coordinates, 0.0)), coordinates * steps)


def _put(model: mujoco.MjModel, where: str) -> tuple[mjx.Model, mjx.Data]:
    """Convert a C model, or say which of its features MJX lacks."""
    if model.opt.integrator == mujoco.mjtIntegrator.mjINT_RK4:
        raise _lacks("derivatives through the contact solves of integrator RK4", where)
    try:
        converted = mjx.put_model(model)
        return converted, mjx.make_data(converted)
    except NotImplementedError as error:
        raise _lacks(str(error), where) from error


def _check_fields(scenario: Scenario, refreshes: bool) -> None:
    if refreshes and scenario.base_model.ntendon:
        raise _lacks("tendons together with a tunable mass, inertia or armature", scenario.name)
    for binding in scenario.bindings:
        if (binding.element, binding.field) not in WRITERS:
            raise _lacks(f"a parameter that sets '{binding.field}' of '{binding.element}'", scenario.name)


def _lacks(feature: str, where: str) -> ScenarioError:
    return ScenarioError(
        got=feature.strip().rstrip("."),
        expected="features that MuJoCo MJX simulates and differentiates",
        where=f"scenario {where}, simulator mjx",
        next_step="Calibrate it with method `cmaes`, which needs no derivatives, or change the MJCF.",
    )


def _with_all_rows(scenario: Scenario) -> mujoco.MjModel:
    """The base model with dry friction wherever a parameter sets it: MJX makes no constraint rows for none."""
    model = copy.copy(scenario.base_model)
    for binding in scenario.bindings:
        if (binding.element, binding.field) == ("joint", "friction_loss"):
            model.dof_frictionloss[np.isin(model.dof_jntid, binding.ids)] = 1.0
    return model


def _converging(model: mujoco.MjModel) -> mujoco.MjModel:
    """Let the contact solver run until it is done: a derivative at the solution needs the solution.

    MJX measures progress relative to the whole robot's inertia, and so leaves a light object on the table short of it.
    The line search inside never finds its own, far finer tolerance met and always runs to its last iteration: 16 of
    them lead to the same solution as 50, to rounding errors, in half the time.
    """
    model.opt.tolerance = min(model.opt.tolerance, 1e-12)
    model.opt.iterations = max(model.opt.iterations, 50)
    model.opt.ls_iterations = LINE_SEARCH_ITERATIONS
    return model
