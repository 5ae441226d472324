"""MuJoCo's models of a scenario with and without the contact of its declared pair, finely and coarsely stepped."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace

import mujoco
import numpy as np

from rsr.scenarios import Scenario
from rsr.scenarios.built_in.strike import declared_collision

_COARSEST_S = 0.002
"""MuJoCo's default, for which most models of others are made."""
_NOTHING = 1e-9


@dataclass(frozen=True)
class PairModels:
    """MuJoCo with one set of parameters: without the pair's contact at both time steps, and with it at the fine one."""

    coarse: mujoco.MjModel
    fine: mujoco.MjModel
    touching: mujoco.MjModel

    @property
    def factor(self) -> int:
        return round(self.coarse.opt.timestep / self.fine.opt.timestep)


class PairContacts:
    """The contact of a scenario's declared pair, which can be switched off."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario, self.apart = scenario, _without(scenario)
        self._pairs, self._resting = _pairs(scenario), _resting(scenario)

    def models(self, values: np.ndarray) -> PairModels:
        """Compile for parameters [P]."""
        free = self.apart.model(values)
        # All but no impedance, spring or damper. A negative margin will not do: between meshes MuJoCo 3.17 measures
        # overlaps from the margin on, so that the contact acts all the same.
        free.pair_solimp[self._pairs, :2], free.pair_solref[self._pairs] = 0.0, -_NOTHING
        coarse = copy.copy(free)
        # The block lies on its table: how springy that is, a slide hardly feels, and it would ask for the fine step.
        coarse.pair_solref[self._resting, 1] = np.maximum(coarse.pair_solref[self._resting, 1], 1.0)
        coarse.opt.timestep *= coarsening(coarse, self._pairs, self._scenario.substeps)
        return PairModels(coarse, free, self._scenario.model(values))


def coarsening(model: mujoco.MjModel, pairs: np.ndarray, substeps: int) -> int:
    """Find how many time steps may be taken as one where the contacts of `pairs` do not act; it divides `substeps`.

    A contact of time constant t and damping ratio z oscillates at 1 / (t z): steps above half of t, or above t z, would
    make it unstable or other than it was.
    """
    acting = np.flatnonzero(model.geom_contype | model.geom_conaffinity)
    others = np.delete(np.arange(model.npair), pairs)
    references = np.concatenate([model.geom_solref[acting], model.pair_solref[others], model.eq_solref])
    if (references <= 0).any():  # stiffness and damping stated directly: nothing is known of their time
        return 1
    longest_s = min([_COARSEST_S, *(0.45 * references[:, 0] * np.minimum(1, 2 * references[:, 1]))])
    able = [count for count in range(1, substeps + 1) if substeps % count == 0]
    return max([1, *(count for count in able if count * model.opt.timestep <= longest_s)])


def _without(scenario: Scenario) -> Scenario:
    """The scenario with no other contact of the pair than a stated one, which can be switched off."""
    declared, base = declared_collision(scenario), scenario.base_model
    spec = scenario.spec()
    bodies = [base.body(base.geom_bodyid[base.geom(name).id]).name for name in (declared.striker, declared.struck)]
    # Excluded by bodies, since the geoms may also collide by their masks; stated pairs survive.
    spec.add_exclude(bodyname1=bodies[0], bodyname2=bodies[1])
    model = spec.compile()
    for option in ("timestep", "cone", "integrator", "tolerance"):  # what `structured` may have chosen
        setattr(model.opt, option, getattr(base.opt, option))
    model.pair_dim[:], model.geom_condim[:] = base.pair_dim, base.geom_condim
    return replace(scenario, base_model=model)


def _pairs(scenario: Scenario) -> np.ndarray:
    """Places of the contact pairs that the MJCF states for the two geoms."""
    declared, model = declared_collision(scenario), scenario.base_model
    wanted = sorted(model.geom(name).id for name in (declared.striker, declared.struck))
    return np.flatnonzero(
        (np.sort(np.column_stack([model.pair_geom1, model.pair_geom2]), axis=1) == wanted).all(axis=1)
    )


def _resting(scenario: Scenario) -> np.ndarray:
    """Places of the struck geom's other pairs, with what it lies on; those with a time constant and damping ratio."""
    model = scenario.base_model
    struck = model.geom(declared_collision(scenario).struck).id
    touches = (model.pair_geom1 == struck) | (model.pair_geom2 == struck)
    return np.setdiff1d(np.flatnonzero(touches & (model.pair_solref > 0).all(axis=1)), _pairs(scenario))
