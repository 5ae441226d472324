"""An adapted surrogate as a calibration like those of the other methods, in a folder from which it is loaded again."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from rsr.calibration import Calibration, Evidence, Prior, identifiability, save_calibration
from rsr.clash import Surrogate, load_adapted, save_adapted
from rsr.clash.tables import read_strikes, write_strikes
from rsr.clash.tuning import Predictor, Tuned, adapted, nominal
from rsr.scenarios import Scenario
from rsr.scenarios.strike import PARAMETERS, RecordedStrikes, Shape

ADAPTED, STRIKES = "adapted.json", "strikes.csv"
_LEAST_STD = 0.05
"""Sixteen starts that end in one place do not tell a friction to less than 5 %."""


def save_tuned(folder: Path, scenario: Scenario, tuned: Tuned, prior: Prior) -> Calibration:
    """Write calibration.json, the adapted model, and the strikes that it knows."""
    calibration = as_calibration(scenario, tuned, prior)
    save_calibration(calibration, folder)
    save_adapted(folder, tuned.model)
    write_strikes(folder / STRIKES, tuned.known)
    return calibration


def as_calibration(scenario: Scenario, tuned: Tuned, prior: Prior) -> Calibration:
    """Parameters with intervals and verdicts; what CLASH does not identify keeps what was believed of it."""
    space, shape = scenario.space, tuned.model.shape
    coordinates, std = prior.mean.copy(), prior.std.copy()
    data_std = identifiability.PRIOR_DOUBT * space.prior_std
    for place, name in enumerate(space.names):
        if name in PARAMETERS.names:
            row = PARAMETERS.names.index(name)
            value = np.clip(tuned.model.identified.values[row], space[name].lower, space[name].upper)
            coordinates[place] = space[name].to_coordinate(value)
            data_std[place] = max(_LEAST_STD, float(np.log(tuned.model.identified.spread[row])))
            std[place] = min(std[place], data_std[place])
    found = identifiability.Posterior(np.diag(std**2), data_std, degrees=10**6)
    values = np.clip(space.to_values(coordinates), space.lower, space.upper)
    before, after = tuned.before.figures(shape), tuned.after.figures(shape)
    estimates = identifiability.estimates(space, values, found)
    return Calibration(
        scenario=scenario.name,
        method="clash",
        estimates=estimates,
        covariance=found.covariance,
        status="converged" if after.velocity_m_s < before.velocity_m_s else "no improvement",
        evidence=Evidence(
            gap_before=before.gap_m,
            gap_after=after.gap_m,
            gap_unit="m",
            channels={
                "velocity_after": (before.velocity_m_s, after.velocity_m_s),
                "rest": (before.gap_m, after.gap_m),
                "rest_turn": (before.turn_rad, after.turn_rad),
            },
            fitted=tuned.fitted,
            held_out=tuned.held_out,
        ),
        warnings=tuple(identifiability.at_bound(estimates)),
    )


def predictor_in(folder: Path, surrogate: Surrogate) -> Predictor:
    """What a calibration folder predicts with; the surrogate itself where it was not adapted yet."""
    return adapted(load_adapted(folder)) if is_adapted(folder) else nominal(surrogate)


def known_in(folder: Path, shape: Shape) -> RecordedStrikes | None:
    """The strikes that the model in a folder was adapted to."""
    return strikes_in(folder, shape) if is_adapted(folder) else None


def strikes_in(folder: Path, shape: Shape) -> RecordedStrikes:
    """The same of a folder that does hold an adapted model."""
    return read_strikes(folder / STRIKES, shape, fewest=1)


def is_adapted(folder: Path) -> bool:
    return (folder / ADAPTED).is_file()
