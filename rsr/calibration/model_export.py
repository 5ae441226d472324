"""Files that a calibration hands over: the tuned MJCF and URDF, what they cannot say, a randomisation, a statement.

All are plain files beside each other, read without this project; docs/hand-over.md describes them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from rsr.calibration.interface import Calibration
from rsr.calibration.priors import draw_parameters
from rsr.common import CalibrationError, write_json, write_text
from rsr.scenarios import Scenario, SensorScale, element_name, structured, write_mjcf, write_urdf

SCHEMA = "rsr-randomisation/1"


@dataclass(frozen=True)
class SavedModel:
    """Where a tuned model went.

    Args:
        path: the MJCF.
        left_out: parameter -> value, of what an MJCF cannot say; empty where it says all.
        beside: the YAML file that says it, if there is anything to say.
    """

    path: Path
    left_out: Mapping[str, float]
    beside: Path | None

    def __str__(self) -> str:
        if not self.left_out:
            return str(self.path)
        return f"{self.path} (without {', '.join(self.left_out)}, which an MJCF cannot say: {self.beside})"


def save_tuned_model(scenario: Scenario, calibration: Calibration, path: Path) -> SavedModel:
    """Write the tuned MJCF and the YAML file beside it; see `rsr.Fit.save_model`."""
    # Plain MuJoCo has no effects: the file is the robot as its own actuators move it.
    tuned = replace(structured(scenario, calibration.structure), effects=None)
    read_from = scenario.mjcf if scenario.source is None else None
    write_mjcf(tuned.spec(), tuned.model(calibration.vector(), pictures=True), path, read_from)
    acting = _acting_elsewhere(scenario)
    beside = path.with_suffix(".yaml") if acting or scenario.effects else None
    if beside is not None:
        said: dict[str, Any] = {"model": path.name}
        if acting:
            said["not_in_the_model"] = {
                name: {**asdict(calibration.estimates[name]), "acts": how} for name, how in acting.items()
            }
        if scenario.effects:
            said["effects"] = dict(scenario.effects.document)
        write_text(beside, yaml.safe_dump(said, sort_keys=False))
    return SavedModel(path, {name: calibration.estimates[name].value for name in acting}, beside)


def hand_over(scenario: Scenario, calibration: Calibration, path: Path, draws: int = 100, seed: int = 0) -> SavedModel:
    """Write the tuned model, and beside it `NAME.urdf`, `NAME_randomisation.json` and `NAME.md`.

    Args:
        path: of the MJCF.
        draws: of the posterior in the randomisation file.

    Raises:
        CalibrationError: the calibration is of another scenario.
        ScenarioError: see `rsr.Fit.save_model`.
    """
    if tuple(calibration.estimates) != scenario.space.names:
        raise CalibrationError(
            got=f"a calibration of {calibration.scenario} ({', '.join(calibration.estimates)})",
            expected=f"one of {scenario.name} ({', '.join(scenario.space.names)})",
            where=path.name,
            next_step="Name the scenario that it was made for.",
        )
    saved = save_tuned_model(scenario, calibration, path)
    randomised = randomisation(scenario, calibration, path.name, draws, np.random.default_rng(seed))
    write_json(path.with_name(f"{path.stem}_randomisation.json"), randomised)
    model = structured(scenario, calibration.structure).model(calibration.vector(), pictures=True)
    lost = write_urdf(model, path.with_suffix(".urdf"), scenario.name)
    write_text(path.with_suffix(".md"), statement(scenario, calibration, saved, lost))
    return saved


def randomisation(
    scenario: Scenario, calibration: Calibration, model: str, draws: int, rng: np.random.Generator
) -> dict[str, Any]:
    """The posterior for the domain randomisation of others: ranges, correlation, and draws that keep it."""
    deviations = np.sqrt(np.maximum(np.diag(calibration.covariance), 0.0))
    scale = np.where(deviations > 0, deviations, 1.0)
    correlation = calibration.covariance / np.outer(scale, scale)
    np.fill_diagonal(correlation, 1.0)
    parameters = {
        parameter.name: {
            **asdict(calibration.estimates[parameter.name]),
            "distribution": "log_normal" if parameter.scale == "log" else "normal",
            "std": float(deviation if parameter.scale == "log" else deviation * abs(parameter.unit_step)),
            "hard_bounds": [parameter.lower, parameter.upper],
            "writes": _writes(scenario, index),
        }
        for index, (parameter, deviation) in enumerate(zip(scenario.space, deviations.tolist(), strict=True))
    }
    return {
        "schema": SCHEMA,
        "model": model,
        "scenario": scenario.name,
        "parameters": parameters,
        "order": list(scenario.space.names),
        "correlation": correlation.tolist(),
        "draws": draw_parameters(scenario, calibration, draws, rng).tolist(),
    }


def _writes(scenario: Scenario, index: int) -> list[dict[str, Any]]:
    """Where a parameter acts in the MJCF; `scale` multiplies what the untuned MJCF says."""
    return [
        {
            "element": binding.element,
            "names": [element_name(scenario.base_model, binding.element, each) for each in binding.ids],
            "field": binding.field,
            "mode": binding.mode,
            "untuned": binding.read(scenario.base_model).tolist(),
        }
        for binding in scenario.bindings
        if binding.parameter == index
    ]


def statement(scenario: Scenario, calibration: Calibration, saved: SavedModel, lost: Sequence[str]) -> str:
    """Say what the calibration proves and what it does not, on one page of Markdown.

    Args:
        lost: what the URDF cannot say.
    """
    known = calibration.evidence
    verdicts = {name: estimate.verdict for name, estimate in calibration.estimates.items()}
    identified = [name for name, verdict in verdicts.items() if verdict == "identified"]
    others = [f"{name} ({verdict})" for name, verdict in verdicts.items() if verdict != "identified"]
    better = calibration.status != "no improvement"
    gap = f"{known.gap_before:.4g} {known.gap_unit} before, {known.gap_after:.4g} {known.gap_unit} after"
    judged = "- No recorded run judged it."
    if known.held_out:
        unseen = "each by a fit to others," if known.crossed else "that the fit never saw"
        judged = (
            f"- Replayed for {scenario.gap_horizon_s:g} s at a time, {len(known.held_out)} recorded runs {unseen} "
            f"are predicted with this RMS error of {scenario.gap_channel}: {gap}."
        )
    lines = [
        f"# {scenario.title}: the tuned model",
        "",
        f"`{saved.path.name}`, calibrated by method {calibration.method}: {calibration.status}.",
        "",
        "## What this proves",
        "",
        judged,
        f"- The recordings determine, each within its interval: {', '.join(identified) or 'no parameter by itself'}.",
        f"- Plain MuJoCo loads the file to the same rollout, to 1e-9{_without(scenario)}.",
        "",
        "## What it does not prove",
        "",
        *([] if better else ["- That these numbers are better than the nominal ones: they are the nominal ones."]),
        f"- These values are not known from the recordings alone: {', '.join(others) or 'none'}.",
        "- Nothing is said of motions, loads, speeds or contacts that were not recorded.",
        "- Intervals hold if the model can express what happened. How wrong it still is where it fits best: "
        f"{calibration.checks.model_error or 'not estimated'}",
        *[f"- {warning}" for warning in calibration.warnings],
        *_beside(saved, scenario),
        *([f"- The URDF is less than the MJCF. It cannot say: {', '.join(lost)}."] if lost else []),
        "",
    ]
    return "\n".join(lines)


def _without(scenario: Scenario) -> str:
    return " as the scenario has without its effects" if scenario.effects else ""


def _beside(saved: SavedModel, scenario: Scenario) -> list[str]:
    if saved.beside is None:
        return []
    names = ", ".join(scenario.effects.names) if scenario.effects else ""
    effects = f" Effects that it lacks: {names}." if names else ""
    return [f"- The MJCF alone is not all of the model: see `{saved.beside.name}`.{effects}"]


def _acting_elsewhere(scenario: Scenario) -> dict[str, str]:
    """Parameters that write nothing into the model: name -> what they do instead."""
    acting: dict[str, str] = {}
    for index, name in enumerate(scenario.space.names):
        late = [channel for channel, owner in scenario.sensor_delays if owner == index]
        scaled = [_scaling(scenario, each) for each in scenario.sensor_scales if each.parameter == index]
        arguments = [
            f"{argument} of effect {effect.name}"
            for effect in (scenario.effects.each if scenario.effects else ())
            for argument, sources in effect.arguments
            if any(source.parameter == index for source in sources)
        ]
        arguments += [f"{law.law} of effect {law.name}" for law in scenario.command_laws if law.parameter == index]
        if index == scenario.delay_parameter:
            acting[name] = "a command takes effect so many seconds after it is sent"
        elif late:
            acting[name] = f"the channels {', '.join(late)} are stamped so many seconds late"
        elif scaled:
            acting[name] = ", ".join(scaled)
        elif arguments:
            acting[name] = ", ".join(arguments)
    return acting


def _scaling(scenario: Scenario, scale: SensorScale) -> str:
    columns = scenario.observed_channel(scale.channel).channel.columns
    named = ", ".join(columns[column] for column in scale.columns)
    if scale.kind == "gain":
        return f"readings of {scale.channel} ({named}) are so many times what is"
    return f"readings of {scale.channel} ({named}) are so much more than what is, after the gain"
