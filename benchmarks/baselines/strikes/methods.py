"""Methods that predict strikes from a few recorded ones, side by side: each a function to velocities after."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rsr.common import one_thread
from rsr.learned.clash import (
    BaseModel,
    Blended,
    Corrected,
    IdentifiedImpact,
    StruckBlock,
    Surrogate,
    adapt,
    correct,
    fit_law,
    identify,
    surrogate_base,
)
from rsr.scenarios.built_in.strike import RecordedStrikes, Strikes
from rsr.simulators import Collider

from .finetuning import finetune, finetune_gated
from .mujoco import grid_search, mujoco_base
from .paper import PaperSurrogate, identify_as_paper, network_base, untrained, untrained_normalised


@dataclass(frozen=True)
class MethodInputs:
    """Everything that a method may fit to.

    Args:
        papers: surrogates of the paper's recipes, by name; methods that need none do without.
        ground_friction: known from how blocks slid, or None.
    """

    surrogate: Surrogate
    papers: dict[str, PaperSurrogate]
    recorded: RecordedStrikes
    ground_friction: float | None
    seed: int = 0

    @cached_property
    def identified(self) -> IdentifiedImpact:
        """Parameters through the surrogate; searched for once, whoever asks."""
        return identify(self.surrogate, self.recorded, self.ground_friction, self.seed)

    @cached_property
    def mujoco(self) -> BaseModel:
        """MuJoCo with the parameters that a grid search found."""
        collide = Collider(self.surrogate.shape, self.surrogate.definition)
        return mujoco_base(collide, grid_search(collide, self.recorded, self.ground_friction, self.seed))


def no_base(strikes: Strikes) -> np.ndarray:
    """Predict rest: all is left to a residual that stands alone."""
    return np.zeros((len(strikes), 3))


def _adapted(inputs: MethodInputs) -> Blended:
    block = StruckBlock(inputs.surrogate.shape, inputs.surrogate.definition)
    return adapt(block, inputs.recorded, inputs.seed).collision


def _adapted_with_surrogate(inputs: MethodInputs) -> Blended:
    return adapt(inputs.surrogate, inputs.recorded, inputs.seed).collision


def _identified(inputs: MethodInputs) -> BaseModel:
    return surrogate_base(inputs.surrogate, inputs.identified.values)


def _identified_corrected(inputs: MethodInputs) -> Corrected:
    return correct(inputs.surrogate.shape, _identified(inputs), inputs.recorded)


def _grid(inputs: MethodInputs) -> BaseModel:
    return inputs.mujoco


def _grid_corrected(inputs: MethodInputs) -> Corrected:
    return correct(inputs.surrogate.shape, inputs.mujoco, inputs.recorded)


def _analytic(inputs: MethodInputs) -> BaseModel:
    mass_kg = inputs.surrogate.definition.striker_mass_kg
    return fit_law(inputs.surrogate.shape, inputs.recorded, inputs.ground_friction, mass_kg)


def _analytic_corrected(inputs: MethodInputs) -> Corrected:
    return correct(inputs.surrogate.shape, _analytic(inputs), inputs.recorded)


def _residual_alone(inputs: MethodInputs) -> Corrected:
    # Strengths up to eight: the process must explain whole velocities, not the tenths that a base leaves over.
    return correct(inputs.surrogate.shape, no_base, inputs.recorded, (1.0, 2.0, 4.0, 8.0))


def _untrained(inputs: MethodInputs) -> BaseModel:
    return untrained(inputs.recorded, inputs.surrogate.shape, inputs.seed)


def _untrained_normalised(inputs: MethodInputs) -> BaseModel:
    return untrained_normalised(inputs.recorded, inputs.surrogate.shape, inputs.seed)


def _finetuned(inputs: MethodInputs) -> BaseModel:
    found = inputs.identified.values
    return surrogate_base(finetune_gated(inputs.surrogate, inputs.recorded, found)[0], found)


def _as_paper(recipe: str) -> Callable[[MethodInputs], BaseModel]:
    def method(inputs: MethodInputs) -> BaseModel:
        surrogate = inputs.papers[recipe]
        with one_thread():
            found = identify_as_paper(surrogate, inputs.recorded, inputs.ground_friction).values
            return network_base(finetune(surrogate, inputs.recorded, found), found)

    return method


METHODS: dict[str, Callable[[MethodInputs], BaseModel]] = {
    "adapted": _adapted,
    "with_surrogate": _adapted_with_surrogate,
    "surrogate_residual": _identified_corrected,
    "identified": _identified,
    "finetuned": _finetuned,
    "paper": _as_paper("paper"),
    "paper_normalised": _as_paper("normalised"),
    "mujoco_grid": _grid,
    "mujoco_grid_residual": _grid_corrected,
    "analytic": _analytic,
    "analytic_residual": _analytic_corrected,
    "residual_alone": _residual_alone,
    "untrained": _untrained,
    "untrained_normalised": _untrained_normalised,
}
"""`adapted` is `rsr clash adapt --shape`, `with_surrogate` is with `--surrogate`; the others are there to compare."""
