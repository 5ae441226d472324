"""Forward dynamics whose derivative passes through the *converged* contact solve.

MJX's solver is a loop. Reverse mode through it raises, forward mode differentiates every iteration (slow, and NaN with
the elliptic cone), and stopping after one iteration differentiates an unconverged simulator. At the solution, though,
the gradient g(a, x) of the solver's cost vanishes, and the implicit function theorem gives the derivative of the
accelerations a with respect to everything else x:

    da/dx = -H^-1 dg/dx,    H = dg/da.

So MJX's own solver finds the solution, with derivatives stopped, and one Newton step from there, with H held fixed,
gives the derivative; and takes the error of the value squared.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import jax
from mujoco import mjx
from mujoco.mjx._src import collision_driver as _collision
from mujoco.mjx._src import forward as _forward  # private: pinned to the version in pyproject.toml
from mujoco.mjx._src import solver as _solver
from mujoco.mjx._src import support as _support

from rsr.simulators.mjx.collisions import EXACT

_stock_solve = _solver.solve
_patching = threading.RLock()


def forward(model: mjx.Model, data: mjx.Data) -> mjx.Data:
    """Compute accelerations like `mjx.forward`: derivatives through the converged solve, boxes collided as in C."""
    with _replacing(solve):
        return mjx.forward(model, data)


def solve(model: mjx.Model, data: mjx.Data) -> mjx.Data:
    """Solve for constrained accelerations like `mjx.solve`, differentiable in both modes and for both cones."""
    solved = _solve_values(_stopped(model), _stopped(data))
    found = jax.lax.stop_gradient(solved.qacc)
    acceleration = found - _newton_step(model, data.replace(qacc=found))
    # At the solution the constraint forces are what the smooth ones leave to do.
    force = _support.mul_m(model, data, acceleration) - data.qfrc_smooth
    return data.tree_replace(
        {
            "qacc": acceleration,
            "qfrc_constraint": force,
            "_impl.efc_force": jax.lax.stop_gradient(solved._impl.efc_force),
        }
    )


def _newton_step(model: mjx.Model, data: mjx.Data) -> jax.Array:
    """H^-1 g at data.qacc [nv], H without derivative: g carries the derivative with respect to model and data."""
    newton = model.replace(opt=model.opt.replace(solver=mjx.SolverType.NEWTON))
    context = _solver.Context.create(newton, data, grad=False)
    gradient = context.Ma - data.qfrc_smooth - context.qfrc_constraint
    still = _stopped(data)
    # The solver forms the gradient as Ma - smooth - constraint, and this context makes that our g.
    frozen = _stopped(context)
    frozen = frozen.replace(Ma=gradient + still.qfrc_smooth + frozen.qfrc_constraint)
    return _solver._update_gradient(_stopped(newton), still, frozen).Mgrad


def _solve_values(model: mjx.Model, data: mjx.Data) -> mjx.Data:
    """MJX's solve, leaving its line search when that is done: the stock one always runs to its last iteration."""
    original = _solver._while_loop_scan
    with _patching:
        _solver._while_loop_scan = lambda condition, body, start, _: jax.lax.while_loop(condition, body, start)
        try:
            return _stock_solve(model, data)
        finally:
            _solver._while_loop_scan = original


@contextmanager
def _replacing(solver: Any) -> Iterator[None]:
    """While a step is traced, `mjx.forward` calls another solver and exact collisions."""
    with _patching:
        stock_solver, stock_collisions = _forward.solver.solve, dict(_collision._COLLISION_FUNC)
        _forward.solver.solve = solver
        _collision._COLLISION_FUNC.update(EXACT)
        try:
            yield
        finally:
            _forward.solver.solve = stock_solver
            _collision._COLLISION_FUNC.update(stock_collisions)


def _stopped(tree: Any) -> Any:
    return jax.tree.map(lambda leaf: jax.lax.stop_gradient(leaf) if isinstance(leaf, jax.Array) else leaf, tree)
