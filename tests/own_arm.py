"""A lab's own scenario, as its folder would hold it: an arm of three joints whose task is to come to asked angles."""

from __future__ import annotations

from pathlib import Path

MJCF = """
<mujoco model="own_arm">
  <compiler angle="radian"/>
  <option timestep="0.005" integrator="implicitfast"/>
  <default>
    <joint axis="0 1 0" damping="0.6" range="-2 2" limited="true"/>
    <position kp="25" ctrlrange="-2 2"/>
  </default>
  <worldbody>
    <body name="upper" pos="0 0 1">
      <joint name="base" axis="0 0 1" limited="false"/>
      <joint name="shoulder"/>
      <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.03" mass="1.0"/>
      <body name="lower" pos="0.3 0 0">
        <joint name="elbow"/>
        <geom type="capsule" fromto="0 0 0 0.25 0 0" size="0.02" mass="0.5"/>
      </body>
    </body>
  </worldbody>
  <contact><exclude body1="upper" body2="lower"/></contact>
  <actuator>
    <position name="base" joint="base"/>
    <position name="shoulder" joint="shoulder"/>
    <position name="elbow" joint="elbow"/>
  </actuator>
</mujoco>
"""
YAML = """
name: own_arm
title: An arm of three joints comes to asked angles
mjcf: arm.xml
control_dt_s: 0.05
history_steps: 2
episode_steps: 40
command: q_set
gap_channel: q
channels:
  q: {columns: [base, shoulder, elbow], unit: rad, frame: joint, reads: {joints: [base, shoulder, elbow]}, noise: 0.002}
  q_set: {columns: [base, shoulder, elbow], unit: rad, frame: joint, stamp: held_until_next}
  action: {columns: [base, shoulder, elbow], unit: "1", frame: joint, stamp: held_until_next}
  q_goal: {columns: [base, shoulder, elbow], unit: rad, frame: joint}
parameters:
  damping:
    nominal: 1.0
    lower: 0.2
    upper: 5.0
    unit: "1"
    prior_std: 0.5
    scales: [{joint: base, field: damping}, {joint: shoulder, field: damping}, {joint: elbow, field: damping}]
    description: factor on all dampings
  gain:
    nominal: 1.0
    lower: 0.3
    upper: 2.0
    unit: "1"
    prior_std: 0.3
    scales:
      - {actuator: base, field: position_gain}
      - {actuator: shoulder, field: position_gain}
      - {actuator: elbow, field: position_gain}
    description: factor on all servo gains
"""
TASK = """
import numpy as np

from rsr.scenarios import ObservationTerm, ProgressFigure, Starts, Task
from rsr.scenarios.tasks.task import DisplacementAction


def off(joint):
    return lambda channels: channels["q"][..., joint] - channels["q_goal"][..., joint]


def reset(rng, count):
    goal = rng.uniform(-0.6, 0.6, (count, 3))
    return Starts(rng.uniform(-0.6, 0.6, (count, 3)), {"q_goal": goal})


TASK = Task(
    terms=(
        ObservationTerm("joints", 3, "rad", "joint", ("q",)),
        ObservationTerm("to go", 3, "rad", "joint", ("q_goal", "q"), lambda each: each["q_goal"] - each["q"]),
    ),
    goal=("q_goal",),
    action=DisplacementAction((0.1,) * 3, (-2.0,) * 3, (2.0,) * 3),
    reset=reset,
    reward=lambda channels: -np.linalg.norm(channels["q"] - channels["q_goal"], axis=-1),
    figures=(
        ProgressFigure("base", off(0), "rad", "q", tolerance=0.1),
        ProgressFigure("shoulder", off(1), "rad", "q", tolerance=0.1),
        ProgressFigure("elbow", off(2), "rad", "q", tolerance=0.1),
        ProgressFigure("way of all joints", lambda each: sum(off(joint)(each) for joint in range(3)), "rad", "q"),
    ),
)
"""


def write_own_arm(folder: Path) -> Path:
    """Write the scenario's files; returns the path of the YAML file."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in {"arm.xml": MJCF, "scenario.yaml": YAML, "task.py": TASK}.items():
        (folder / name).write_text(text.lstrip())
    return folder / "scenario.yaml"
