"""`rsr calibrate`: which parameters explain the recordings; with `--method all` by every method, side by side."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import arg

import rsr
from rsr.cli.command import (
    Count,
    Folder,
    Folders,
    Name,
    OptionalCount,
    OptionalFile,
    OptionalFolder,
    Switch,
    hint,
    read_sessions,
    say,
    show,
)
from rsr.common import ConfigError, progress, titled_table

Tag = Annotated[str | None, arg(metavar="TAG", help_behavior_hint="")]


def calibrate(
    scenario: Name,
    out: Folder,
    sessions: Folders = (),
    fit: Folders = (),
    judge: Folders = (),
    hold_out: Tag = None,
    stratify: Tag = None,
    method: Annotated[str, arg(metavar="M")] = "mjx",
    episodes: OptionalCount = None,
    seed: Count = 0,
    sensitivity: Annotated[Literal["auto", "mjx", "differences"], arg(metavar="HOW", help_behavior_hint="")] = "mjx",
    budget: OptionalCount = None,
    bootstrap: Count = 0,
    structure: Switch = False,
    base: OptionalFolder = None,
    params: OptionalFile = None,
) -> int:
    """Fit the simulator's parameters to recordings; episodes that a fit did not see judge it.

    Args:
        scenario: a built-in scenario such as push_cube, or the path of a scenario's YAML file.
        out: folder for the calibration.
        sessions: folders of stored sessions; --episodes says how many of their episodes are fitted.
        fit: instead of --sessions, with --judge: folders of the sessions to fit.
        judge: folders of the sessions that judge the fit and are never fitted.
        hold_out: a tag; episodes that share a value of it are fitted together or judge together.
        stratify: a tag; every value of it is fitted and judges, in proportion.
        method: mjx or cmaes or sysid or adam, or all: each of them, in a table and a figure. Or clash, which adapts a
            surrogate of collisions to strikes, for scenarios that declare a collision; or gnn, which learns a simulator
            of free bodies in contact.
        episodes: how many to fit, drawn by seed, 32 by default; the others judge, at least ten or half of all. Where
            there are no more, all are fitted, and judged in turn by fits to others. With --judge, of those to --fit.
            With clash: the first strikes, 10 by default; where hardly any are left, each is judged in turn.
        seed: of everything random.
        budget: points that the search may evaluate, 960 by default; time grows with it until the search converges.
        sensitivity: how mjx and adam differentiate: auto (says what it picked), mjx or differences.
        bootstrap: refit so many resamples of the episodes, to check the intervals and to widen those too narrow.
        structure: select by successive halving what the scenario's file leaves open, such as the friction cone.
        base: with clash: folder of a surrogate, such as `rsr clash train` makes, or in which to make one.
        params: with clash and gnn: a params.yaml whose section of that name says how much to simulate and to train.
    """
    from rsr.scenarios import capabilities, load_scenario

    if episodes is None:
        episodes = 10 if method == "clash" else 32
    tune = {"fit_episodes": episodes, "sensitivity": sensitivity, "bootstrap": bootstrap, "structure": structure}
    settings = _settings(seed, tune if method == "all" else {"method": method, **tune}, params)
    rsr.pipelines.check_method(settings.tune.method)
    loaded = load_scenario(scenario)
    searches = rsr.calibration.METHODS  # those that learn a simulator are checked after their options
    for name in searches if method == "all" else {settings.tune.method} & set(searches):
        capabilities.check_method(loaded, name, settings.tune.sensitivity)
    recorded, judging = _divided(loaded, sessions, fit, judge)
    controls = rsr.pipelines.FitControls(rsr.calibration.Division(judging, hold_out, stratify), budget)
    if method == "all":
        return _compare_methods(loaded, recorded, settings, controls, out)
    return _fit(loaded, recorded, settings, controls, out, base)


def _fit(
    scenario: rsr.scenarios.Scenario,
    sessions: tuple[rsr.sessions.Session, ...],
    settings: rsr.config.LoopConfig,
    controls: rsr.pipelines.FitControls,
    out: Path,
    base: Path | None,
) -> int:
    """Fit by one method, and show what it found."""
    before = rsr.simulators.warning_counts()
    with progress.bar("calibrate") as advance:
        prior = rsr.calibration.start_prior(scenario)
        found = rsr.pipelines.tune_into(
            out, scenario, sessions, prior, settings, settings.seed, advance, base, controls=controls
        )
    _show_calibration(found)
    if unstable := rsr.simulators.warnings_since(before):
        hint(f"MuJoCo called simulations unstable, mostly of parameters that were tried and left: {unstable}")
    say(str(out))
    return 0


def _settings(seed: int, tune: Mapping[str, object], params: Path | None) -> rsr.config.LoopConfig:
    """The settings of a fit; those of learning methods come from a campaign's params.yaml."""
    settings = rsr.config.parse_config({"seed": seed, "tune": tune}, where="command line")
    if params is None:
        return settings
    given = rsr.config.load_config(params)
    return settings.model_copy(update={"clash": given.clash, "gnn": given.gnn})


def _divided(
    scenario: rsr.scenarios.Scenario, sessions: Sequence[Path], fit: Sequence[Path], judge: Sequence[Path]
) -> tuple[tuple[rsr.sessions.Session, ...], int]:
    """Read the sessions that were named, those that judge last; returns with them how many episodes judge."""
    if bool(sessions) == bool(fit) or bool(fit) != bool(judge):
        named = [f"--{name}" for name, given in (("sessions", sessions), ("fit", fit), ("judge", judge)) if given]
        raise ConfigError(
            got=" and ".join(named) or "no session",
            expected="either --sessions, or --fit together with --judge",
            where="command line",
            next_step="Name folders of stored sessions, e.g. --sessions data/push_cube/session-001.",
        )
    both = {folder.resolve() for folder in fit} & {folder.resolve() for folder in judge}
    if both:
        raise ConfigError(
            got=f"{min(both).name} in --fit and in --judge",
            expected="each session in one of them: what was fitted says nothing of what the fit is worth",
            where="command line",
            next_step="Take it out of one, or give --sessions and let the fit divide its episodes.",
        )
    unseen = read_sessions(scenario, judge) if judge else ()
    recorded = read_sessions(scenario, [*sessions, *fit])
    return (*recorded, *unseen), sum(len(session.episodes) for session in unseen)


def _show_calibration(calibration: rsr.calibration.Calibration) -> None:
    rows = []
    for name, estimate in calibration.estimates.items():
        unit = "" if estimate.unit == "1" else f" {estimate.unit}"
        interval = f"{estimate.lower:.4g} to {estimate.upper:.4g}{unit}"
        rows.append((name, f"{estimate.value:.4g}", interval, estimate.verdict))
    header = ("parameter", "value", "95 % interval", "verdict")
    show(titled_table(f"{calibration.method}: {calibration.status}", header, rows, text=(0, 3)))
    evidence = calibration.evidence
    say(
        f"gap on {_judges(evidence)}: {evidence.gap_before:.4g} {evidence.gap_unit} before, "
        f"{evidence.gap_after:.4g} {evidence.gap_unit} after{_cross_validated(evidence)}"
    )
    for line in _noted(calibration):
        say(line)
    for warning in calibration.warnings:
        say(f"warning: {warning}")


def _judges(evidence: rsr.calibration.Evidence) -> str:
    if evidence.crossed:
        return f"{len(evidence.held_out)} episodes, each after a short fit to others (the values are fitted to all)"
    return f"{len(evidence.held_out)} held-out episodes"


def _cross_validated(evidence: rsr.calibration.Evidence) -> str:
    if evidence.cross_validated is None:
        return ""
    ratio = f"{evidence.cross_validated:.3f} times that before"
    return f"; decided by the loss of short fits on episodes that they did not see, {ratio}"


def _noted(calibration: rsr.calibration.Calibration) -> list[str]:
    """Show the selected structure and the checks, where there are any."""
    checks = calibration.checks
    chosen = ", ".join(f"{option} {value}" for option, value in calibration.structure.items())
    fitted = {"windows": checks.windows, "model error": checks.model_error}
    lines = {"structure": chosen, **fitted, "sensitivities by": checks.sensitivity, "gradient check": checks.gradients}
    return [f"{what}: {words}" for what, words in {**lines, "parity check": checks.parity}.items() if words]


# `rsr calibrate --method all`: every method on the same recordings, in a table and a figure.

COMPARISON, PICTURE = "comparison.json", "comparison.png"


def _compare_methods(
    scenario: rsr.scenarios.Scenario,
    sessions: tuple[rsr.sessions.Session, ...],
    settings: rsr.config.LoopConfig,
    controls: rsr.pipelines.FitControls,
    out: Path,
) -> int:
    """Fit with every method, one folder each below `out`; write the comparison as JSON and as a picture."""
    found, seconds = {}, {}
    for method in rsr.calibration.METHODS:
        start = time.perf_counter()
        with progress.bar(method) as advance:
            own = settings.model_copy(update={"tune": settings.tune.model_copy(update={"method": method})})
            prior = rsr.calibration.start_prior(scenario)
            found[method] = rsr.pipelines.tune_into(
                out / method, scenario, sessions, prior, own, own.seed, advance, controls=controls
            )
        seconds[method] = time.perf_counter() - start
    said = rsr.reports.disagreements(found)
    rows = {method: _row(calibration, seconds[method]) for method, calibration in found.items()}
    rsr.common.write_json(out / COMPARISON, {"scenario": scenario.name, "methods": rows, "disagreements": said})
    rsr.common.write_bytes(out / PICTURE, rsr.reports.picture_of_methods(scenario.space, found))
    _show(found, rows)
    for each in said:
        say(f"warning: {each}")
    say(str(out / PICTURE))
    return 0


def _row(calibration: rsr.calibration.Calibration, seconds: float) -> dict[str, float | str]:
    """Table of the methods; times are of the whole fit, compiling included."""
    steps, loss = calibration.trace[-1] if len(calibration.trace) else (0.0, float("nan"))
    evidence = calibration.evidence
    return {
        "gap_before": evidence.gap_before,
        "gap_after": evidence.gap_after,
        "loss": float(loss),
        "simulated_steps": float(steps),
        "seconds": seconds,
        "status": calibration.status,
        "sensitivity": calibration.checks.sensitivity,
    }


def _show(found: Mapping[str, rsr.calibration.Calibration], rows: Mapping[str, Mapping[str, float | str]]) -> None:
    lines = [
        (name.replace("_", " "), *(_word(row[name]) for row in rows.values())) for name in next(iter(rows.values()))
    ]
    for name in next(iter(found.values())).estimates:
        estimates = [calibration.estimates[name] for calibration in found.values()]
        lines.append((name, *(f"{each.value:.4g} ({each.verdict})" for each in estimates)))
    show(titled_table("all methods on the same recordings", ("figure", *found), lines))


def _word(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.4g}"
