"""A two-joint arm with sensors of every stage, and filtered servos: what robots of others have and ours had not."""

from __future__ import annotations

import numpy as np

import rsr
from rsr.scenarios import Scenario
from rsr.simulators import MujocoSimulator

MJCF = """
<mujoco model="sensing_arm">
  <option timestep="0.002" integrator="implicitfast"/>
  <worldbody>
    <body name="upper" pos="0 0 1">
      <joint name="shoulder" axis="0 1 0" damping="0.4"/>
      <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.02" mass="0.6"/>
      <body name="fore" pos="0.3 0 0">
        <joint name="elbow" axis="0 1 0" damping="0.3"/>
        <geom type="capsule" fromto="0 0 0 0.25 0 0" size="0.02" mass="0.4"/>
        <site name="tool" pos="0.25 0 0"/>
      </body>
    </body>
  </worldbody>
  <actuator>
    <position name="shoulder" joint="shoulder" kp="20" kv="1"{timeconst}/>
    <position name="elbow" joint="elbow" kp="15" kv="1"{timeconst}/>
  </actuator>
  <sensor>
    <gyro name="gyro" site="tool"/>
    <accelerometer name="accelerometer" site="tool"/>
    <framepos name="tool_pos" objtype="site" objname="tool"/>
    <framequat name="tool_quat" objtype="site" objname="tool"/>
    <jointvel name="shoulder_speed" joint="shoulder"/>
    <jointvel name="elbow_speed" joint="elbow"/>
    <jointactuatorfrc name="shoulder_torque" joint="shoulder"/>
    <jointpos name="shoulder_angle" joint="shoulder"/>
    <jointpos name="elbow_angle" joint="elbow"/>
    <torque name="wrist_torque" site="tool"/>
    <clock name="clock"/>
  </sensor>
</mujoco>
"""
DT_S = 0.02


def sensing_arm(folder, measured=None, timeconst: float | None = None, tune=None) -> Scenario:
    """The arm as a scenario, of an MJCF written into a folder; joints are always measured."""
    path = folder / "sensing_arm.xml"
    path.write_text(MJCF.format(timeconst=f' timeconst="{timeconst}"' if timeconst else ""))
    return rsr.Scenario.from_mjcf(
        path,
        dt=DT_S,
        measured={"q": rsr.joints("shoulder", "elbow", noise=0.001), **(measured or {})},
        command={"u": rsr.actuators("shoulder", "elbow")},
        tune=tune or {"damping": rsr.scale("joint.damping"), "gain": rsr.scale("actuator.position_gain")},
        window_s=0.3,
    )


def recorded_runs(scenario: Scenario, params, count: int, seconds: float, seed: int, noisy: bool = True) -> list[dict]:
    """Runs of the arm with given parameters, from rest under steps of commands, with the stated noise."""
    rng = np.random.default_rng(seed)
    steps, runs = round(seconds / DT_S), []
    with MujocoSimulator(scenario, threads=1) as simulator:
        for _ in range(count):
            targets = rng.uniform(-0.8, 0.8, (1 + steps // 15, 2))
            targets[0] = 0.0
            commands = np.repeat(targets, 15, axis=0)[:steps]
            history = np.repeat(commands[:1], scenario.history_steps, axis=0)
            start = np.zeros((1, scenario.state_size))
            states = simulator.rollout(start, np.concatenate([history, commands])[None], scenario.space.vector(params))
            # Row 0 repeats the state that was given, its readings unknown: the run begins with the row after it.
            measured = scenario.measure(states[0, 1:])
            run = {"u": np.concatenate([commands[1:], commands[-1:]])}
            for observed in scenario.observed:
                name = observed.channel.name
                noise = observed.noise if noisy and observed.kind != "quaternion" else 0.0
                run[name] = measured[name] + noise * rng.normal(size=measured[name].shape)
            runs.append(run)
    return runs
