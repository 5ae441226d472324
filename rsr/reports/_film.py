"""Rendered frames of rigid bodies: a strip of moments, one row a version of what happened."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from rsr.errors import ConfigError
from rsr.files import read_arrays
from rsr.gnn.bodies import Mesh, World
from rsr.reports._drawing import render

_HEIGHT, _WIDTH = 240, 320
_MOMENTS = 5
_COLOURS = ("0.20 0.42 0.70 1", "0.22 0.58 0.35 1", "0.85 0.55 0.15 1", "0.55 0.35 0.65 1")


def film_strip(world: World, versions: Mapping[str, np.ndarray], dt_s: float) -> bytes:
    """Draw a PNG: a row of moments for each version, poses [T, n, 7] by name, from one view.

    Raises:
        ConfigError: this machine cannot draw with OpenGL.
    """
    frames = min(len(poses) for poses in versions.values())
    moments = np.unique(np.linspace(1, frames - 1, _MOMENTS).round().astype(int))
    images = {name: _photographs(world, poses, moments) for name, poses in versions.items()}

    def compose(figure: Figure) -> None:
        places = figure.subplots(len(images), len(moments), squeeze=False)
        for row, (name, pictures) in zip(places, images.items(), strict=True):
            for axes, moment, picture in zip(row, moments, pictures, strict=True):
                axes.imshow(picture)
                axes.set(xticks=[], yticks=[])
                axes.set_title(f"{1e3 * dt_s * (moment - 1):.0f} ms" if row is places[0] else "")
            row[0].set_ylabel(name)

    return render(compose, (2.1 * len(moments), 1.75 * len(images)), "png")


def scene_xml(world: World) -> str:
    """An MJCF of bodies that are only looked at. Their frames are the centres of mass."""
    shapes = "".join(_mesh(place, body.mesh) for place, body in enumerate(world.bodies))
    bodies = "".join(
        f'<body name="body{place}" mocap="true">'
        f'<geom type="mesh" mesh="mesh{place}" rgba="{_COLOURS[place % len(_COLOURS)]}"/></body>'
        for place in range(len(world.bodies))
    )
    floor = '<geom type="plane" size="3 3 0.1" material="floor"/>' if world.floor else ""
    return f"""<mujoco>
      <statistic extent="1"/>
      <visual>
        <global offwidth="{_WIDTH}" offheight="{_HEIGHT}"/><headlight ambient="0.45 0.45 0.45"/><map znear="0.05"/>
      </visual>
      <asset>
        <texture name="floor" type="2d" builtin="checker" rgb1="0.93 0.93 0.92" rgb2="0.86 0.87 0.87" width="256"
                 height="256"/>
        <material name="floor" texture="floor" texrepeat="4 4" texuniform="true"/>
        {shapes}
      </asset>
      <worldbody><light pos="0 0 2" dir="0.2 0.2 -1" directional="true" castshadow="false"/>{floor}{bodies}</worldbody>
    </mujoco>"""


def _mesh(place: int, mesh: Mesh) -> str:
    vertices = " ".join(f"{number:.9g}" for number in mesh.vertices_m.ravel())
    faces = " ".join(map(str, mesh.faces.ravel()))
    return f'<mesh name="mesh{place}" vertex="{vertices}" face="{faces}"/>'


def _photographs(world: World, poses: np.ndarray, moments: np.ndarray) -> np.ndarray:
    """Pictures [M, height, width, 3] at some of the moments."""
    lookat, view = _camera(world, poses)
    with tempfile.TemporaryDirectory() as folder:
        order, pictures = Path(folder, "order.npz"), Path(folder, "pictures.npz")
        scene, size = np.array(scene_xml(world)), np.array([_HEIGHT, _WIDTH])
        np.savez(order, scene=scene, size=size, lookat=lookat, view=view, moments=poses[moments])
        said = [_said_by_photographer(backend, order, pictures) for backend in _backends() if not pictures.exists()]
        if not pictures.exists():
            raise ConfigError(
                got=f"no offscreen OpenGL ({'; '.join(said)})",
                expected="a display, or MuJoCo's backend 'egl' or 'osmesa'",
                where="rendered rollout",
                next_step="Install libegl1 or libosmesa6; everything but pictures works without.",
            )
        return read_arrays(pictures)["pictures"]


def _backends() -> tuple[str, ...]:
    """What the environment says, else what draws with a display, else what draws without one."""
    chosen = os.environ.get("MUJOCO_GL")
    if chosen:
        return (chosen,)
    return ("glfw", "egl", "osmesa") if os.environ.get("DISPLAY") else ("egl", "osmesa")


def _said_by_photographer(backend: str, order: Path, pictures: Path) -> str:
    command = [sys.executable, str(Path(__file__).with_name("_photographer.py")), str(order), str(pictures)]
    environment = {**os.environ, "MUJOCO_GL": backend}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    last = (done.stderr.strip().splitlines() or [f"ended with {done.returncode}"])[-1]
    return f"{backend}: {last[:120]}"


def _camera(world: World, poses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where to look, and distance, azimuth and elevation: so far away that all of the motion is in view."""
    low, high = poses[..., :3].min(axis=(0, 1)), poses[..., :3].max(axis=(0, 1))
    size = max(body.mesh.size_m for body in world.bodies)
    distance = 1.4 * (float(np.linalg.norm(high - low)) + 2 * size)
    return (low + high) / 2, np.array([distance, 120.0, -38.0])
