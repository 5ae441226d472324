"""Commands on recordings: is this session fit for use, which parameters explain it, how well does a simulator do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rich.markup import escape
from rich.table import Table
from tyro.conf import Positional, arg

from rsr import progress
from rsr.cli.screen import say, show
from rsr.errors import ConfigError, SessionError

if TYPE_CHECKING:
    from rsr.calibration import Calibration
    from rsr.scenarios import Scenario
    from rsr.scenarios.metrics import StartName
    from rsr.sessions import Session

Name = Annotated[str, arg(metavar="S")]
Folders = Annotated[tuple[Path, ...], arg(metavar="DIR [DIR ...]")]
Folder = Annotated[Path, arg(metavar="DIR")]
OptionalFolder = Annotated[Path | None, arg(metavar="DIR", help_behavior_hint="")]
Count = Annotated[int, arg(metavar="N")]

REJECTED = 1
"""Exit code of `rsr check` where a session cannot be used."""
_LISTED = 10


def check(
    sessions: Positional[Annotated[tuple[Path, ...], arg(metavar="SESSION [SESSION ...]", help_behavior_hint="")]],
    /,
    *,
    scenario: Annotated[str | None, arg(metavar="S", help_behavior_hint="")] = None,
) -> int:
    """Say of recordings whether to use or to reject them, what is wrong, and what to do.

    Args:
        sessions: folders of stored sessions. Exit code 0: all can be used; 1: at least one is rejected.
        scenario: what they are to be used for; by default what each one's card says.
    """
    _at_least_one(sessions)
    verdicts = [_verdict(folder, scenario) for folder in sessions]
    return 0 if all(verdicts) else REJECTED


def calibrate(
    scenario: Name,
    sessions: Folders,
    out: Folder,
    method: Annotated[str, arg(metavar="M")] = "cmaes",
    episodes: Count = 32,
    seed: Count = 0,
) -> int:
    """Fit the simulator's parameters to recordings, judged on episodes that the fit never sees.

    Args:
        scenario: a built-in scenario such as push_cube, or the path of a scenario's YAML file.
        sessions: folders of stored sessions.
        out: folder for the calibration.
        method: cmaes or sysid or mjx.
        episodes: how many to fit, drawn by seed, half of all at most; the others judge.
        seed: of everything random.
    """
    from rsr.calibration import calibrator, save_calibration, start_prior
    from rsr.config import parse_config
    from rsr.scenarios import load_scenario

    options = {"seed": seed, "tune": {"method": method, "fit_episodes": episodes}}
    settings = parse_config(options, where="command line")
    fitting = calibrator(settings.tune)
    loaded = load_scenario(scenario)
    recorded = _read(loaded, sessions)
    with progress.bar("calibrate") as advance:
        calibration = fitting.fit(loaded, recorded, start_prior(loaded), settings.seed, advance)
    save_calibration(calibration, out)
    _show_calibration(calibration)
    say(str(out))
    return 0


def evaluate(
    scenario: Name,
    sessions: Folders,
    calibration: OptionalFolder = None,
    held_out: Annotated[bool, arg(help_behavior_hint="")] = False,
    start: Annotated[str | None, arg(metavar="NAME", help_behavior_hint="")] = None,
    json: Annotated[Path | None, arg(metavar="FILE", help_behavior_hint="")] = None,
) -> int:
    """Measure how well a simulator predicts recordings, replaying their commands open loop.

    Args:
        scenario: a built-in scenario such as push_cube, or the path of a scenario's YAML file.
        sessions: folders of stored sessions.
        calibration: folder of a calibration to judge beside the nominal parameters.
        held_out: judge only by the episodes that the calibration held out; give the sessions it was made from.
        start: where simulations begin, one of those that the scenario's YAML file lists; by default its first.
        json: also write the figures to this file.
    """
    from rsr.files import write_json
    from rsr.scenarios import load_scenario

    loaded = load_scenario(scenario)
    session = _joined(_read(loaded, sessions))
    judged = _calibration_of(loaded, calibration)
    chosen = _held_out(judged, len(session.episodes)) if held_out else tuple(range(len(session.episodes)))
    figures = _figures(loaded, session, judged, chosen, loaded.evaluation.start(start))
    _show_figures(figures, len(chosen))
    if json is not None:
        best = figures["calibration" if judged else "nominal"]
        notes = {"scenario": loaded.name, "start": loaded.evaluation.start(start), "episodes": len(chosen)}
        origin = {"calibration": str(calibration) if calibration else None, "held_out": held_out}
        nominal = {f"{name}_nominal": value for name, value in figures["nominal"].items()}
        write_json(json, {**notes, **origin, **best, **nominal})
    return 0


def _at_least_one(sessions: Sequence[Path]) -> None:
    if not sessions:
        raise ConfigError(
            got="no session",
            expected="at least one folder of a stored session",
            where="command line",
            next_step="Name them, e.g. data/push_cube/session-001.",
        )


def _read(scenario: Scenario, folders: Sequence[Path]) -> tuple[Session, ...]:
    """Read sessions and make sure that the scenario can use them."""
    from rsr.sessions import check_session, read_session

    _at_least_one(folders)
    sessions = tuple(read_session(folder) for folder in folders)
    for session in sessions:
        check_session(session, scenario.channels)
    return sessions


def _verdict(folder: Path, scenario: str | None) -> bool:
    """Say whether one session can be used, and list its problems."""
    from rsr.scenarios import load_scenario
    from rsr.sessions import find_problems, read_session

    try:
        session = read_session(folder)
    except SessionError as error:
        _show_problems(folder, [error])
        return False
    problems = list(find_problems(session, load_scenario(scenario or session.card.scenario).channels))
    if problems:
        _show_problems(folder, problems)
    else:
        show(f"[bold green]use[/]     {escape(_described(folder, session))}")
    return not problems


def _show_problems(folder: Path, problems: Sequence[SessionError]) -> None:
    many = "" if len(problems) == 1 else "s"
    show(f"[bold red]reject[/]  {escape(str(folder))}: {len(problems)} problem{many}")
    for problem in problems[:_LISTED]:
        say(f"        {problem}")
    if len(problems) > _LISTED:
        say(f"        ... and {len(problems) - _LISTED} more")


def _described(folder: Path, session: Session) -> str:
    duration_s = session.card.control_dt_s * sum(len(episode) - 1 for episode in session.episodes)
    origin = "simulated" if session.card.simulated else "recorded in reality"
    many = f"{len(session.episodes)} episodes, {duration_s:.0f} s, {len(session.channels)} channels"
    return f"{folder}: {many}, {origin}"


def _calibration_of(scenario: Scenario, folder: Path | None) -> Calibration | None:
    from rsr.calibration import load_calibration

    if folder is None:
        return None
    calibration = load_calibration(folder)
    if calibration.scenario != scenario.name:
        raise ConfigError(
            got=f"a calibration of scenario {calibration.scenario}",
            expected=f"one of scenario {scenario.name}",
            where=str(folder),
            next_step="Name the scenario that it was made for.",
        )
    return calibration


def _joined(sessions: Sequence[Session]) -> Session:
    """All episodes as one session, numbered on from session to session, as in a calibration's evidence."""
    episodes = [episode for session in sessions for episode in session.episodes]
    numbered = tuple(replace(episode, index=index) for index, episode in enumerate(episodes))
    return replace(sessions[0], episodes=numbered)


def _held_out(calibration: Calibration | None, count: int) -> tuple[int, ...]:
    """Number the episodes that the calibration did not fit."""
    if calibration is None:
        raise ConfigError(
            got="--held-out without --calibration",
            expected="the calibration whose held-out episodes are meant",
            where="command line",
            next_step="Add --calibration DIR, or leave --held-out away.",
        )
    evidence = calibration.evidence
    known = len(evidence.fitted) + len(evidence.held_out)
    if known != count:
        raise ConfigError(
            got=f"{count} episodes",
            expected=f"the {known} that the calibration was made from",
            where="--held-out",
            next_step="Name the same sessions in the same order, or leave --held-out away.",
        )
    return evidence.held_out


def _figures(
    scenario: Scenario, session: Session, calibration: Calibration | None, chosen: Sequence[int], start: StartName
) -> dict[str, dict[str, float]]:
    """The gap and the scenario's own metrics: "nominal" or "calibration" -> name -> figure."""
    from rsr.calibration import channel_rms, replay
    from rsr.simulators import MujocoSimulator, evaluate_recording

    candidates = {"nominal": scenario.space.nominal}
    if calibration is not None:
        values = {name: estimate.value for name, estimate in calibration.estimates.items()}
        candidates["calibration"] = scenario.space.vector(values)
    episodes = [session.episodes[index] for index in chosen]
    figures = {}
    with MujocoSimulator(scenario) as simulator:
        for name, params in candidates.items():
            errors = channel_rms(scenario, episodes, replay(scenario, simulator, episodes, params))
            judged = evaluate_recording(scenario, session, params, start, chosen, simulator)
            metrics = {metric.name: judged[metric.name] for metric in scenario.evaluation.metrics}
            figures[name] = {"gap": errors[scenario.gap_channel], **metrics}
    return figures


def _show_figures(figures: Mapping[str, Mapping[str, float]], count: int) -> None:
    table = Table(title=f"{count} episodes, replayed open loop", title_justify="left")
    table.add_column("figure")
    for name in figures:
        table.add_column(name, justify="right")
    for name in figures["nominal"]:
        table.add_row(name, *(f"{found[name]:.4g}" for found in figures.values()))
    show(table)


def _show_calibration(calibration: Calibration) -> None:
    table = Table(title=f"{calibration.method}: {calibration.status}", title_justify="left")
    table.add_column("parameter")
    table.add_column("value", justify="right")
    table.add_column("95 % interval", justify="right")
    table.add_column("verdict")
    for name, estimate in calibration.estimates.items():
        unit = "" if estimate.unit == "1" else f" {estimate.unit}"
        interval = f"{estimate.lower:.4g} to {estimate.upper:.4g}{unit}"
        table.add_row(name, f"{estimate.value:.4g}", interval, estimate.verdict)
    show(table)
    evidence = calibration.evidence
    say(
        f"gap on {len(evidence.held_out)} held-out episodes: {evidence.gap_before:.4g} {evidence.gap_unit} before, "
        f"{evidence.gap_after:.4g} {evidence.gap_unit} after"
    )
    for warning in calibration.warnings:
        say(f"warning: {warning}")
