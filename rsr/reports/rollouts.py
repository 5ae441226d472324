"""The page of a learned simulator: its rollouts beside the truth, in paths, errors per frame and rendered pictures."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes

from rsr.errors import ConfigError
from rsr.gnn.evaluation import TrajectoryErrors, errors_of
from rsr.gnn.trajectories import Trajectory
from rsr.reports._drawing import AFTER, ALONG_X, BEFORE, PRIOR, REAL, RETRAINED, WIDE, draw, picture
from rsr.reports._film import film_strip
from rsr.reports._html import Section, absent, join, paragraph, table
from rsr.reports._templates import template
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
) -> tuple[Section, Section, Section]:
    """Errors, paths and a rendered rollout; equal arguments give equal bytes where pictures can be rendered alike.

    Args:
        predictions: the first simulator is the one that the page is about; others are drawn beside it.
        truth: what the trajectories are: "teacher", "stand-in", "recorded".
    """
    errors = {name: errors_of(trajectories, poses) for name, poses in predictions.items()}
    order = _from_good_to_bad(errors[next(iter(predictions))])
    return (
        Section("errors", "Errors", join([_figures(errors, truth), _per_frame(errors, trajectories[0].dt_s)])),
        Section("paths", "Paths from above", _paths(trajectories, predictions, order, truth)),
        Section("rendered", "A rollout beside the truth", _film(trajectories, predictions, order, truth)),
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
    columns = min(3, len(order))
    lines = -(-len(order) // columns)

    def paint(axes: Sequence[Axes]) -> None:
        for place, index in zip(axes, order, strict=False):
            _paint_paths(place, trajectories[index], {name: each[index] for name, each in predictions.items()}, truth)
        for place in axes[len(order) :]:
            place.set_visible(False)
        axes[0].legend(loc="best", fontsize=7.5)

    caption = (
        f"Centres of the bodies, seen from above, from the smallest error of the first simulator to the largest. "
        f"Black: {truth}. Dots: where they were at the start."
    )
    return picture(draw(paint, (WIDE, 2.8 * lines), (lines, columns)), "Paths of the bodies from above", caption)


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
