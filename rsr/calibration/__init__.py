"""Calibration: from recordings to the simulator's parameters, with intervals, verdicts and held-out evidence.

Episodes are cut into short windows and compared with simulations (`problem`), a method searches for the parameters
that reproduce them and averages over contact-induced roughness (`search`), the posterior says how well they are
identified (`uncertainty`), and held-out episodes and further checks say whether to trust it (`checks`). Every method
returns the same `Calibration`.
May import sessions, scenarios and simulators; knows nothing of policies or realities.

    fitting = calibrator(TuneConfig(method="cmaes"))
    calibration = fitting.fit(scenario, (session,), start_prior(scenario), seed, advance)
    save_calibration(calibration, folder)
"""

from rsr.calibration.calibrator import Calibration, Calibrator, Estimate, Evidence, Prior, Replays, Status, Verdict
from rsr.calibration.fitting import Effort
from rsr.calibration.methods import METHODS, calibrator
from rsr.calibration.priors import draw_parameters, next_prior, start_calibration, start_prior
from rsr.calibration.problem.division import Division
from rsr.calibration.problem.held_out import channel_rms, replay
from rsr.calibration.storage import load_calibration, load_replays, save_calibration

__all__ = [
    "METHODS",
    "Calibration",
    "Calibrator",
    "Division",
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
