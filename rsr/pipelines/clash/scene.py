"""An adapted scene as a calibration like those of other methods."""

from __future__ import annotations

import numpy as np

from rsr.calibration import Calibration, Evidence
from rsr.calibration.uncertainty import identifiability
from rsr.learned.clash import AdaptedScene, Comparison


def scene_calibration(model: AdaptedScene, compared: Comparison) -> Calibration:
    """The fitted parameters, with the evidence of a comparison: RMS errors of the velocity after, in m/s.

    Nothing is said of their uncertainty: they keep the width of their prior, and what they leave over has its own.
    """
    scenario = model.scene.scenario
    space, weights = scenario.space, np.array([1.0, 1.0, model.scene.shape.gyration_m])
    std = identifiability.PRIOR_INFLATION * space.prior_std
    found = identifiability.Posterior(np.diag(space.prior_std**2), std, degrees=10**6)
    missed = {
        name: float(
            np.sqrt((((compared[name].predicted - compared.judged_on.after) * weights) ** 2).sum(axis=1).mean())
        )
        for name in ("before", "adapted")
    }
    better = missed["adapted"] < missed["before"]
    return Calibration(
        scenario=scenario.name,
        method="clash",
        estimates=identifiability.estimates(space, model.values, found),
        covariance=found.covariance,
        status="converged" if better else "no improvement",
        evidence=Evidence(
            gap_before=missed["before"],
            gap_after=missed["adapted"],
            gap_unit="m/s",
            channels={"velocity_after": (missed["before"], missed["adapted"])},
            fitted=(),
            held_out=(),
        ),
    )
