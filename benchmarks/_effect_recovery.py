"""How often the interval of an effect's parameter holds its truth: stand-ins with known parameters, by effect.

A weight on an arm on one joint, swung by commands for four runs of 1.5 s, its position measured with 0.5 mrad of noise.
Truths are drawn from the prior (30 % about nominal), one stand-in each; fits are `rsr.calibrate` with its defaults.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import yaml

import rsr
from rsr.calibration import draw_parameters, start_calibration
from rsr.scenarios import Scenario, load_scenario
from rsr.simulators import MujocoSimulator

RUNS, STEPS, DT_S, NOISE_RAD = 4, 150, 0.01, 0.0005
SCENE = """<mujoco><option timestep="0.005" integrator="implicitfast"/><worldbody><body>
<joint name="shaft" axis="0 1 0" armature="0.003" damping="{damping}"/>
<inertial pos="0 0 -0.1" mass="0.4" diaginertia="0.0001 0.0001 0.0001"/></body></worldbody>
<actuator>{actuator}</actuator></mujoco>"""
POSITION = '<position name="drive" joint="shaft" kp="3" kv="0.05"/>'
MOTOR = '<motor name="drive" joint="shaft"/>'
FIRMWARE = {"law": "servo", "actuators": "drive", "arguments": {
    "gain": 4.0, "supply_v": 7.4, "torque_constant": 0.4, "resistance": 3.4, "dead_band": 0.01}}  # fmt: skip
_STRIBECK = {"coulomb": 0.02, "viscous": 0.02, "stribeck": 0.03, "stribeck_speed": 0.3, "stribeck_power": 1.35}
_SHARES = {"motor_load": 0.1, "external_load": 0.15, "motor_load_stribeck": 0.08, "external_load_stribeck": 0.1}


@dataclass(frozen=True)
class Case:
    """An effect, the numbers that are parameters, and what else the joint needs."""

    law: str
    parameters: Mapping[str, float]
    on: str = "joints"
    constants: Mapping[str, float] = field(default_factory=dict)
    beside: Mapping[str, Any] = field(default_factory=dict)
    actuator: str = POSITION
    damping: float = 0.02
    amplitude: float = 1.0

    def section(self) -> dict[str, Any]:
        """Effects, as the YAML file says them."""
        names = {name: name for name in self.parameters if name not in ("stribeck_power",)}
        given = {"law": self.law, self.on: "shaft" if self.on == "joints" else "drive"}
        fixed = {"stribeck_power": 1.35} if "stribeck_power" in self.parameters else {}
        return {**self.beside, "own": {**given, "arguments": {**names, **fixed, **self.constants}}}


def _friction(law: str, parameters: Mapping[str, float]) -> Case:
    return Case(law, parameters, beside={"firmware": FIRMWARE}, damping=0.0)


CASES = {
    "servo": Case("servo", {"torque_constant": 0.4, "resistance": 3.4, "dead_band": 0.02}, "actuators",
                  {"gain": 4.0, "supply_v": 7.4}),
    "dc_motor": Case("dc_motor", {"torque_constant": 0.04, "resistance": 3.0}, "actuators",
                     {"largest_voltage": 7.4, "gear": 10.0}, actuator=MOTOR, amplitude=5.0),
    "friction_m1": _friction("friction_m1", {"coulomb": 0.03, "viscous": 0.02}),
    "friction_m2": _friction("friction_m2", _STRIBECK),
    "friction_m3": _friction("friction_m3", {"coulomb": 0.02, "viscous": 0.02, "load": 0.15}),
    "friction_m4": _friction("friction_m4", {**_STRIBECK, "load": 0.12, "load_stribeck": 0.1}),
    "friction_m5": _friction("friction_m5", {**_STRIBECK, **_SHARES}),
    "friction_m6": _friction("friction_m6", {**_STRIBECK, **_SHARES, "motor_quadratic": 0.3,
                                             "external_quadratic": 0.3}),
    "backlash": Case("backlash", {"gap": 0.08, "stiffness": 4.0}, "actuators", {"damping": 0.05}),
    "drag": Case("drag", {"quadratic": 0.01}),
    "latency": Case("latency", {"seconds": 0.02}, "actuators"),
    "lag": Case("lag", {"time_constant": 0.04}, "actuators"),
}  # fmt: skip


def recovered(count: int, folder: Path, names: list[str] | None = None) -> Iterator[tuple[str, list[int], float]]:
    """Yield for each effect how many intervals hold, and identified ones; how many there are, of both; CPU-s a fit."""
    for name in names or list(CASES):
        before, counts = time.process_time(), np.zeros(4, int)
        for seed in range(count):
            counts += one(CASES[name], folder / name, seed)
        yield name, counts.tolist(), (time.process_time() - before) / count


def one(case: Case, folder: Path, seed: int) -> np.ndarray:
    """Fit one stand-in."""
    scenario = scenario_of(case, folder)
    rng = np.random.default_rng([seed, len(case.parameters)])
    truth = draw_parameters(scenario, start_calibration(scenario), 1, rng)[0]
    fit = rsr.calibrate(scenario, recordings(case, scenario, truth, rng), method="sysid", progress=False, seed=seed)
    held, known = [], []
    for name, value in zip(scenario.space.names, truth, strict=True):
        lower, upper = fit.interval(name)
        held.append(lower <= value <= upper)
        known.append(fit.verdicts[name] == "identified")
    held, known = np.array(held), np.array(known)
    return np.array([held.sum(), (held & known).sum(), len(held), known.sum()])


def scenario_of(case: Case, folder: Path) -> Scenario:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "scene.xml").write_text(SCENE.format(damping=case.damping, actuator=case.actuator))
    joint = {"frame": "joint", "unit": "rad"}
    document = {
        "name": "one_joint", "title": "A weight on a joint", "mjcf": "scene.xml", "control_dt_s": DT_S,
        "episode_steps": STEPS, "gap_channel": "shaft_position", "gap_horizon_s": 1.0, "command": "goal",
        "channels": {
            "shaft_position": {"columns": ["position"], "reads": {"joints": ["shaft"]}, "noise": NOISE_RAD, **joint},
            "goal": {"columns": ["goal_position"], "stamp": "held_until_next", **joint},
        },
        "parameters": {
            name: {"nominal": value, "lower": value / 10, "upper": value * 5, "unit": "1", "prior_std": 0.3}
            for name, value in case.parameters.items() if name != "stribeck_power"
        },
        "effects": case.section(),
    }  # fmt: skip
    (folder / "scenario.yaml").write_text(yaml.safe_dump(document, sort_keys=False))
    return load_scenario(folder)


def recordings(
    case: Case, scenario: Scenario, truth: np.ndarray, rng: np.random.Generator
) -> list[dict[str, np.ndarray]]:
    """Runs at rest at first, then under sines that slow down to nothing, and steps: fast and slow motion both."""
    time_s = DT_S * np.arange(STEPS)
    rates, phases = rng.uniform(2.0, 12.0, (2, RUNS, 3, 1))
    waves = np.sin(rates * time_s + phases).mean(axis=1) * np.where(time_s < 1.0, 1.5, 0.4)
    steps = np.repeat(rng.uniform(-1.0, 1.0, (RUNS, STEPS // 30)), 30, axis=1)
    goal = case.amplitude * (waves + 0.5 * steps) * (time_s > 0.1)
    sent = np.concatenate([np.zeros((RUNS, scenario.history_steps)), goal], axis=1)[..., None]
    with MujocoSimulator(scenario, threads=1) as simulator:
        rows = simulator.rollout(np.zeros((RUNS, scenario.state_size)), sent, truth)[..., :1]
    noisy = rows + rng.normal(0.0, NOISE_RAD, rows.shape)
    ended = np.concatenate([goal, goal[:, -1:]], axis=1)[..., None]
    return [{"shaft_position": q, "goal": u} for q, u in zip(noisy, ended, strict=True)]
