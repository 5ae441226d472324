"""Contact laws as inputs of a network: one for what touches the floor, and one for what touches another body.

A network that was taught by teachers with many laws is told which one holds, as MuJoCo is told its parameters. So it
takes an identified teacher over without further training.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass

import numpy as np

from rsr.scenarios.two_cubes import ContactParameters

NUMBERS = ("mu", "d_0", "d_width", "width", "midpoint", "power", "time_constant", "damping_ratio")

_LOWER = np.array([0.10, 0.90, 0.95, 3e-4, 2e-3, 1.0, 0.004, 0.10])
_UPPER = np.array([0.60, 0.95, 0.99, 6e-3, 0.10, 4.0, 0.030, 1.20])
_LOG = np.array([False, False, False, True, True, False, True, True])
"""Over what laws are drawn: the part of the paper's Table II in which bodies neither stick nor sink in."""


@dataclass(frozen=True)
class Laws:
    """What contacts with the floor obey, and what contacts between bodies obey."""

    floor: ContactParameters
    bodies: ContactParameters

    @classmethod
    def same(cls, contact: ContactParameters) -> Laws:
        """One law for all contacts, as MuJoCo's identification finds it."""
        return cls(contact, contact)

    @property
    def coordinates(self) -> np.ndarray:
        """[2, 8], floor and bodies: each number between -1 and 1 over what networks are taught."""
        return np.stack([_coordinates(self.floor), _coordinates(self.bodies)])

    @classmethod
    def at(cls, coordinates: np.ndarray) -> Laws:
        """The laws with these coordinates [2, 8]."""
        floor, bodies = (_contact(row) for row in np.asarray(coordinates, float))
        return cls(floor, bodies)


def sample_laws(rng: np.random.Generator) -> Laws:
    """Draw laws for the floor and for bodies, independent of each other."""
    return Laws.at(rng.uniform(-1, 1, (2, len(NUMBERS))))


def _coordinates(contact: ContactParameters) -> np.ndarray:
    mu, solimp, solref = astuple(contact)
    lower, upper = _scaled(_LOWER), _scaled(_UPPER)
    return 2 * (_scaled(np.array([mu, *solimp, *solref])) - lower) / (upper - lower) - 1


def _contact(coordinates: np.ndarray) -> ContactParameters:
    lower, upper = _scaled(_LOWER), _scaled(_UPPER)
    values = lower + (coordinates + 1) / 2 * (upper - lower)
    mu, d_0, d_width, width, midpoint, power, time_constant, damping_ratio = np.where(
        _LOG, np.exp(np.where(_LOG, values, 0)), values
    ).tolist()
    return ContactParameters(mu, (d_0, d_width, width, midpoint, power), (time_constant, damping_ratio))


def _scaled(values: np.ndarray) -> np.ndarray:
    return np.where(_LOG, np.log(np.where(_LOG, values, 1)), values)
