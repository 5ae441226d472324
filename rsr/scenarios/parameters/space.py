"""Tunable parameters: each owns its unit, bounds, scale and prior, and knows its unconstrained coordinate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from rsr.common import ScenarioError, chosen

_ROUNDING = 1e-12


@dataclass(frozen=True)
class Parameter:
    """One number of the simulator that recordings may identify.

    The unconstrained coordinate is log(value) for `scale="log"` and value / unit_step for `scale="linear"`,
    so that optimisers see comparable steps.

    Args:
        nominal: the value before any data.
        lower, upper: hard bounds, same unit as the value.
        scale: "log" or "linear".
        prior_std: standard deviation of the prior around nominal, in the unconstrained coordinate.
        unit_step: for linear parameters, the value that counts as one unit.
    """

    name: str
    nominal: float
    lower: float
    upper: float
    unit: str
    prior_std: float
    scale: Literal["log", "linear"] = "log"
    unit_step: float = 1.0
    description: str = ""

    def to_coordinate(self, value: np.ndarray | float) -> np.ndarray:
        value = np.asarray(value, dtype=float)
        return np.log(value) if self.scale == "log" else value / self.unit_step

    def to_value(self, coordinate: np.ndarray | float) -> np.ndarray:
        coordinate = np.asarray(coordinate, dtype=float)
        return np.exp(coordinate) if self.scale == "log" else coordinate * self.unit_step


@dataclass(frozen=True)
class ParameterSpace:
    """An ordered set of parameters; vectors [P] follow this order."""

    parameters: tuple[Parameter, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(parameter.name for parameter in self.parameters)

    def __len__(self) -> int:
        return len(self.parameters)

    def __iter__(self):
        return iter(self.parameters)

    def __getitem__(self, name: str) -> Parameter:
        named = {parameter.name: parameter for parameter in self.parameters}
        advice = "Correct the name or add the parameter to the scenario's YAML file."
        return chosen(name, named, "parameter", "parameter space", advice)

    @property
    def nominal(self) -> np.ndarray:
        return np.array([parameter.nominal for parameter in self])

    @property
    def lower(self) -> np.ndarray:
        return np.array([parameter.lower for parameter in self])

    @property
    def upper(self) -> np.ndarray:
        return np.array([parameter.upper for parameter in self])

    @property
    def prior_std(self) -> np.ndarray:
        """[P], in unconstrained coordinates."""
        return np.array([parameter.prior_std for parameter in self])

    def to_coordinates(self, values: np.ndarray) -> np.ndarray:
        """Map values [..., P] to unconstrained coordinates [..., P]."""
        columns = np.moveaxis(np.asarray(values, float), -1, 0)
        return np.stack([p.to_coordinate(column) for p, column in zip(self, columns, strict=True)], axis=-1)

    def to_values(self, coordinates: np.ndarray) -> np.ndarray:
        """Map unconstrained coordinates [..., P] back to values [..., P]."""
        columns = np.moveaxis(np.asarray(coordinates, float), -1, 0)
        return np.stack([p.to_value(column) for p, column in zip(self, columns, strict=True)], axis=-1)

    def vector(self, values: Mapping[str, float]) -> np.ndarray:
        """Build the vector [P] from a mapping; names left out keep their nominal value."""
        for name in values:
            self[name]
        vector = np.array([values.get(parameter.name, parameter.nominal) for parameter in self], float)
        self.check(vector)
        return vector

    def mapping(self, vector: Iterable[float]) -> dict[str, float]:
        return {name: float(value) for name, value in zip(self.names, vector, strict=True)}

    def check(self, vector: np.ndarray) -> None:
        """Raise ScenarioError where a value is not finite or outside its bounds."""
        for parameter, value in zip(self, vector, strict=True):
            rounding = _ROUNDING * (parameter.upper - parameter.lower)  # of a bound that went through coordinates
            if not np.isfinite(value) or not parameter.lower - rounding <= value <= parameter.upper + rounding:
                raise ScenarioError(
                    got=f"{parameter.name} = {value:.6g} {parameter.unit}",
                    expected=f"a value in [{parameter.lower:.6g}, {parameter.upper:.6g}]",
                    where="parameters",
                    next_step="Correct the value, or widen the bounds in the scenario's YAML file if they are wrong.",
                )
