"""Calls that take minutes and show how far they are: from runs to a fit, from a fit to a policy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from rich.console import Console

from rsr.api.arrays import Runs, fingerprint, sessions_of
from rsr.api.fit import Fit
from rsr.calibration import Effort, calibrator, next_prior, start_calibration, start_prior
from rsr.common import Advance, CalibrationError, bar, ignore
from rsr.config import StartConfig, TuneConfig, parse_config
from rsr.pipelines import simulators
from rsr.policies import Policy, settings_from_scratch, train as learn
from rsr.scenarios import Scenario, check_method, structured

# From runs to a fit, in one call.


def calibrate(
    scenario: Scenario,
    runs: Runs,
    *,
    method: str = TuneConfig().method,
    episodes: int = TuneConfig().fit_episodes,
    seed: int = 0,
    prior: Fit | None = None,
    structure: bool = False,
    bootstrap: int = 0,
    budget: int | None = None,
    progress: bool = True,
) -> Fit:
    """Fit the scenario's parameters to runs, judged on runs that the fit never sees.

    Args:
        runs: a list of runs, each a mapping from channels to arrays (`rsr.session_from_arrays`); or sessions, or
            folders of stored sessions. At least two runs.
        method: mjx, cmaes, sysid or adam; docs/calibration.md compares them.
        episodes: how many runs to fit, drawn by seed; the others judge, at least ten or half of all. Where there are no
            more (and no `prior`), all are fitted, and judged in turn by fits to others.
        seed: of everything random. Equal arguments give an equal fit.
        prior: an earlier fit that these runs are added to, of other runs; by default there is none.
        structure: select by successive halving what the scenario leaves open, such as the friction cone.
        bootstrap: refit so many resamples of the runs, to check the intervals and to widen those too narrow.
        budget: points that the search may evaluate; by default as many as usual.
        progress: show it on stderr.

    Raises:
        SessionError: the runs do not fit the scenario.
        CalibrationError: there are too few, or the method cannot simulate the scenario.

    Examples:
        >>> fit = rsr.calibrate(arm, [{"q": q, "u": u} for q, u in runs])  # doctest: +SKIP
        >>> fit.values["damping"]  # doctest: +SKIP
        1.52
    """
    tune = {"method": method, "fit_episodes": episodes, "structure": structure, "bootstrap": bootstrap}
    settings = parse_config({"seed": seed, "tune": tune}, where="rsr.calibrate").tune
    check_method(scenario, method, settings.sensitivity)
    fitting = calibrator(settings, None if budget is None else Effort(budget=budget))
    sessions = sessions_of(scenario, runs)
    before = start_prior(scenario) if prior is None else next_prior(scenario, prior.calibration)
    known = () if prior is None else prior.fitted_runs
    prints = [fingerprint(scenario, episode) for session in sessions for episode in session.episodes]
    if again := sum(each in known for each in prints):
        raise CalibrationError(
            got=f"{again} of {len(prints)} runs that `prior` was fitted to",
            expected="runs that it has not seen: they would count twice",
            where="rsr.calibrate",
            next_step="Leave them out, or calibrate all runs together without `prior`.",
        )
    with shown("calibrate", progress) as advance:
        calibration = fitting.fit(scenario, sessions, before, seed, advance)
    return Fit(scenario, calibration, (*known, *(prints[index] for index in calibration.evidence.fitted)))


# A policy in the tuned simulator, in one call.


def train(
    scenario: Scenario,
    fit: Fit | None = None,
    *,
    steps: int | None = None,
    seed: int = 0,
    algorithm: Literal["ppo", "sac"] = StartConfig().algorithm,
    randomise: Literal["none", "posterior"] = "none",
    progress: bool = True,
) -> Policy:
    """Train a policy from scratch for the scenario's task, in the nominal simulator or in the one that a fit found.

    Args:
        fit: whose parameters to simulate with; by default the nominal ones.
        steps: environment steps at most, over all copies; by default what the algorithm was measured to need. Training
            ends earlier where success has levelled off.
        seed: of everything random.
        algorithm: ppo takes more steps, sac more time for each.
        randomise: posterior gives each copy of the simulator parameters of its own, drawn as the fit leaves them open;
            without a fit, as the scenario's prior does.
        progress: show it on stderr.

    Raises:
        ConfigError: the scenario has no task to learn.

    Examples:
        >>> policy = rsr.train(rsr.load_scenario("push_cube"), fit)  # doctest: +SKIP
        >>> policy.save("policy"); policy.export("onnx")  # doctest: +SKIP
    """
    given = {"seed": seed, "start": {"algorithm": algorithm, "train_steps": steps}, "retrain": {"randomise": randomise}}
    config = parse_config(given, where="rsr.train")
    settings = settings_from_scratch(config.start.algorithm, scenario, config.start.train_steps)
    calibration = start_calibration(scenario) if fit is None else fit.calibration
    tuned = structured(scenario, calibration.structure)
    params = simulators(tuned, calibration, config.retrain, settings.copies, seed)
    with shown("train", progress) as advance:
        return learn(tuned, params, settings, seed, advance).policy


# Progress of a long call: a bar in a terminal or a notebook, a few plain lines anywhere else.


@contextmanager
def shown(title: str, wanted: bool) -> Iterator[Advance]:
    """Show progress on stderr, if it is wanted; yields the function that moves it."""
    if not wanted:
        yield ignore
        return
    console = Console(stderr=True)
    plain = not (console.is_terminal or console.is_jupyter)
    if plain:  # a log shows the beginning and the end, however short it was
        console.out(f"{title}: 0% begun", highlight=False)
    with bar(title) as advance:
        yield advance
    if plain:
        console.out(f"{title}: 100% done", highlight=False)
