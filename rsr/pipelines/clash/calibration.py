"""An adapted model of collisions as a calibration like those of other methods, in one folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from rsr.calibration import Calibration, Evidence, Prior, forgetful, save_calibration
from rsr.calibration.uncertainty import identifiability
from rsr.learned.clash import (
    Adapted,
    KnownBlock,
    Predictor,
    Tuned,
    adapted,
    load_adapted,
    nominal,
    read_strikes,
    reproducible,
    save_adapted,
    strikes_of,
    tune,
    write_strikes,
)
from rsr.scenarios import Scenario
from rsr.scenarios.built_in.strike import PARAMETERS, RecordedStrikes, Shape
from rsr.sessions import Session

ADAPTED, STRIKES = "adapted.json", "strikes.csv"
_LEAST_STD = 0.05
"""Sixteen starts that end in one place do not tell a friction to less than 5 %."""


def adapt_to(
    scenario: Scenario,
    sessions: tuple[Session, ...],
    base: KnownBlock,
    prior: Prior,
    fit: int,
    seed: int,
    folder: Path,
    previous: Path,
) -> Calibration:
    """Adapt to the first `fit` strikes of the sessions and to those that the model in `previous` knows.

    Writes calibration.json, the adapted model, and the strikes that it knows now.
    """
    shape = base.shape
    recordings = strikes_of(scenario, sessions)
    before = predictor_in(previous, base)
    earlier = strikes_in(previous, shape) if is_adapted(previous) else None
    with reproducible(seed):  # whatever the machine's number of cores
        tuned = tune(base, recordings, fit, before, earlier, seed)
        calibration = as_calibration(scenario, tuned, prior)
    save_calibration(calibration, folder)
    save_adapted(folder, tuned.model)
    write_strikes(folder / STRIKES, tuned.known)
    return calibration


def as_calibration(scenario: Scenario, tuned: Tuned, prior: Prior) -> Calibration:
    """Parameters with intervals and verdicts; those that CLASH does not identify keep their prior."""
    space, shape, prior = scenario.space, tuned.model.shape, forgetful(prior)
    coordinates, std = prior.mean.copy(), prior.std.copy()
    data_std = identifiability.PRIOR_INFLATION * space.prior_std
    for name, (value, spread) in _identified(tuned.model).items():
        if name in space.names:
            place = space.names.index(name)
            coordinates[place] = space[name].to_coordinate(np.clip(value, space[name].lower, space[name].upper))
            # The spread is a ratio, highest over lowest, so its logarithm is a width in the coordinates of a scale.
            data_std[place] = max(_LEAST_STD, float(np.log(spread)))
            std[place] = min(std[place], data_std[place])
    # Diagonal: sixteen end points say how far each parameter may go, not how they go together.
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
        warnings=(*identifiability.at_bound_warnings(estimates), *_left_out(tuned)),
    )


def _identified(model: Adapted) -> dict[str, tuple[float, float]]:
    """Parameters of MuJoCo that were identified, and their spreads: without a surrogate, how the block slides alone."""
    if model.identified is not None:
        return {
            name: (float(value), float(spread))
            for name, value, spread in zip(
                PARAMETERS.names, model.identified.values, model.identified.spread, strict=True
            )
        }
    return {} if model.sliding is None else {"ground_friction": (model.sliding.friction, 1.0)}


def _left_out(tuned: Tuned) -> tuple[str, ...]:
    """Name the strikes that nothing was fitted to, by their rows in the file of known strikes."""
    if not tuned.model.rejected:
        return ()
    rows = ", ".join(str(row + 1) for row in tuned.model.rejected)
    return (f"left out as glitches, since the other strikes contradict them: rows {rows} of {STRIKES}",)


def predictor_in(folder: Path, base: KnownBlock) -> Predictor:
    """Load the model of a calibration folder; what is said before any recording where none was adapted yet."""
    return adapted(load_adapted(folder)) if is_adapted(folder) else nominal(base)


def strikes_in(folder: Path, shape: Shape) -> RecordedStrikes:
    """The strikes that the model in a folder was adapted to."""
    return read_strikes(folder / STRIKES, shape, fewest=1)


def is_adapted(folder: Path) -> bool:
    return (folder / ADAPTED).is_file()
