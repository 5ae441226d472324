"""The methods by name. A new one is a `Search` and a line here."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from rsr.calibration.adam import search_adam
from rsr.calibration.cmaes import search_cmaes
from rsr.calibration.contract import Calibrator
from rsr.calibration.fitting import Effort, WindowCalibrator
from rsr.calibration.gradient import search_mjx
from rsr.calibration.search import Found, Search
from rsr.calibration.sysid import search_sysid
from rsr.config import TuneConfig
from rsr.errors import ConfigError

METHODS: dict[str, Search] = {
    "mjx": search_mjx,
    "cmaes": search_cmaes,
    "sysid": search_sysid,
    "adam": search_adam,
}
DIFFERENTIATING: dict[str, Callable[..., Found]] = {"mjx": search_mjx, "adam": search_adam}
"""Methods that can be told how to compute sensitivities."""


def calibrator(config: TuneConfig, effort: Effort | None = None) -> Calibrator:
    """Make the calibrator that the settings name.

    Example:
        >>> fitting = calibrator(TuneConfig(method="cmaes", fit_episodes=32))
        >>> calibration = fitting.fit(scenario, (session,), start_prior(scenario), seed=0, advance=ignore)
    """
    if config.method not in METHODS:
        raise ConfigError(
            got=f"calibration method '{config.method}'",
            expected=f"one of {', '.join(METHODS)}",
            where="tune.method",
            next_step="Correct it in params.yaml or on the command line.",
        )
    search = METHODS[config.method]
    if config.method in DIFFERENTIATING:
        search = partial(DIFFERENTIATING[config.method], sensitivity=config.sensitivity)
    return WindowCalibrator(
        method=config.method,
        search=search,
        fit_episodes=config.fit_episodes,
        effort=effort or Effort(),
        resamples=config.bootstrap,
        races=config.structure,
    )
