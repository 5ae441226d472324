"""All ways to predict strikes from a few recorded ones, side by side; each is a function to velocities after."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from rsr.clash.bases import Base, grid_search, mujoco_base, no_base, surrogate_base, untrained_base
from rsr.clash.finetuning import finetune, finetune_gated
from rsr.clash.identification import Identified, identify, identify_as_paper
from rsr.clash.law import fit_law
from rsr.clash.prediction import blend, correct
from rsr.clash.presets import PRESETS
from rsr.clash.surrogate import Surrogate
from rsr.scenarios.strike import RecordedStrikes
from rsr.simulators.strikes import Collider


@dataclass(frozen=True)
class Bench:
    """What the methods are given.

    Args:
        surrogates: by name of their preset.
        ground_friction: known from how blocks slid, or None.
    """

    surrogates: dict[str, Surrogate]
    recorded: RecordedStrikes
    ground_friction: float | None
    seed: int = 0

    @property
    def default(self) -> Surrogate:
        return self.surrogates["default"]

    @cached_property
    def identified(self) -> Identified:
        """Parameters through the default surrogate; searched for once, whoever asks."""
        return identify(self.default, self.recorded, self.ground_friction, self.seed)

    @cached_property
    def mujoco(self) -> Base:
        """MuJoCo with the parameters that a grid search found."""
        collide = Collider(self.default.shape, self.default.definition)
        return mujoco_base(collide, grid_search(collide, self.recorded, self.ground_friction, self.seed))


def _adapted(bench: Bench) -> Base:
    return blend(bench.default.shape, (_identified(bench), _analytic(bench)), bench.recorded)


def _identified_corrected(bench: Bench) -> Base:
    return correct(bench.default.shape, _identified(bench), bench.recorded)


def _identified(bench: Bench) -> Base:
    return surrogate_base(bench.default, bench.identified.values)


def _grid(bench: Bench) -> Base:
    return bench.mujoco


def _grid_corrected(bench: Bench) -> Base:
    return correct(bench.default.shape, bench.mujoco, bench.recorded)


def _analytic(bench: Bench) -> Base:
    mass_kg = bench.default.definition.striker_mass_kg
    return fit_law(bench.default.shape, bench.recorded, bench.ground_friction, mass_kg)


def _mjx(bench: Bench) -> Base:
    from rsr.clash.mjx_base import mjx_base  # JAX is for those who ask for it

    return mjx_base(bench.default.shape, bench.recorded, bench.ground_friction, bench.default.definition)


def _analytic_corrected(bench: Bench) -> Base:
    return correct(bench.default.shape, _analytic(bench), bench.recorded)


def _residual_alone(bench: Bench) -> Base:
    strengths = (1.0, 2.0, 4.0, 8.0)
    return correct(bench.default.shape, no_base, bench.recorded, strengths)


def _untrained(bench: Bench) -> Base:
    return untrained_base(bench.default.shape, bench.recorded, PRESETS["default"], seed=bench.seed)


def _untrained_normalised(bench: Bench) -> Base:
    return untrained_base(bench.default.shape, bench.recorded, PRESETS["normalised"], seed=bench.seed)


def _finetuned(bench: Bench) -> Base:
    found = bench.identified.values
    return surrogate_base(finetune_gated(bench.default, bench.recorded, found)[0], found)


def _as_paper(preset: str) -> Callable[[Bench], Base]:
    def method(bench: Bench) -> Base:
        surrogate = bench.surrogates[preset]
        found = identify_as_paper(surrogate, bench.recorded, bench.ground_friction).values
        return surrogate_base(finetune(surrogate, bench.recorded, found), found)

    return method


METHODS: dict[str, Callable[[Bench], Base]] = {
    "adapted": _adapted,
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
"""`adapted` is the default of `rsr clash adapt`; the others are there to compare. `paper`: its recipe as it stands."""

SLOW: dict[str, Callable[[Bench], Base]] = {"mjx": _mjx}
"""Compared only where somebody asks: compiling takes minutes, and not every block will do."""

NEEDS = {"paper": "paper", "paper_normalised": "normalised"}
"""The preset of the surrogate that a method needs, where it is not `default`."""
