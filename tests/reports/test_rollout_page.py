"""The page of a learned simulator: errors, paths, and a rendered rollout where the machine can draw one."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.baselines.gnn_scenes import cube_world, rollout_in_mujoco, standing_still
from rsr.learned.gnn.trajectories import Trajectory, save_trajectories
from rsr.reports.rollouts import render_rollouts
from rsr.scenarios.built_in.two_cubes import ContactParameters

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def trajectories() -> list[Trajectory]:
    """Four pushes of different speed."""
    world = cube_world()
    first = np.tile([0.0, 0, 0.04, 1, 0, 0, 0], (4, 2, 2, 1))
    first[:, :, 1, 0] = 0.12
    first[:, 0, 0, 0] = -np.array([0.4, 0.7, 1.0, 1.3]) / 60
    poses = rollout_in_mujoco(world, ContactParameters(mu=0.3), first, 20)
    return [Trajectory(world, each, name=f"push {index}") for index, each in enumerate(poses)]


def test_the_page_tells_errors_and_paths(trajectories):
    slow = [each.poses * [0.9, 1, 1, 1, 1, 1, 1] for each in trajectories]
    page = render_rollouts(
        "A network & its teacher", trajectories, {"slow": slow, "rest": standing_still(trajectories)}, "teacher"
    )
    assert "A network &amp; its teacher" in page
    assert "4 trajectories (teacher)" in page
    assert "learned simulator" in page
    assert "check of recordings" not in page
    last_mm = np.mean([np.abs(0.1 * each.poses[-1, :, 0]).mean() for each in trajectories]) * 1e3
    assert re.search(rf"slow</td>\s*<td[^>]*>{last_mm:.2f} mm", page)
    assert page.count("data:image/svg+xml") == 2
    assert "http" not in page.replace("http://www.w3.org", "")


RENDER = """
import base64, io, re, sys
from pathlib import Path
import numpy as np
from matplotlib.image import imread
from rsr.learned.gnn.trajectories import load_trajectories
from rsr.reports.rollouts import render_rollouts
found = load_trajectories(Path(sys.argv[1]))
page = render_rollouts("page", found, {"same": [each.poses for each in found]}, "truth")
images = re.findall(r"data:image/png;base64,([^\\"]+)", page)
if not images:
    print(re.search(r"Not shown: a rendered rollout[^<]*", page).group())
else:
    picture = imread(io.BytesIO(base64.b64decode(images[0])))[..., :3]
    blue = (picture[..., 2] > picture[..., 0] + 0.15).mean()
    print("rendered", picture.shape, blue > 0.002)
"""


def rendered(trajectories: list[Trajectory], folder: Path, backend: str) -> str:
    """Draw the page with one of MuJoCo's ways to draw, or with whatever there is."""
    save_trajectories(trajectories, folder / "trajectories.npz")
    environment = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")}
    environment |= {"PYTHONPATH": str(ROOT), "MUJOCO_GL": backend}
    command = [sys.executable, "-c", RENDER, str(folder / "trajectories.npz")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_rollout_is_rendered_beside_the_truth(trajectories, tmp_path):
    said = rendered(trajectories, tmp_path, "egl")
    if "Not shown" in said:
        pytest.skip(said.strip())
    assert re.fullmatch(r"rendered \(\d+, \d+, 3\) True\n", said)


def test_without_opengl_the_page_says_so(trajectories, tmp_path):
    said = rendered(trajectories, tmp_path, "glfw")  # needs a display, which `rendered` takes away
    assert "Not shown: a rendered rollout. no offscreen OpenGL (glfw: " in said
    assert "Install libegl1 or libosmesa6" in said
