"""Stages of CLASH: strikes simulated in MuJoCo, a surrogate distilled from them, its adaptation, evidence, plans."""

from __future__ import annotations

import shutil
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rsr.calibration import Calibration, Prior, load_calibration, next_prior, save_calibration, start_calibration
from rsr.common import Advance, WorkspaceError, derive_seed, generator, part_of, write_bytes, write_json, write_text
from rsr.config import ClashConfig, LoopConfig, section_of
from rsr.learned.clash import (
    STEPS,
    Comparison,
    Figures,
    HybridScene,
    HybridSimulator,
    HybridStrikes,
    Predicted,
    Recordings,
    StrikePlan,
    StruckBlock,
    Surrogate,
    check_same_block,
    compare,
    distil,
    generate_pairs,
    joined,
    learning_curve,
    load_adapted,
    load_definition_of,
    load_pairs,
    load_scene,
    load_shape_of,
    load_surrogate,
    plan,
    reproducible,
    save_surrogate,
    strikes_of,
    write_comparison,
)
from rsr.pipelines import MethodFolders
from rsr.pipelines.clash.calibration import adapt_to, predictor_in, strikes_in
from rsr.reports import render_collision_report, strike_picture
from rsr.scenarios import Scenario, SceneCollision, load_scenario
from rsr.scenarios.built_in.strike import RecordedStrikes, sample_strikes, striking, struck_shape
from rsr.sessions import Session, read_session
from rsr.simulators import Simulator
from rsr.workspace import Workspace


def strikes(workspace: Workspace, iteration: int, advance: Advance) -> None:
    """Write strikes/: shards of simulated strikes on the scenario's block. What was interrupted goes on.

    DVC clears a stage's outputs before it runs again, so the shards gather in the machine's own folder first.
    """
    config, target = workspace.config(iteration), strikes_dir(workspace)
    seed = derive_seed(config.seed, iteration, "strikes")
    scenario, settings = load_scenario(config.scenario), clash_settings(config)
    unfinished = workspace.root / ".rsr" / f"strikes-{scenario.name}"
    try:
        # Resumed where it was killed: shards that are whole are kept.
        simulate(scenario, unfinished, settings, seed, advance)
    except WorkspaceError:  # begun with other settings
        shutil.rmtree(unfinished)
        simulate(scenario, unfinished, settings, seed, advance)
    # Moved in one step: an interrupted run leaves all of strikes/ or none of it.
    shutil.rmtree(target, ignore_errors=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished.rename(target)


def surrogate(workspace: Workspace, iteration: int, advance: Advance) -> None:
    """Write surrogate/, and the prior of the parameters as calibration/."""
    config = workspace.config(iteration)
    seed = derive_seed(config.seed, iteration, "surrogate")
    learn(strikes_dir(workspace), surrogate_dir(workspace), clash_settings(config), seed, advance)
    save_calibration(start_calibration(load_scenario(config.scenario)), workspace.calibration_dir(iteration))


def strikes_dir(workspace: Workspace) -> Path:
    return workspace.iteration_dir(0) / "strikes"


def surrogate_dir(workspace: Workspace) -> Path:
    return workspace.iteration_dir(0) / "surrogate"


def simulate(scenario: Scenario, folder: Path, settings: ClashConfig, seed: int, advance: Advance) -> None:
    """Simulate strikes on the block that the scenario declares, by the striker that it declares."""
    generate_pairs(struck_shape(scenario), folder, settings.pairs, seed, advance, striking(scenario))


def learn(strikes: Path, folder: Path, settings: ClashConfig, seed: int, advance: Advance) -> Surrogate:
    """Distil a surrogate from simulated strikes and write it with what it achieves on some it did not see."""
    definition, steps = load_definition_of(strikes), settings.train_steps or STEPS
    learnt = distil(load_shape_of(strikes), load_pairs(strikes), steps, seed, advance, definition)
    evidence = {"accuracy": learnt.table_one.scaled, "accuracy_low_damping": learnt.bouncy.scaled}
    save_surrogate(folder, learnt.surrogate, evidence | {"accuracy_raw": learnt.table_one.raw})
    return learnt.surrogate


def clash_settings(config: LoopConfig) -> ClashConfig:
    """The section `clash`; see `section_of`."""
    return section_of(config.clash, "clash", "those of a campaign of CLASH")


# After a recording: adapt the surrogate to all strikes so far, and plan single strikes to target poses.


def adapt(workspace: Workspace, iteration: int, advance: Advance) -> None:
    """Write calibration/: identified parameters, the residual, how the block slides, and the evidence for them."""
    config = workspace.config(iteration)
    scenario = load_scenario(config.scenario)
    previous = workspace.calibration_dir(iteration - 1)
    adapt_to(
        scenario,
        (read_session(workspace.session_dir(iteration)),),
        load_surrogate(surrogate_dir(workspace)),
        next_prior(scenario, load_calibration(previous)),
        config.tune.fit_episodes,
        derive_seed(config.seed, iteration, "adapt"),
        workspace.calibration_dir(iteration),
        previous,
    )
    advance(1.0, "adapted")


def aim(workspace: Workspace, iteration: int, advance: Advance) -> None:
    """Write plan.json: for poses that the model says can be reached, the strike that reaches them best."""
    config = workspace.config(iteration)
    model = load_adapted(workspace.calibration_dir(iteration))
    rollouts, count = HybridStrikes(model), clash_settings(config).targets
    seed = derive_seed(config.seed, iteration, "aim")
    planned = []
    # Targets are rests of random strikes in the model itself, so each of them can be reached.
    with reproducible(seed):  # thousands of small evaluations: threads would only wait for one another
        for index, target in enumerate(rollouts(sample_strikes(model.shape, count, generator(seed, "targets")))):
            found = plan(model.shape, rollouts, target, seed=derive_seed(seed, index))
            planned.append(_described(found, target.tolist()))
            advance((index + 1) / count, f"target {index + 1} of {count}")
    write_json(workspace.iteration_dir(iteration) / "plan.json", {"shape": model.shape.name, "plans": planned})


def _described(found: StrikePlan, target: list[float]) -> dict[str, object]:
    strike = found.strike
    return {
        "target": target,
        "expected": found.expected.tolist(),
        "cost": found.cost,
        "speed_m_s": float(strike.speed_m_s[0]),
        "angle_rad": float(strike.angle_rad[0]),
        "point_m": strike.point_m[0].tolist(),
        "normal": strike.normal[0].tolist(),
    }


# `clash` as a method of calibration: with a surrogate where one is asked for.

_SIMULATED, _LEARNT = 0.5, 0.95


def clash_simulator(scenario: Scenario, folder: Path) -> AbstractContextManager[Simulator]:
    """Make MuJoCo with the adapted model, or the adapted scene, of a calibration's folder."""
    if isinstance(scenario.collision, SceneCollision):
        return HybridScene(scenario, load_scene(folder))
    return HybridSimulator(scenario, load_adapted(folder), threads=2)


@dataclass(frozen=True)
class ClashCalibrator:
    """The `Calibrator` that adapts a model of collisions to strikes, and writes it into its folder.

    Args:
        config: its `tune.fit_episodes` are the strikes to adapt to, the first ones; the others are held out.
        folders: `base` holds a surrogate, or is where one is made; None: without one. `previous` holds a calibration of
            this kind, whose strikes are kept.
    """

    config: LoopConfig
    folders: MethodFolders

    def fit(
        self, scenario: Scenario, sessions: tuple[Session, ...], prior: Prior, seed: int, advance: Advance
    ) -> Calibration:
        """See `Calibrator.fit`."""
        # Wrong recordings are refused before a surrogate is made, which takes minutes.
        strikes_of(scenario, sessions)
        out, base = self.folders.out, StruckBlock(struck_shape(scenario), striking(scenario))
        if self.folders.base is not None:
            base = self._surrogate(self.folders.base, scenario, seed, advance)
            check_same_block(scenario, struck_shape(scenario), base.shape)
        advance(_LEARNT, "adapting")
        previous = self.folders.previous or out / "none"
        seed = derive_seed(seed, "adapt")
        return adapt_to(scenario, sessions, base, prior, self.config.tune.fit_episodes, seed, out, previous)

    def _surrogate(self, folder: Path, scenario: Scenario, seed: int, advance: Advance) -> Surrogate:
        if (folder / "surrogate.json").is_file():
            return load_surrogate(folder)
        strikes, settings = folder / "strikes", self.config.clash or ClashConfig()
        simulate(scenario, strikes, settings, derive_seed(seed, "strikes"), part_of(advance, 0.0, _SIMULATED))
        return learn(strikes, folder, settings, derive_seed(seed, "surrogate"), part_of(advance, _SIMULATED, _LEARNT))


# Evidence: figures for the chain of iterations, before and after, the learning curve, the page.


def evaluate(workspace: Workspace, iteration: int, advance: Advance) -> None:
    """Write evaluation/: metrics.json, comparison.json, curve.json and adaptation.png."""
    config, folder = workspace.config(iteration), workspace.evaluation_dir(iteration)
    surrogate = load_surrogate(surrogate_dir(workspace))
    calibration = load_calibration(workspace.calibration_dir(iteration))
    scenario = load_scenario(config.scenario)
    recordings = strikes_of(scenario, [read_session(workspace.session_dir(iteration))])
    known = strikes_in(workspace.calibration_dir(iteration), surrogate.shape)
    held_out = _held_out(recordings, calibration)
    # Earlier iterations' strikes come first, so that the split keeps what the model knows apart from what judges it.
    every = known if held_out is None else joined(known, held_out)
    seed = derive_seed(config.seed, iteration, "evaluate")
    # Strikes that nothing was fitted to judge; where there are none, each judges models fitted without it.
    with reproducible(seed):
        found = compare(surrogate, every, len(known), seed, advance)
        curve = learning_curve(surrogate, every, seed=seed)
    judged = recordings.strikes if held_out is None else held_out
    # "Before" is the model of the iteration before, on the same strikes: the gain of this iteration alone.
    previous = predictor_in(workspace.calibration_dir(iteration - 1), surrogate)
    before = Predicted(judged, *previous(judged.strikes)).figures(surrogate.shape)
    write_comparison(folder / "comparison.json", found, curve)
    write_json(folder / "curve.json", [{"strikes": count, "accuracy": share} for count, share in curve.items()])
    write_bytes(folder / "adaptation.png", strike_picture(surrogate.shape, found, curve))
    document = {"iteration": iteration, "seed": config.seed, "shape": surrogate.shape.name}
    document |= _counts(recordings, known) | _figures(calibration, before, found)
    write_json(workspace.metrics_path(iteration), document)


def _held_out(recordings: Recordings, calibration: Calibration) -> RecordedStrikes | None:
    """The session's strikes that the model was not fitted to; None where it was fitted to all."""
    evidence = calibration.evidence
    episodes = set(evidence.held_out) - set(evidence.fitted)
    rows = np.flatnonzero([episode in episodes for episode in recordings.episodes])
    return recordings.strikes.take(rows) if len(rows) else None


def _counts(recordings: Recordings, known: RecordedStrikes) -> dict[str, int]:
    return {
        "episodes": len(recordings.strikes) + len(recordings.rejected),
        "rejected": len(recordings.rejected),
        "strikes_known": len(known),
    }


def _figures(calibration: Calibration, before: Figures, found: Comparison) -> dict[str, Any]:
    evidence = calibration.evidence
    return {
        "gap_before": evidence.gap_before,
        "gap_after": evidence.gap_after,
        "accuracy_before": before.accuracy,
        "accuracy_after": found["adapted"].accuracy,
        "inside_90": found["adapted"].inside,
        "judged": found.how,
        "accuracy_law": found["law"].accuracy,
        "params": {name: estimate.value for name, estimate in calibration.estimates.items()},
        "verdicts": {name: estimate.verdict for name, estimate in calibration.estimates.items()},
    }


# Write the iteration's HTML page.


def report(workspace: Workspace, iteration: int, advance: Advance) -> None:
    """Write report.html: the evidence beside that of the iterations before it."""
    write_text(workspace.report_path(iteration), render_collision_report(workspace, iteration))
    advance(1.0, "written")
