"""Write a CSV as a lab might: joint angles in degrees, the elbow first, and an encoder that is stamped 40 ms late.

    python examples/newcomer_csv/make_run.py run.csv

A stand-in: MuJoCo swings the double pendulum of `rsr` for 20 s; the truth is kept in `run_truth.npz` beside it.
"""

from __future__ import annotations

import copy
import sys
from pathlib import Path

import mujoco
import numpy as np

from rsr.scenarios import load_scenario

SECONDS, RATE_HZ = 20.0, 250.0
ENCODER_LATE_S = 0.040
NOISE_DEG, NOISE_DEG_S = 0.02, 1.0


def swing(seconds: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Simulate: time [N], angles, velocities and torques [N, 2] (shoulder, elbow), in SI."""
    model = copy.copy(load_scenario("double_pendulum").base_model)
    model.opt.timestep = 2e-4  # MuJoCo's velocities are half a time step late, which is not what this is about
    data = mujoco.MjData(model)
    rows = []
    for step in range(round(seconds / model.opt.timestep)):
        t = data.time
        data.ctrl[:] = 1.2 * np.sin(2.1 * t + 0.3 * np.sin(0.7 * t)), 0.7 * np.sin(3.7 * t + 1.0)
        if step % 5 == 0:
            rows.append((t, data.qpos.copy(), data.qvel.copy(), data.ctrl.copy()))
        mujoco.mj_step(model, data)
    time_s, angle, velocity, torque = zip(*rows, strict=True)
    return np.array(time_s), np.array(angle), np.array(velocity), np.array(torque)


def main(path: Path) -> None:
    time_s, angle, velocity, torque = swing(SECONDS)
    stamps_s = np.arange(ENCODER_LATE_S, SECONDS - 0.01, 1 / RATE_HZ)
    late, now = stamps_s - ENCODER_LATE_S, stamps_s
    random = np.random.default_rng(0)

    def at(times_s: np.ndarray, values: np.ndarray) -> np.ndarray:
        return np.stack([np.interp(times_s, time_s, column) for column in values.T], axis=1)

    angle_deg = np.rad2deg(at(late, angle)) + NOISE_DEG * random.standard_normal((len(now), 2))
    speed_deg_s = np.rad2deg(at(now, velocity)) + NOISE_DEG_S * random.standard_normal((len(now), 2))
    torque_now = at(now, torque)
    columns = {
        "t_ms": 1e3 * stamps_s,
        "elbow": angle_deg[:, 1],
        "shoulder": angle_deg[:, 0],
        "elbow_speed": speed_deg_s[:, 1],
        "shoulder_speed": speed_deg_s[:, 0],
        "elbow_torque_Nm": torque_now[:, 1],
        "shoulder_torque_Nm": torque_now[:, 0],
        "elbow_torque_cmd_Nm": torque_now[:, 1],
        "shoulder_torque_cmd_Nm": torque_now[:, 0],
    }
    rows = np.stack(list(columns.values()), axis=1)
    np.savetxt(path, rows, fmt="%.5f", delimiter=",", header=",".join(columns), comments="")
    np.savez(path.with_name(f"{path.stem}_truth.npz"), time_s=time_s, angle=angle, velocity=velocity)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "run.csv"))
