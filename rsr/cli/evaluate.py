"""`rsr evaluate`: a simulator against recordings, replayed open loop, and strikes one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import arg

import rsr
from rsr.cli.command import (
    Folders,
    Name,
    OptionalFile,
    OptionalFolder,
    Switch,
    calibration_of,
    hint,
    read_sessions,
    show,
)
from rsr.common import ConfigError, titled_table

if TYPE_CHECKING:
    import numpy as np


def evaluate(
    scenario: Name,
    sessions: Folders,
    calibration: OptionalFolder = None,
    held_out: Switch = False,
    start: Annotated[str | None, arg(metavar="NAME", help_behavior_hint="")] = None,
    json: OptionalFile = None,
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
    loaded = rsr.scenarios.load_scenario(scenario)
    session = rsr.sessions.join_sessions(read_sessions(loaded, sessions))
    judged = calibration_of(loaded, calibration)
    chosen = _held_out(judged, len(session.episodes)) if held_out else tuple(range(len(session.episodes)))
    figures = _figures_of(loaded, session, judged, calibration, chosen, loaded.evaluation.start(start))
    _show_figures(figures, len(chosen))
    if judged is not None and not held_out and len(session.episodes) == _known(judged.evidence):
        hint(
            "These are as many episodes as the calibration was made from. If they are the same, it was fitted to some, "
            "and errors on those say nothing of what it is worth."
        )
    if json is not None:
        best = figures["calibration" if judged else "nominal"]
        notes = {"scenario": loaded.name, "start": loaded.evaluation.start(start), "episodes": len(chosen)}
        origin = {"calibration": str(calibration) if calibration else None, "held_out": held_out}
        nominal = {f"{name}_nominal": value for name, value in figures["nominal"].items()}
        rsr.common.write_json(json, {**notes, **origin, **best, **nominal})
    return 0


def _held_out(calibration: rsr.calibration.Calibration | None, count: int) -> tuple[int, ...]:
    """Number the episodes that the calibration did not fit."""
    if calibration is None:
        raise ConfigError(
            got="--held-out without --calibration",
            expected="the calibration whose held-out episodes are meant",
            where="command line",
            next_step="Add --calibration DIR, or leave --held-out away.",
        )
    evidence = calibration.evidence
    known = _known(evidence)
    if evidence.crossed:
        raise ConfigError(
            got=f"a calibration that was fitted to all {known} episodes",
            expected="one with held-out episodes",
            where="--held-out",
            next_step="Name other recordings without --held-out, or calibrate with fewer by --episodes.",
        )
    if known != count:
        raise ConfigError(
            got=f"{count} episodes",
            expected=f"the {known} that the calibration was made from",
            where="--held-out",
            next_step="Name the same sessions in the same order, or leave --held-out away.",
        )
    return evidence.held_out


def _known(evidence: rsr.calibration.Evidence) -> int:
    """Episodes that a calibration was made from."""
    return len({*evidence.fitted, *evidence.held_out})


def _figures_of(
    scenario: rsr.scenarios.Scenario,
    session: rsr.sessions.Session,
    calibration: rsr.calibration.Calibration | None,
    folder: Path | None,
    chosen: Sequence[int],
    start: rsr.scenarios.StartName,
) -> dict[str, dict[str, float]]:
    """The gap and the scenario's own metrics: "nominal" or "calibration" -> name -> figure.

    Where sensors are wrong, figures are of what is left after sensor correction, and further ones `as_recorded`.

    Args:
        folder: of the calibration; a method that learns a simulator left it there.
    """
    figures = {}
    with rsr.pipelines.simulator_of(scenario, None, None) as plain:
        figures["nominal"] = _judged(scenario, session, scenario.space.nominal, chosen, start, plain)
    if calibration is not None:
        values = {name: estimate.value for name, estimate in calibration.estimates.items()}
        own = rsr.scenarios.structured(scenario, calibration.structure)
        with rsr.pipelines.simulator_of(own, calibration.method, folder) as simulator:
            params = scenario.space.vector(values)
            figures["calibration"] = _judged(own, session, params, chosen, start, simulator)
    by_clash = calibration is not None and calibration.method == "clash"
    if by_clash and folder is not None and isinstance(scenario.collision, rsr.scenarios.CollisionPair):
        for name, more in _strikes(scenario, session, folder, chosen).items():
            figures[name] |= more
    return figures


def _judged(
    scenario: rsr.scenarios.Scenario,
    session: rsr.sessions.Session,
    params: np.ndarray,
    chosen: Sequence[int],
    start: rsr.scenarios.StartName,
    simulator: rsr.simulators.Simulator,
) -> dict[str, float]:
    episodes = rsr.simulators.correct_sensors(
        scenario, simulator, [session.episodes[index] for index in chosen], params
    )
    errors = rsr.calibration.channel_rms(
        scenario, episodes, rsr.calibration.replay(scenario, simulator, episodes, params)
    )
    figures = {"gap": errors[scenario.gap_channel]}
    for suffix, as_recorded in (("", False), ("_as_recorded", True)):
        if not as_recorded or scenario.sensor_delays or rsr.scenarios.bias_free(scenario):
            judged = rsr.simulators.evaluate_recording(scenario, session, params, start, chosen, simulator, as_recorded)
            figures |= {f"{each.name}{suffix}": judged[each.name] for each in scenario.evaluation.metrics}
    return figures


def _strikes(
    scenario: rsr.scenarios.Scenario, session: rsr.sessions.Session, folder: Path, chosen: Sequence[int]
) -> dict[str, dict[str, float]]:
    """How well single strikes are predicted: by the adapted model, and by what it was before any recording."""
    model = rsr.learned.clash.load_adapted(folder)
    picked = [session.episodes[index] for index in chosen]
    found = rsr.learned.clash.strikes_of(scenario, [replace(session, episodes=tuple(picked))]).strikes
    predictors = {"nominal": rsr.learned.clash.nominal(model.base), "calibration": rsr.learned.clash.adapted(model)}
    judged = {name: rsr.learned.clash.Predicted(found, *predict(found.strikes)) for name, predict in predictors.items()}
    return {name: _named(asdict(each.figures(model.shape))) for name, each in judged.items()}


def _named(figures: Mapping[str, float]) -> dict[str, float]:
    return {name if name == "strikes" else f"strike_{name}": value for name, value in figures.items()}


def _show_figures(figures: Mapping[str, Mapping[str, float]], count: int) -> None:
    rows = [(name, *(f"{found[name]:.4g}" for found in figures.values())) for name in figures["nominal"]]
    show(titled_table(f"{count} episodes, replayed open loop", ("figure", *figures), rows))
