"""The page of a learned simulator: its rollouts beside the truth, in paths, errors per frame and rendered pictures."""

from __future__ import annotations

import base64
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rsr.common import ConfigError, read_arrays
from rsr.learned.gnn import Mesh, RigidWorld, Trajectory, TrajectoryErrors, errors_of
from rsr.reports._drawing import (
    AFTER,
    ALONG_X,
    BEFORE,
    PRIOR,
    REAL,
    RETRAINED,
    WIDE,
    draw,
    draw_panels,
    picture,
    render,
)
from rsr.reports._html import ReportSection, absent, join, paragraph, table, template
from rsr.reports.trajectories import spread

Predictions = Mapping[str, Sequence[np.ndarray]]
"""Name of a simulator -> its poses [T, n, 7] of each trajectory."""

_SHOWN = 6
_COLOURS = (AFTER, BEFORE, RETRAINED, ALONG_X, PRIOR)
_CM, _MM = 100.0, 1e3


def render_rollouts(title: str, trajectories: Sequence[Trajectory], predictions: Predictions, truth: str) -> str:
    """Lay out a page of its own; the arguments are those of `rollout_sections`."""
    sections = rollout_sections(trajectories, predictions, truth)
    return template("rollouts.html").render(title=title, sections=sections)


def rollout_sections(
    trajectories: Sequence[Trajectory], predictions: Predictions, truth: str
) -> tuple[ReportSection, ReportSection, ReportSection]:
    """Errors, paths and a rendered rollout; equal arguments give equal bytes where pictures can be rendered alike.

    Args:
        predictions: the first simulator is the one that the page is about; others are drawn beside it.
        truth: what the trajectories are: "teacher", "stand-in", "recorded".
    """
    errors = {name: errors_of(trajectories, poses) for name, poses in predictions.items()}
    order = _from_good_to_bad(errors[next(iter(predictions))])
    return (
        ReportSection("errors", "Errors", join([_figures(errors, truth), _per_frame(errors, trajectories[0].dt_s)])),
        ReportSection("paths", "Paths from above", _paths(trajectories, predictions, order, truth)),
        ReportSection("rendered", "A rollout beside the truth", _film(trajectories, predictions, order, truth)),
    )


def _from_good_to_bad(errors: TrajectoryErrors) -> list[int]:
    last = np.array([error[-1].mean() for error in errors.position_m])
    return spread(last, _SHOWN)


def _figures(errors: Mapping[str, TrajectoryErrors], truth: str) -> Markup:
    rows = [
        (
            name,
            f"{found.position_mm():.2f} mm",
            f"{found.rotation_deg():.2f}°",
            f"{100 * found.median_fraction():.1f} %",
            f"{found.position_percent():.1f} %",
            f"{found.mean_rotation_deg():.2f}°",
        )
        for name, found in errors.items()
    ]
    count = len(next(iter(errors.values())).position_m)
    header = ("simulator", "last frame", "turn", "median, of a side", "all frames, of a side", "turn, all frames")
    words = f"{count} trajectories ({truth}), each predicted from its first two frames alone."
    return join([paragraph(words), table(header, rows)])


def _per_frame(errors: Mapping[str, TrajectoryErrors], dt_s: float) -> Markup:
    def paint(axes: Sequence[Axes]) -> None:
        for (name, found), colour in zip(errors.items(), _COLOURS, strict=False):
            for place, values in zip(axes, found.per_frame(), strict=True):
                place.plot(_MM * dt_s * np.arange(1, len(values) + 1), values, color=colour, label=name)
        for place, label in zip(axes, ("position error (mm)", "rotation error (°)"), strict=True):
            place.set(xlabel="time since the start (ms)", ylabel=label)
            place.set_ylim(bottom=0)
        axes[0].legend()

    drawn = draw(paint, (WIDE, 2.9), (1, 2))
    return picture(drawn, "Error over time", "Mean over bodies and trajectories after each predicted frame.")


def _paths(trajectories: Sequence[Trajectory], predictions: Predictions, order: Sequence[int], truth: str) -> Markup:
    def paint(axes: Axes, index: int) -> None:
        _paint_paths(axes, trajectories[index], {name: each[index] for name, each in predictions.items()}, truth)

    caption = (
        f"Centres of the bodies, seen from above, from the smallest error of the first simulator to the largest. "
        f"Black: {truth}. Dots: where they were at the start."
    )
    return picture(draw_panels(order, paint, 2.8, loc="best", fontsize=7.5), "Paths of the bodies from above", caption)


def _paint_paths(axes: Axes, trajectory: Trajectory, predicted: Mapping[str, np.ndarray], truth: str) -> None:
    versions = [(truth, trajectory.poses, REAL, 2.4)]
    versions += [(name, poses, c, 1.2) for (name, poses), c in zip(predicted.items(), _COLOURS, strict=False)]
    for name, poses, colour, width in versions:
        for body in range(poses.shape[1]):
            label = name if body == 0 else None
            axes.plot(*(_CM * poses[:, body, :2]).T, color=colour, linewidth=width, label=label)
    axes.plot(*(_CM * trajectory.poses[1, :, :2]).T, "o", color=REAL, markersize=4)
    axes.set(title=trajectory.name, xlabel="x (cm)", ylabel="y (cm)")
    axes.set_aspect("equal", adjustable="datalim")


def _film(trajectories: Sequence[Trajectory], predictions: Predictions, order: Sequence[int], truth: str) -> Markup:
    """The trajectory in the middle of the order, rendered; or a word where this machine cannot draw it."""
    index = order[len(order) // 2]
    first = next(iter(predictions))
    shown = trajectories[index]
    try:
        strip = film_strip(shown.world, {truth: shown.poses, first: predictions[first][index]}, shown.dt_s)
    except ConfigError as error:
        return absent("a rendered rollout", f"{error.got}. {error.next_step}")
    data = base64.b64encode(strip).decode()
    image = Markup('<img alt="Rendered rollout beside the truth" src="data:image/png;base64,{}">').format(data)
    caption = f"{shown.name}: above {truth}, below {first}; times since the start."
    return Markup("<figure>{}<figcaption>{}</figcaption></figure>").format(image, caption)


# Rendered frames of rigid bodies: a strip of moments, one row a version of what happened.


_HEIGHT, _WIDTH = 240, 320
_MOMENTS = 5
_BODY_COLOURS = ("0.20 0.42 0.70 1", "0.22 0.58 0.35 1", "0.85 0.55 0.15 1", "0.55 0.35 0.65 1")


def film_strip(world: RigidWorld, versions: Mapping[str, np.ndarray], dt_s: float) -> bytes:
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
            for axes, moment, pixels in zip(row, moments, pictures, strict=True):
                axes.imshow(pixels)
                axes.set(xticks=[], yticks=[])
                axes.set_title(f"{1e3 * dt_s * (moment - 1):.0f} ms" if row is places[0] else "")
            row[0].set_ylabel(name)

    return render(compose, (2.1 * len(moments), 1.75 * len(images)), "png")


def scene_xml(world: RigidWorld) -> str:
    """An MJCF of bodies that are only looked at. Their frames are the centres of mass."""
    shapes = "".join(_mesh(place, body.mesh) for place, body in enumerate(world.bodies))
    bodies = "".join(
        f'<body name="body{place}" mocap="true">'
        f'<geom type="mesh" mesh="mesh{place}" rgba="{_BODY_COLOURS[place % len(_BODY_COLOURS)]}"/></body>'
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


def _photographs(world: RigidWorld, poses: np.ndarray, moments: np.ndarray) -> np.ndarray:
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
    """Choose MuJoCo's OpenGL: the environment's, else one that draws with a display, else one that draws without."""
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


def _camera(world: RigidWorld, poses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where to look, and distance, azimuth and elevation: so far away that all of the motion is in view."""
    low, high = poses[..., :3].min(axis=(0, 1)), poses[..., :3].max(axis=(0, 1))
    size = max(body.mesh.size_m for body in world.bodies)
    distance = 1.4 * (float(np.linalg.norm(high - low)) + 2 * size)
    return (low + high) / 2, np.array([distance, 120.0, -38.0])
