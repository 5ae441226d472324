"""Play the lab: eight slides of a puck whose friction the scenario does not know, as CSV files a camera might write.

python make_slides.py slides
"""

import sys
from pathlib import Path

import mujoco
import numpy as np

FRICTION = 0.21  # what calibration is to find; scenario.yaml says 0.3


def slide(rng: np.random.Generator, rows: int = 61) -> np.ndarray:
    """Simulate one slide; returns rows of time in s, position in mm and orientation, 10 ms apart."""
    model = mujoco.MjModel.from_xml_path(str(Path(__file__).with_name("scene.xml")))
    model.pair_friction[0, :2] = FRICTION
    data = mujoco.MjData(model)
    data.qvel[:2] = rng.uniform([0.2, -0.3], [0.9, 0.3])
    seen = np.empty((rows, 8))
    for row in range(rows):
        position = data.qpos[:3] + 0.0005 * rng.standard_normal(3)
        seen[row] = [0.01 * row, *(1000 * position), *data.qpos[3:]]
        mujoco.mj_step(model, data, 4)
    return seen


folder = Path(sys.argv[1])
folder.mkdir()
rng = np.random.default_rng(3)
for number in range(8):
    columns = "time_s,x_mm,y_mm,z_mm,qw,qx,qy,qz"
    np.savetxt(folder / f"slide{number}.csv", slide(rng), delimiter=",", header=columns, comments="", fmt="%.6f")
