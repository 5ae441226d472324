"""Section: the block's recorded path against the simulated one, open loop and closed loop, before and after tuning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes

from rsr.calibration import Replays
from rsr.reports._drawing import AFTER, BEFORE, REAL, WIDE, band, draw, picture
from rsr.reports._html import Section, absent, join
from rsr.reports.data import Arrays, ReportData
from rsr.reports.orientation import orientation

SHOWN = 6
CM = 100.0
_WIDEST_CM = 30.0
"""Half the side of the largest panel: a simulated block that flew off does not shrink all others to a dot."""


@dataclass(frozen=True)
class Panel:
    """One held-out episode.

    Args:
        real, before, after: block positions [T + 1, 2] on the table, in cm.
        target: [2], in cm.
    """

    episode: int
    real: np.ndarray
    before: np.ndarray
    after: np.ndarray
    target: np.ndarray | None

    @property
    def middle(self) -> np.ndarray:
        return (self.real.min(axis=0) + self.real.max(axis=0)) / 2

    @property
    def half_width(self) -> float:
        """Half the side of the square around the recorded path that holds all three."""
        return 1.1 * float(np.abs(np.concatenate([self.real, self.before, self.after]) - self.middle).max())


def trajectories(data: ReportData) -> Section:
    parts = [_open_loop(data), _closed_loop(data), orientation(data)]
    return Section("trajectories", "Recorded and simulated trajectories", join(parts))


def _open_loop(data: ReportData) -> Markup:
    if data.replays is None or not len(data.replays.episode):
        return absent("held-out episodes replayed open loop", data.why("replays"))
    panels = _panels(data, data.replays)
    columns = min(3, len(panels))
    lines = -(-len(panels) // columns)
    half = min(_WIDEST_CM, max(panel.half_width for panel in panels))

    def paint(axes: Sequence[Axes]) -> None:
        for place, panel in zip(axes, panels, strict=False):
            _paint_panel(place, panel, data.iteration)
            (x, y) = panel.middle
            place.set(xlim=(x - half, x + half), ylim=(y - half, y + half), aspect="equal")
        for place in axes[len(panels) :]:
            place.set_visible(False)
        axes[0].legend(loc="best", fontsize=7.5)

    drawn = draw(paint, (WIDE, 2.95 * lines), (lines, columns))
    k = data.iteration
    caption = (
        f"Path of the block on the table in {len(panels)} held-out episodes, in the order of their error before "
        f"tuning. Black: recorded on the {data.reality}. Colours: simulated, replaying the recorded commands open "
        f"loop, with parameters {k - 1} and {k}; the simulation is put back on the recorded state at regular "
        "intervals. Dot: start; cross: target, where in view. Above each: RMS error before and after tuning."
    )
    return picture(drawn, "Block paths of held-out episodes, recorded and simulated", caption)


def _panels(data: ReportData, replays: Replays) -> list[Panel]:
    return [
        Panel(
            episode=int(replays.episode[index]),
            real=CM * replays.real[index, :, :2],
            before=CM * replays.before[index, :, :2],
            after=CM * replays.after[index, :, :2],
            target=_target(data, int(replays.episode[index])),
        )
        for index in spread(rms_distance(replays.before, replays.real), SHOWN)
    ]


def rms_distance(paths: np.ndarray, others: np.ndarray) -> np.ndarray:
    """RMS distance [...] between paths [..., T, C]."""
    return np.sqrt(np.mean(np.sum(np.square(paths - others), axis=-1), axis=-1))


def spread(values: np.ndarray, count: int) -> list[int]:
    """Choose `count` indices from the smallest value to the largest, evenly in rank."""
    places = np.linspace(0, len(values) - 1, min(count, len(values))).round().astype(int)
    return np.argsort(values, kind="stable")[places].tolist()


def _target(data: ReportData, episode: int) -> np.ndarray | None:
    if data.session is None or episode >= len(data.session.episodes):
        return None
    values = data.session.episodes[episode].values.get("target_position")
    return None if values is None else CM * values[0, :2]


def _paint_panel(axes: Axes, panel: Panel, k: int) -> None:
    lines = (
        (panel.real, REAL, 2.2, "recorded"),
        (panel.before, BEFORE, 1.3, f"parameters {k - 1}"),
        (panel.after, AFTER, 1.3, f"parameters {k}"),
    )
    for path, colour, width, label in lines:
        axes.plot(*path.T, color=colour, linewidth=width, label=label)
    axes.plot(*panel.real[0], marker="o", color=REAL, markersize=5)
    if panel.target is not None:
        axes.plot(*panel.target, marker="x", color=REAL, markersize=7, markeredgewidth=1.8)
    before, after = (10 * rms_distance(path, panel.real) for path in (panel.before, panel.after))
    axes.set(title=f"episode {panel.episode}:  {before:.0f} → {after:.0f} mm", xlabel="x (cm)", ylabel="y (cm)")


def _closed_loop(data: ReportData) -> Markup:
    if data.rollouts is None:
        return absent("closed-loop episodes", data.why("rollouts"))
    k = data.iteration
    lines = (
        ("real_block", REAL, f"recorded on the {data.reality}"),
        ("simulated_block", BEFORE, f"simulated, parameters {k - 1}"),
        ("tuned_block", AFTER, f"simulated, parameters {k}"),
    )
    distances = {name: distance(data.rollouts, name) for name, _, _ in lines}

    def paint(axes: Sequence[Axes]) -> None:
        time_s = np.arange(distances["real_block"].shape[1]) * data.scenario.control_dt_s
        for name, colour, label in lines:
            band(axes[0], time_s, CM * distances[name], colour, label)
        axes[0].set(xlabel="time (s)", ylabel="block to target (cm)", xlim=(0, time_s[-1]))
        axes[0].set_ylim(bottom=0)
        axes[0].legend()

    caption = (
        f"Distance of the block to its target under policy {k - 1}, closed loop, over {len(distances['real_block'])} "
        f"episodes: median, and the range of the middle 80 %. Black: recorded on the {data.reality}. Colours: the "
        f"same policy on the same starts and targets, simulated with the parameters it was trained with ({k - 1}) and "
        f"with those tuned to this recording ({k}). The nearer a colour is to black, the better that simulator "
        "foretells what the policy does."
    )
    return picture(draw(paint, (WIDE, 3.1)), "Distance to the target over time, recorded and simulated", caption)


def distance(rollouts: Arrays, name: str) -> np.ndarray:
    """Distance of the block to its target on the table, [episodes, times], in m."""
    return np.linalg.norm((rollouts[name] - rollouts["target"][:, None])[..., :2], axis=-1)
