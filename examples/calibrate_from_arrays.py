"""From arrays to a tuned MuJoCo model: a simulated arm of two joints stands in for the lab.

    python examples/calibrate_from_arrays.py

Takes about a minute. Files go to the folder that it is run in. The cells (# %%) open as a notebook in VS Code, Jupyter
(jupytext) and PyCharm.
"""

# %% The model, as its data sheet says it
from pathlib import Path

import mujoco
import numpy as np

import rsr

ARM = """
<mujoco model="arm">
  <option timestep="0.005" integrator="implicitfast"/>
  <default><joint axis="0 1 0" damping="0.4"/><position kp="20"/></default>
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
  <actuator><position name="shoulder" joint="shoulder"/><position name="elbow" joint="elbow"/></actuator>
</mujoco>
"""
Path("arm.xml").write_text(ARM)


# %% The lab, simulated: the same arm with more damping, weaker servos, and noise on its encoders
def record(rng: np.random.Generator, rows: int = 250) -> tuple[np.ndarray, np.ndarray]:
    """One run: joint angles [T, 2] and set points [T, 2], 10 ms apart. Yours come from the robot."""
    robot = mujoco.MjModel.from_xml_string(ARM)
    robot.dof_damping[:] *= 1.6
    robot.actuator_gainprm[:, 0] *= 0.8
    robot.actuator_biasprm[:, 1] *= 0.8
    data = mujoco.MjData(robot)
    time_s = 0.01 * np.arange(rows)[:, None]
    u = 0.5 + rng.uniform(0.2, 0.6, 2) * np.sin(rng.uniform(2, 9, 2) * time_s + rng.uniform(0, 6, 2))
    data.qpos[:] = u[0]
    q = np.empty((rows, 2))
    for row in range(rows):
        q[row] = data.qpos + 0.002 * rng.standard_normal(2)
        data.ctrl[:] = u[row]  # in force until the next row
        mujoco.mj_step(robot, data, 2)
    return q, u


rng = np.random.default_rng(0)
runs = [record(rng) for _ in range(8)]
other_runs = [{"q": q, "u": u} for q, u in (record(rng) for _ in range(5))]

# %% What was measured, what was commanded, what may be wrong
arm = rsr.Scenario.from_mjcf(
    "arm.xml",
    dt=0.01,
    measured={"q": rsr.joints("shoulder", "elbow", noise=0.002)},
    command={"u": rsr.actuators("shoulder", "elbow")},
    tune={"damping": rsr.scale("joint.damping"), "gain": rsr.scale("actuator.kp")},
)

# %% Calibrate: half of the runs are fitted, the other half judges
fit = rsr.calibrate(arm, [{"q": q, "u": u} for q, u in runs])
print(fit)

# %% How far ahead does it predict, on runs that had no part in the fit?
errors = rsr.evaluate(arm, other_runs, fit)
print(errors)

# %% Pictures, and the tuned model for plain MuJoCo
fit.plot().savefig("parameters.png")
errors.plot().savefig("horizon.png")
print(fit.save_model("tuned.xml"))

# %% The same by command (docs/first-calibration.md): the scenario as files, and the runs as a logger writes them
arm.save("scenarios/arm")
Path("runs").mkdir(exist_ok=True)
for number, (q, u) in enumerate(runs):
    rows = np.column_stack([0.01 * np.arange(len(q)), np.degrees(q), u])
    columns = "t,shoulder_deg,elbow_deg,u_shoulder,u_elbow"
    np.savetxt(f"runs/run{number}.csv", rows, delimiter=",", header=columns, comments="")
