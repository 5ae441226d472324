"""A process of its own that takes pictures of an MJCF scene: `python _photographer.py ORDER.npz PICTURES.npz`.

Not in the caller's process, because MuJoCo chooses how to draw when it is imported, and without OpenGL may end the
whole process. Needs MuJoCo and numpy alone.
"""

from __future__ import annotations

import sys

import mujoco
import numpy as np


def photographs(order: dict[str, np.ndarray]) -> np.ndarray:
    """Draw moments [M, n, 7] of mocap bodies, from one camera: [M, height, width, 3]."""
    model = mujoco.MjModel.from_xml_string(str(order["scene"]))
    data, camera = mujoco.MjData(model), mujoco.MjvCamera()
    camera.lookat[:] = order["lookat"]
    camera.distance, camera.azimuth, camera.elevation = order["view"]
    height, width = order["size"]
    pictures = []
    with mujoco.Renderer(model, int(height), int(width)) as renderer:
        for poses in order["moments"]:
            data.mocap_pos[:], data.mocap_quat[:] = poses[:, :3], poses[:, 3:]
            mujoco.mj_forward(model, data)
            renderer.update_scene(data, camera)
            pictures.append(renderer.render().copy())
    return np.array(pictures)


if __name__ == "__main__":
    with np.load(sys.argv[1], allow_pickle=False) as given:
        taken = photographs(dict(given))
    np.savez(sys.argv[2], pictures=taken)
