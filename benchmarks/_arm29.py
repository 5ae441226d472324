"""The part of `strangers.py` on an arm with 29 unknown numbers: Menagerie's WidowX 250s, recorded by plain MuJoCo."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np
import yaml
from _common import Figure
from baselines.sysid_whole_runs import fit_whole_runs
from real_recordings import shared

from rsr.api.arrays import session_from_arrays
from rsr.calibration import calibrator, start_prior
from rsr.common import generator, ignore
from rsr.config import TuneConfig
from rsr.scenarios import Scenario, load_scenario

ROBOT = "../robots/trossen_wx250s"
JOINTS = ("waist", "shoulder", "elbow", "forearm_roll", "wrist_angle", "wrist_rotate")
GRIPPER = "gripper"
HAND = "wx250s/gripper_link"
PAYLOAD = '<body name="payload" pos="0.1 0 0"><inertial pos="0 0 0" mass="0.2" diaginertia="2e-4 2e-4 2e-4"/></body>'
DT_S, ROWS, NOISE_RAD = 0.02, 400, 0.001
FITTED, JUDGES = 12, 6
PER_JOINT = {"kp": (50.0, 0.5), "damping": (1.0, 0.7), "armature": (0.1, 0.5), "friction": (0.1, 0.7)}
"""Kind -> what the maker's file says (of damping, which it leaves out, a guess) and the standard deviation of the
logarithm of what may be true instead."""
DELAY = "delay"
STEP = 0.02
"""Of a parameter, in standard deviations of its prior, where the bound is differentiated."""
Z95 = 1.96


def arm_figures(quick: bool) -> dict[str, Figure]:
    """See `strangers.py`, arm."""
    with tempfile.TemporaryDirectory() as made:
        lab = Lab(_written(Path(made)))
        truth = lab.drawn_truth(generator(0, "arm29", "truth"))
        runs = [lab.run(truth, generator(0, "arm29", "run", number)) for number in range(2 * FITTED)]
        session = session_from_arrays(lab.scenario, runs, "arm")
        fitting = calibrator(TuneConfig(fit_episodes=2 if quick else FITTED))
        begun = time.process_time()
        found = fitting.fit(lab.scenario, (session,), start_prior(lab.scenario), 0, ignore)
        spent = time.process_time() - begun
        judges = [lab.run(truth, generator(0, "arm29", "judge", number)) for number in range(JUDGES)]
        fitted = [runs[index] for index in found.evidence.fitted]
        space = lab.scenario.space
        ends = [np.array([getattr(each, side) for each in found.estimates.values()]) for side in ("lower", "upper")]
        bound = lab.bound(truth, fitted)
        return {
            "arm29_cpu_s": spent,
            "arm29_identified": sum(each.verdict == "identified" for each in found.estimates.values()),
            "arm29_status": found.status,
            "arm29_nominal_error_over_noise": lab.error_over_noise(space.nominal, judges),
            **lab.judged("arm29", found.vector(), space.to_coordinates(np.array(ends)), truth, bound, judges),
            **lab.by_sysid(truth, fitted, bound, judges),
        }


@dataclass(frozen=True)
class Lab:
    """The arm in plain MuJoCo: `rsr` records, sets and simulates nothing here."""

    scenario: Scenario

    def drawn_truth(self, rng: np.random.Generator) -> dict[str, float]:
        """Draw the hidden numbers from the prior that the scenario states, within two thirds of its bounds."""
        space = self.scenario.space
        centre = space.to_coordinates(space.nominal)
        drawn = space.to_values(centre + space.prior_std * rng.normal(size=len(centre)).clip(-1.5, 1.5))
        named = space.mapping(np.clip(drawn, space.lower, space.upper))
        return named | {DELAY: float(0.002 * rng.integers(5, 26))}  # whole physics steps

    def run(self, truth: Mapping[str, float], rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Record eight seconds of slow and fast sines around the keyframe."""
        home = self.model.key_ctrl[0][: len(JOINTS)]
        time_s = DT_S * np.arange(ROWS)[:, None, None]
        speeds, phases = rng.uniform(1.0, 7.0, (len(JOINTS), 3)), rng.uniform(0.0, 2 * np.pi, (len(JOINTS), 3))
        waves = np.sin(speeds * time_s + phases) * rng.uniform(0.05, 0.25, (len(JOINTS), 3))
        setpoint = home + waves.sum(axis=2) * np.minimum(1.0, time_s[:, :, 0])
        readings = self.angles(truth, setpoint) + NOISE_RAD * rng.normal(size=setpoint.shape)
        return {"q": readings, "u": np.column_stack([setpoint, np.full(ROWS, self.model.key_ctrl[0][-1])])}

    def angles(self, truth: Mapping[str, float], setpoint: np.ndarray) -> np.ndarray:
        """Simulate joint angles [T, 6]; the arm has come to rest at the keyframe."""
        model = self._set(truth)
        data, dt = mujoco.MjData(model), model.opt.timestep
        mujoco.mj_resetDataKeyframe(model, data, 0)
        data.ctrl[: len(JOINTS)] = setpoint[0]
        mujoco.mj_step(model, data, 1500)
        commands = np.concatenate([setpoint[:1], setpoint])
        found, late = np.empty_like(setpoint), truth[DELAY]
        for row in range(len(setpoint)):
            found[row] = data.qpos[: len(JOINTS)]
            for step in range(round(DT_S / dt)):
                # A command that was given at row r is in force from r DT + late on; where that is within a physics
                # step, each of the two for its share of it. Hidden delays are whole steps.
                begins = (row * DT_S + step * dt - late) / DT_S
                first, last = (int(np.floor(edge)) for edge in (begins + 1e-9, begins + dt / DT_S - 1e-9))
                share = 1.0 if first == last else (last - begins) * DT_S / dt
                old, new = commands[max(0, first + 1)], commands[max(0, last + 1)]
                data.ctrl[: len(JOINTS)] = share * old + (1.0 - share) * new
                mujoco.mj_step(model, data)
        return found

    def judged(
        self,
        prefix: str,
        values: np.ndarray,
        ends: np.ndarray,
        truth: Mapping[str, float],
        bound: np.ndarray,
        judges: list[dict[str, np.ndarray]],
    ) -> dict[str, Figure]:
        """Judge values [P] and the ends [2, P] of their intervals, in unconstrained coordinates."""
        space = self.scenario.space
        there = space.to_coordinates(np.array([truth[name] for name in space.names]))
        return {
            f"{prefix}_error_over_noise": self.error_over_noise(values, judges),
            f"{prefix}_coverage": float(np.mean((ends[0] <= there) & (there <= ends[1]))),
            f"{prefix}_width_over_bound": float(np.median((ends[1] - ends[0]) / bound)),
        }

    def by_sysid(
        self,
        truth: Mapping[str, float],
        fitted: list[dict[str, np.ndarray]],
        bound: np.ndarray,
        judges: list[dict[str, np.ndarray]],
    ) -> dict[str, Figure]:
        """Fit the same runs with `baselines/sysid_whole_runs.py`, and judge it alike."""
        space, readings = self.scenario.space, np.concatenate([run["q"].ravel() for run in fitted])

        def residual(point: np.ndarray) -> np.ndarray:
            values = np.clip(space.to_values(point), space.lower, space.upper)
            return (self._all(space.mapping(values), fitted) - readings) / NOISE_RAD

        bounds = (space.to_coordinates(space.lower), space.to_coordinates(space.upper))
        begun = time.process_time()
        point, std = fit_whole_runs(residual, space.to_coordinates(space.nominal), bounds)
        spent = time.process_time() - begun
        ends = point + Z95 * std * np.array([[-1.0], [1.0]])
        found = self.judged("arm29_sysid", space.to_values(point), ends, truth, bound, judges)
        return {"arm29_sysid_cpu_s": spent, **found}

    def error_over_noise(self, values: np.ndarray, judges: list[dict[str, np.ndarray]]) -> float:
        """Compare whole runs with values [P], open loop in plain MuJoCo, with readings."""
        named = self.scenario.space.mapping(values)
        left = [self.angles(named, run["u"][:, : len(JOINTS)]) - run["q"] for run in judges]
        return float(np.sqrt(np.mean(np.square(left))) / NOISE_RAD)

    def bound(self, truth: Mapping[str, float], fitted: list[dict[str, np.ndarray]]) -> np.ndarray:
        """Widths [P] of 95 % intervals by the Cramer-Rao bound with the scenario's prior."""
        space = self.scenario.space
        there = space.to_coordinates(np.array([truth[name] for name in space.names]))
        slopes = []
        for index in range(len(there)):
            ends = [there + sign * STEP * space.prior_std * np.eye(len(there))[index] for sign in (1, -1)]
            sides = [self._all(space.mapping(space.to_values(end)), fitted) for end in ends]
            slopes.append((sides[0] - sides[1]) / (2 * STEP * space.prior_std[index]))
        jacobian = np.stack(slopes, axis=-1)
        information = jacobian.T @ jacobian / NOISE_RAD**2 + np.diag(space.prior_std**-2.0)
        return 2 * Z95 * np.sqrt(np.diag(np.linalg.inv(information)))

    def _all(self, values: Mapping[str, float], runs: list[dict[str, np.ndarray]]) -> np.ndarray:
        return np.concatenate([self.angles(values, run["u"][:, : len(JOINTS)]).ravel() for run in runs])

    @property
    def model(self) -> mujoco.MjModel:
        return self._set({})

    def _set(self, values: Mapping[str, float]) -> mujoco.MjModel:
        spec = mujoco.MjSpec.from_file(str(shared(ROBOT) / "wx250s.xml"))
        spec.option.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
        added = spec.body(HAND).add_body(name="payload", pos=[0.1, 0, 0], mass=0.2, inertia=[2e-4, 2e-4, 2e-4])
        added.explicitinertial, added.ipos, added.iquat = True, [0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]
        model = spec.compile()
        payload = model.body("payload")
        payload.inertia[:] *= values.get("payload_mass", 0.2) / payload.mass
        payload.mass[:] = values.get("payload_mass", 0.2)
        payload.ipos[:] = [values.get(f"payload_{axis}", 0.0) for axis in "xyz"]
        for name in JOINTS:
            joint, servo = model.joint(name), model.actuator(name)
            if f"kp_{name}" in values:
                servo.gainprm[0], servo.biasprm[1] = values[f"kp_{name}"], -values[f"kp_{name}"]
                joint.damping[:], joint.armature[:] = values[f"damping_{name}"], values[f"armature_{name}"]
                joint.frictionloss[:] = values[f"friction_{name}"]
        mujoco.mj_setConst(model, mujoco.MjData(model))
        return model


def _written(folder: Path) -> Scenario:
    """Write the scenario as a stranger would: the maker's file, a payload on the hand, a prior for every number."""
    shutil.copytree(shared(ROBOT), folder / "robot")
    fields = {"kp": "actuator position_gain", "damping": "joint damping", "armature": "joint armature"}
    parameters: dict[str, object] = {}
    for kind, (nominal, std) in PER_JOINT.items():
        element, field = fields.get(kind, "joint friction_loss").split()
        for name in JOINTS:
            parameters[f"{kind}_{name}"] = {
                "nominal": nominal, "lower": nominal / 8, "upper": nominal * 8, "unit": "1", "prior_std": std,
                "sets": [{element: name, "field": field}],
            }  # fmt: skip
    sets = [{"body": "payload", "field": "mass"}]
    parameters["payload_mass"] = {
        "nominal": 0.2, "lower": 0.01, "upper": 1.0, "unit": "kg", "prior_std": 0.7, "sets": sets,
    }  # fmt: skip
    for axis in "xyz":
        parameters[f"payload_{axis}"] = {
            "nominal": 0.0, "lower": -0.08, "upper": 0.08, "unit": "m", "scale": "linear", "unit_step": 0.02,
            "prior_std": 1.0, "sets": [{"body": "payload", "field": f"com_{axis}"}],
        }  # fmt: skip
    parameters[DELAY] = {
        "nominal": 0.02, "lower": 0.0, "upper": 0.08, "unit": "s", "scale": "linear", "unit_step": 0.02,
        "prior_std": 1.0, "delays": "command",
    }  # fmt: skip
    columns, in_joints = list(JOINTS), {"unit": "rad", "frame": "joint"}
    text = {
        "name": "arm29", "title": "A WidowX 250s with an unknown payload", "mjcf": "robot/wx250s.xml",
        "adds": {HAND: PAYLOAD, "mjcf": '<option><flag contact="disable"/></option>'},
        "control_dt_s": DT_S, "episode_steps": ROWS, "command": "u", "gap_channel": "q",
        "channels": {
            "q": {**in_joints, "columns": columns, "reads": {"joints": columns}, "noise": NOISE_RAD},
            "u": {**in_joints, "columns": [*columns, GRIPPER], "stamp": "held_until_next"},
        },
        "parameters": parameters,
    }  # fmt: skip
    path = folder / "scenario.yaml"
    path.write_text(yaml.safe_dump(text, sort_keys=False))
    return load_scenario(str(path))
