"""How well a servo's logs are predicted by effects that a YAML file declares, and what effects cost.

The logs are those of Rhoban/bam (Dynamixel XL330, a weight on an arm, four gains, runs of 6 s), as
`servo_pendulum.parquet` in the folder that RSR_SHARED_DATA names, by default `../shared/data`; the scenario is
`examples/servo`, untouched. One run of each gain is fitted, and the other of each gain judges, simulated from its first
row to its end; then the other way round.

- servo_mae_rad: mean absolute error of the position over whole judged runs; mean over draws and both ways.
- servo_cpu_s: of one fit, its cross-validation and intervals included.
- servo_mae_over_bam_m6: that over the same of BAM's m6, fitted to the same runs by its own code (`_bam_servo.py`; one
  search a way, of BAM_TRIALS trials). It needs Python 3.12 with `better-actuator-models` and `optuna`, which BAM_PYTHON
  names; where that is not set, -1.
- effect_cost_ratio: CPU time of a rollout with the servo's and the gearbox's law over that of the same scene with a
  position servo and the dry friction and damping that MuJoCo has.
- effects_held, effects_held_identified: with `--effects N`, the share of intervals that hold what N stand-ins an effect
  hide, of all parameters and of identified ones; NAME_held and NAME_cpu_s by effect (`_effect_recovery.py`).
- friction_mN_...: with `--models 1`, each of BAM's friction models fitted on three gains and judged on the fourth.

`--draws N` seeds a way, 5 by default; with `--quick` one, one way, and a smaller budget.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from _common import Figure, run
from _effect_recovery import recovered

from rsr.calibration import Division, Effort, calibrator, start_prior
from rsr.common import ignore, write_text
from rsr.config import TuneConfig
from rsr.scenarios import Scenario, load_scenario
from rsr.sessions import Episode, Session, read_session
from rsr.simulators import MujocoSimulator

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "servo"
METHOD, BUDGET, QUICK_BUDGET = "sysid", 200, 40
BAM_TRIALS = 1000
MASS_KG, LENGTH_M, SUPPLY_V = 0.49, 0.1, 7.4
HELD_OUT_GAIN = 800.0
_STRIBECK: dict[str, str | float] = {"stribeck": "stribeck", "stribeck_speed": "stribeck_speed", "stribeck_power": 1.35}
_DIRECTIONAL: dict[str, str | float] = {
    name: name for name in ("motor_load", "external_load", "motor_load_stribeck", "external_load_stribeck")
}
_QUADRATIC: dict[str, str | float] = {"motor_quadratic": "motor_quadratic", "external_quadratic": "external_quadratic"}
_LOAD: dict[str, str | float] = {"load": "motor_load"}
MODELS: dict[str, Mapping[str, str | float]] = {
    "friction_m1": {},
    "friction_m2": _STRIBECK,
    "friction_m3": _LOAD,
    "friction_m4": _STRIBECK | _LOAD | {"load_stribeck": "motor_load_stribeck"},
    "friction_m5": _STRIBECK | _DIRECTIONAL,
    "friction_m6": _STRIBECK | _DIRECTIONAL | _QUADRATIC,
}
"""Law -> its arguments beside `coulomb` and `viscous`."""


def measure(quick: bool, draws: int = 5, models: int = 0, effects: int = 0) -> dict[str, Figure]:
    """Ingest, fit and judge."""
    if effects:
        return effects_recovered(effects)
    with tempfile.TemporaryDirectory() as folder:
        scenario, session = ingested(Path(folder))
        figures = judged_both_ways(scenario, session, 1 if quick else draws, quick)
        if bam := os.environ.get("BAM_PYTHON"):
            peer = float(np.mean([one["mae_rad"] for one in bam_both_ways(bam, session, quick)]))
            figures |= {"bam_m6_mae_rad": peer, "servo_mae_over_bam_m6": figures["servo_mae_rad"] / peer}
        figures["effect_cost_ratio"] = cost_ratio(scenario, session)
        if models:
            figures |= {f"{law}_mae_rad": on_another_gain(law, session, Path(folder)) for law in MODELS}
    return figures


def effects_recovered(count: int) -> dict[str, Figure]:
    """How often intervals hold the truth, over the effects that are built in; nothing else is measured then."""
    figures, total = {}, np.zeros(4)
    with tempfile.TemporaryDirectory() as folder:
        for name, counts, seconds in recovered(count, Path(folder)):
            figures |= {f"{name}_held": counts[0] / counts[2], f"{name}_cpu_s": seconds}
            total += counts
    held, held_identified, intervals, identified = total.tolist()
    return figures | {"effects_held": held / intervals, "effects_held_identified": held_identified / max(identified, 1)}


def ingested(folder: Path) -> tuple[Scenario, Session]:
    """Store the logs by the command that a user has, with the answers that the example keeps."""
    shutil.copytree(EXAMPLE, folder / "servo")
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    logs = Path(os.environ.get("RSR_SHARED_DATA", beside)) / "servo_pendulum.parquet"
    words = ["ingest", str(logs), "--scenario", "servo/scenario.yaml", "--map", "servo/mapping.yaml"]
    subprocess.run([sys.executable, "-m", "rsr", *words], cwd=folder, check=True, capture_output=True)
    return load_scenario(folder / "servo"), read_session(folder / "data" / "servo_pendulum" / "session-001")


def judged_both_ways(scenario: Scenario, session: Session, draws: int, quick: bool) -> dict[str, Figure]:
    first, second = one_of_each_gain(session)
    errors, seconds = [], []
    for fitted, judging in ((first, second),) if quick else ((first, second), (second, first)):
        for seed in range(draws):
            before = time.process_time()
            values = fitted_to(scenario, session, fitted, judging, seed, QUICK_BUDGET if quick else BUDGET)
            seconds.append(time.process_time() - before)
            errors.append(mean_error(scenario, [session.episodes[index] for index in judging], values))
    return {
        "servo_mae_rad": float(np.mean(errors)),
        "servo_worst_mae_rad": float(np.max(errors)),
        "servo_mae_over_bam_m6": -1,
        "servo_cpu_s": float(np.mean(seconds)),
        "servo_fits": len(errors),
    }


def bam_both_ways(python: str, session: Session, quick: bool) -> list[dict[str, float]]:
    """What BAM's own code makes of the same runs, one way and the other."""
    first, second = ([bam_log(session.episodes[index]) for index in each] for each in one_of_each_gain(session))
    script, trials = Path(__file__).with_name("_bam_servo.py"), 50 if quick else BAM_TRIALS
    found = []
    for fitted, judged in ((first, second),) if quick else ((first, second), (second, first)):
        asked = json.dumps({"fitted": fitted, "judged": judged, "trials": trials, "seed": 0})
        done = subprocess.run([python, str(script)], input=asked, capture_output=True, text=True, check=True)
        found.append(json.loads(done.stdout))
    return found


def bam_log(episode: Episode) -> dict[str, Any]:
    """A run as BAM stores it, in its steps of 5 ms."""
    time_s = np.arange(0.0, episode.time_s[-1], 0.005)
    columns = {"position": episode["shaft_position"][:, 0], "goal_position": episode["goal"][:, 0]}
    rows = {name: np.interp(time_s, episode.time_s, column) for name, column in columns.items()}
    on = np.interp(time_s, episode.time_s, episode["firmware"][:, 1]) > 0.5
    entries = [
        {"position": float(position), "goal_position": float(goal), "torque_enable": bool(enabled)}
        for position, goal, enabled in zip(rows["position"], rows["goal_position"], on, strict=True)
    ]
    kp = float(episode["firmware"][0, 0])
    numbers = {"mass": MASS_KG, "arm_mass": 0.0, "length": LENGTH_M, "kp": kp, "vin": SUPPLY_V, "dt": 0.005}
    return numbers | {"entries": entries}


def one_of_each_gain(session: Session) -> tuple[list[int], list[int]]:
    """Positions of the first run of each gain, and of the second."""
    gains = [float(episode["firmware"][0, 0]) for episode in session.episodes]
    places = {gain: [index for index, each in enumerate(gains) if each == gain] for gain in sorted(set(gains))}
    return [each[0] for each in places.values()], [each[1] for each in places.values()]


def fitted_to(
    scenario: Scenario, session: Session, fitted: Sequence[int], judging: Sequence[int], seed: int, budget: int
) -> np.ndarray:
    """Values [P] of a fit to some runs that the others do not touch."""
    episodes = tuple(replace(session.episodes[index], index=place) for place, index in enumerate([*fitted, *judging]))
    fitting = calibrator(TuneConfig(method=METHOD), Effort(budget=budget, threads=1), Division(judging=len(judging)))
    found = fitting.fit(scenario, (replace(session, episodes=episodes),), start_prior(scenario), seed, ignore)
    return found.vector()


def mean_error(scenario: Scenario, episodes: Sequence[Episode], values: np.ndarray) -> float:
    """Mean absolute error of the position, rad, over whole runs simulated from their first row."""
    steps = min(len(episode) for episode in episodes) - 1
    starts = np.array([scenario.recorded_state(episode, 0) for episode in episodes])
    commands = np.array([scenario.commands_from(episode, 0, steps) for episode in episodes])
    with MujocoSimulator(scenario, threads=1) as simulator:
        predicted = simulator.rollout(starts, commands, values)[:, 1:, 0]
    recorded = np.array([episode["shaft_position"][1 : steps + 1, 0] for episode in episodes])
    return float(np.abs(predicted - recorded).mean())


def on_another_gain(law: str, session: Session, folder: Path) -> float:
    """Mean absolute error on the runs of one gain, fitted on those of all others."""
    scenario = with_friction(law, folder)
    gains = np.array([float(episode["firmware"][0, 0]) for episode in session.episodes])
    fitted, judging = np.flatnonzero(gains != HELD_OUT_GAIN).tolist(), np.flatnonzero(gains == HELD_OUT_GAIN).tolist()
    values = fitted_to(scenario, session, fitted, judging, 0, BUDGET)
    return mean_error(scenario, [session.episodes[index] for index in judging], values)


def with_friction(law: str, folder: Path) -> Scenario:
    """The example with another friction model of its gearbox."""
    own = folder / law
    shutil.copytree(folder / "servo", own)
    document: dict[str, Any] = yaml.safe_load((own / "scenario.yaml").read_text())
    arguments = {"coulomb": "coulomb", "viscous": "viscous", **MODELS[law]}
    document["effects"]["gearbox"] |= {"law": law, "arguments": arguments}
    friction = {each for law in MODELS.values() for each in law.values()} - set(arguments.values())
    document["parameters"] = {name: each for name, each in document["parameters"].items() if name not in friction}
    write_text(own / "scenario.yaml", yaml.safe_dump(document, sort_keys=False))
    return load_scenario(own)


def cost_ratio(scenario: Scenario, session: Session) -> float:
    """CPU time of many short rollouts with effects over that without."""
    episode, count, steps = session.episodes[0], 256, 50
    starts = np.repeat(scenario.recorded_state(episode, 0)[None], count, axis=0)
    commands = np.repeat(scenario.commands_from(episode, 0, steps)[None], count, axis=0)
    model = scenario.spec()
    for joint in model.joints:
        joint.damping[0], joint.frictionloss = 0.01, 0.01
    bare = replace(scenario, effects=None, base_model=model.compile())
    values = scenario.space.nominal
    with MujocoSimulator(scenario, threads=1) as one, MujocoSimulator(bare, threads=1) as other:
        calls = (
            (lambda: one.rollout(starts, commands, values)),
            (lambda: other.rollout(starts, commands[..., :1], values)),
        )
        # In turn, so that a busy machine disturbs both alike.
        seconds = [[cpu_seconds(call) for call in calls] for _ in range(6)][1:]
    return min(each[0] for each in seconds) / min(each[1] for each in seconds)


def cpu_seconds(call: Callable[[], object]) -> float:
    before = time.process_time()
    call()
    return time.process_time() - before


if __name__ == "__main__":
    run(measure, __doc__ or "", draws=5, models=0, effects=0)
