"""A simulated arm of two joints whose damping and servo gain are not those of its MJCF: what a lab would record."""

from __future__ import annotations

import mujoco
import numpy as np

ARM = """
<mujoco model="arm">
  <option timestep="0.005" integrator="implicitfast"/>
  <default>
    <joint axis="0 1 0" damping="0.4"/>
    <position kp="20"/>
  </default>
  <worldbody>
    <body name="upper" pos="0 0 1">
      <joint name="shoulder"/>
      <geom name="upper" type="capsule" fromto="0 0 0 0.3 0 0" size="0.03" mass="1.5"/>
      <body name="lower" pos="0.3 0 0">
        <joint name="elbow"/>
        <geom name="lower" type="capsule" fromto="0 0 0 0.25 0 0" size="0.02" mass="0.8"/>
      </body>
    </body>
  </worldbody>
  <contact><exclude body1="upper" body2="lower"/></contact>
  <actuator>
    <position name="shoulder" joint="shoulder"/>
    <position name="elbow" joint="elbow"/>
  </actuator>
</mujoco>
"""
DT = 0.01
NOISE = 0.002
HIDDEN = {"damping": 1.6, "gain": 0.8}
"""Factors on what the MJCF says."""


def hidden_arm() -> mujoco.MjModel:
    """The arm as it really is."""
    model = mujoco.MjModel.from_xml_string(ARM)
    model.dof_damping[:] *= HIDDEN["damping"]
    model.actuator_gainprm[:, 0] *= HIDDEN["gain"]
    model.actuator_biasprm[:, 1] *= HIDDEN["gain"]
    return model


def record(count: int, seed: int, seconds: float = 2.0) -> list[tuple[np.ndarray, np.ndarray]]:
    """Runs (q [T, 2], u [T, 2]) of unequal lengths: smooth set points around a hanging arm, encoder noise."""
    rng = np.random.default_rng(seed)
    return [_run(rng, round((seconds + 0.1 * index) / DT)) for index in range(count)]


def _run(rng: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
    model = hidden_arm()
    data = mujoco.MjData(model)
    time_s = DT * np.arange(rows)[:, None]
    waves = [rng.uniform(0.2, 0.6, 2) * np.sin(rng.uniform(2, 9, 2) * time_s + rng.uniform(0, 6, 2)) for _ in range(2)]
    commands = 0.5 + sum(waves)
    data.qpos[:] = commands[0]
    measured = []
    for command in commands:
        measured.append(data.qpos + NOISE * rng.standard_normal(2))
        data.ctrl[:] = command
        mujoco.mj_step(model, data, round(DT / model.opt.timestep))
    return np.array(measured), commands
