"""A scenario's parameters [P] inside an MJX model: the same bindings as in C, as differentiable writes."""

from __future__ import annotations

import copy
import warnings
from operator import attrgetter

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
from mujoco import mjx
from mujoco.mjx._src import (
    sensor as _sensor,  # private: pinned to the version in pyproject.toml
    smooth as _smooth,
)

from rsr.common import ScenarioError
from rsr.scenarios import Changes, Scenario, lacking
from rsr.simulators.mjx.corrections import correct, refresh_constants, turning_bodies
from rsr.simulators.mjx.implicit import forward

LINE_SEARCH_ITERATIONS = 16
_ONLY_IN_C = ("geom_aabb",)


class Injector:
    """Makes MJX models from parameters. Refuses scenarios that MJX cannot simulate, naming the feature it lacks."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self._base = scenario.base_model
        # Derived constants cost a dense inverse in each step, so only where a parameter changes an inertia.
        self._refreshes = any(binding.moves_inertia for binding in scenario.bindings)
        for _, lacked in lacking(scenario, "mjx"):
            raise _lacks(lacked, scenario.name)
        self._turning = turning_bodies(self._base, scenario.bindings)
        self._sensor_columns = [column for each in scenario.observed for column in each.sensor_columns]
        template, self.data = _put(_converging(_with_all_rows(scenario)), scenario.name)
        # The rows of dry friction are made; how much of it there is say the MJCF, parameters and effects.
        self._template = template.replace(dof_frictionloss=jnp.asarray(self._base.dof_frictionloss))

    def model(self, values: jax.Array, per_episode: jax.Array | None = None) -> mjx.Model:
        """Write values [P], physical units, with those of an episode [C], and refresh derived constants."""
        model, given = self._template, self.scenario.nominal_per_episode if per_episode is None else per_episode
        for binding in self.scenario.bindings:
            model = _written(model, binding.changes(self._base, binding.value(values, given), model))
        return refresh_constants(model, self._base, self.data) if self._refreshes else model

    def load(self, model: mjx.Model, data: mjx.Data) -> jax.Array:
        """Forces [nv] that gravity and motion exert on the joints; 0 where no law looks at them."""
        if self.scenario.effects is None or not self.scenario.effects.reads_load:
            return jnp.zeros(self._base.nv)
        # The step computes the same again: XLA does it once.
        data = _smooth.com_pos(model, _smooth.kinematics(model, data))
        return -_smooth.rne(model, _smooth.com_vel(model, data)).qfrc_bias

    def driven(
        self, model: mjx.Model, data: mjx.Data, values: jax.Array, control: jax.Array, load: jax.Array
    ) -> tuple[mjx.Model, mjx.Data]:
        """Apply a control [nu + C] and what the effects make of it."""
        effects = self.scenario.effects
        if effects is None:
            return model, data.replace(ctrl=control[: self._base.nu])
        made = effects.forces(
            jnp, effects.arguments(jnp, values), values, control, data.qpos, data.qvel, load, self._base.opt.timestep
        )
        resisted = model.replace(
            dof_damping=model.dof_damping + made.damping, dof_frictionloss=model.dof_frictionloss + made.dry_friction
        )
        return resisted, data.replace(ctrl=made.ctrl, qfrc_applied=made.torque)

    def step(self, model: mjx.Model, data: mjx.Data) -> mjx.Data:
        """Advance one physics step as C does."""
        # Forces must be corrected between the contact solve and the integration.
        data = correct(model, self._base, forward(model, data), self._turning)
        if model.opt.integrator == mjx.IntegratorType.EULER:
            return mjx.euler(model, data)
        return mjx.implicit(model, data)

    def readings(self, model: mjx.Model, data: mjx.Data) -> jax.Array:
        """Readings of the channels' sensors in a state."""
        if not self._sensor_columns:
            return jnp.zeros(0)
        # `mjx.forward` leaves accelerations and forces out where nothing is constrained. Doing it twice costs nothing.
        return _sensor.sensor_acc(model, forward(model, data)).sensordata[np.array(self._sensor_columns)]

    def values(self, coordinates: jax.Array) -> jax.Array:
        """Physical units [P] of unconstrained coordinates [P]."""
        logarithmic = np.array([parameter.scale == "log" for parameter in self.scenario.space])
        steps = np.array([parameter.unit_step for parameter in self.scenario.space])
        # The inner `where` keeps exp of a linear coordinate from overflowing: its derivative would be NaN times 0.
        return jnp.where(logarithmic, jnp.exp(jnp.where(logarithmic, coordinates, 0.0)), coordinates * steps)


def _put(model: mujoco.MjModel, where: str) -> tuple[mjx.Model, mjx.Data]:
    """Convert a C model, or say which of its features MJX lacks."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of meshes with many faces, one by one
            converted = mjx.put_model(model)
        data = mjx.make_data(converted)
        if model.opt.cone == mujoco.mjtCone.mjCONE_ELLIPTIC and not data._impl.contact.dist.size:
            # MJX indexes elliptic contacts by a list that it cannot read when empty; without contacts, cones are alike.
            converted = converted.tree_replace({"opt.cone": mjx.ConeType.PYRAMIDAL})
        return converted, data
    except NotImplementedError as error:
        raise _lacks(str(error), where) from error


def _written(model: mjx.Model, changes: Changes) -> mjx.Model:
    """The model with changes written; what only C's collision filters read is no leaf of it."""
    leaves = {leaf: change for leaf, change in changes.items() if leaf not in _ONLY_IN_C}
    return model.tree_replace(
        {leaf: attrgetter(leaf)(model).at[index].set(values) for leaf, (index, values) in leaves.items()}
    )


def _lacks(feature: str, where: str) -> ScenarioError:
    return ScenarioError(
        got=feature.strip().rstrip("."),
        expected="features that MuJoCo MJX simulates and differentiates",
        where=f"scenario {where}, simulator mjx",
        next_step="Calibrate it with method `cmaes`, which needs no derivatives, or change the MJCF.",
    )


def _with_all_rows(scenario: Scenario) -> mujoco.MjModel:
    """The base model with dry friction wherever parameters or effects set it: MJX makes no rows for none."""
    model = copy.copy(scenario.base_model)
    if scenario.effects is not None:
        scenario.effects.prepare(model)
        model.dof_frictionloss[list(scenario.effects.rubbing)] = 1.0
    for binding in scenario.bindings:
        if (binding.element, binding.field) == ("joint", "friction_loss"):
            # Any positive value makes the rows; the binding writes the parameter over it.
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
