"""Calibration: from recordings to the simulator's parameters, with intervals, verdicts and held-out evidence.

Episodes are cut into short windows (`windows`), a method searches for the parameters that reproduce them (`loss`,
`cmaes`, `sysid`, `gradient`), the result is averaged over the ripples of contact (`refine`), judged by what the data
can tell (`identifiability`) and by episodes that the fit never saw (`evidence`). Every method returns the same
`Calibration`.
May import sessions, scenarios and simulators; knows nothing of policies or realities.

    fitting = calibrator(TuneConfig(method="cmaes"))
    calibration = fitting.fit(scenario, (session,), start_prior(scenario), seed, advance)
    save_calibration(calibration, folder)
"""

from rsr.calibration.contract import Calibration, Calibrator, Estimate, Evidence, Prior, Replays, Status, Verdict
from rsr.calibration.evidence import channel_rms, replay
from rsr.calibration.fitting import Effort
from rsr.calibration.methods import METHODS, calibrator
from rsr.calibration.posterior import draw_parameters
from rsr.calibration.priors import next_prior, start_calibration, start_prior
from rsr.calibration.storage import load_calibration, load_replays, save_calibration

__all__ = [
    "METHODS",
    "Calibration",
    "Calibrator",
    "Effort",
    "Estimate",
    "Evidence",
    "Prior",
    "Replays",
    "Status",
    "Verdict",
    "calibrator",
    "channel_rms",
    "draw_parameters",
    "load_calibration",
    "load_replays",
    "next_prior",
    "replay",
    "save_calibration",
    "start_calibration",
    "start_prior",
]
