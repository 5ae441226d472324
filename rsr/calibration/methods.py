"""The methods by name. A new one is a `Search` and a line here."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from rsr.calibration.fitting import Effort, WindowCalibrator
from rsr.calibration.interface import Calibrator
from rsr.calibration.problem import Division
from rsr.calibration.search import Search, SearchResult, search_adam, search_cmaes, search_mjx, search_sysid
from rsr.calibration.search.kept import kept
from rsr.common import check_choice
from rsr.config import TuneConfig

METHODS: dict[str, Search] = {
    "mjx": search_mjx,
    "cmaes": search_cmaes,
    "sysid": search_sysid,
    "adam": search_adam,
}
DIFFERENTIATING: dict[str, Callable[..., SearchResult]] = {"mjx": search_mjx, "adam": search_adam}
"""Methods with a choice of how Jacobians are computed."""


def calibrator(
    config: TuneConfig, effort: Effort | None = None, division: Division | None = None, keep: Path | None = None
) -> Calibrator:
    """Make the calibrator that the settings name.

    Args:
        effort: by default that of a usual fit.
        division: which episodes are fitted and which judge; by default drawn at random.
        keep: folder for what searches found, from which a fit that was killed goes on; none by default.

    Example:
        >>> fitting = calibrator(TuneConfig(method="cmaes", fit_episodes=32))
        >>> calibration = fitting.fit(scenario, (session,), start_prior(scenario), seed=0, advance=ignore)
    """
    check_choice(
        config.method,
        METHODS,
        got=f"calibration method '{config.method}'",
        where="tune.method",
        next_step="Correct it in params.yaml or on the command line.",
    )
    search = METHODS[config.method]
    if config.method in DIFFERENTIATING:
        search = partial(DIFFERENTIATING[config.method], sensitivity=config.sensitivity)
    if keep is not None:
        search = kept(search, keep, f"{config.method} {config.sensitivity}")
    return WindowCalibrator(
        method=config.method,
        search=search,
        fit_episodes=config.fit_episodes,
        effort=effort or Effort(),
        resamples=config.bootstrap,
        selects_structure=config.structure,
        division=division or Division(),
    )
