"""C MuJoCo with its contact solver run to the end: what MJX and its derivatives are compared with."""

from __future__ import annotations

import copy
import dataclasses

from rsr.scenarios import Scenario


def converged(scenario: Scenario) -> Scenario:
    """The same scenario with a contact solver that stops at rounding errors."""
    model = copy.copy(scenario.base_model)
    model.opt.tolerance = 1e-15
    model.opt.iterations = max(model.opt.iterations, 100)
    model.opt.ls_iterations = max(model.opt.ls_iterations, 50)
    return dataclasses.replace(scenario, base_model=model)
