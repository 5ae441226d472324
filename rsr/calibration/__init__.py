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

from rsr.common.facade import lazy

__getattr__, __dir__, __all__ = lazy(__name__, __file__)
