"""Pictures: one look for all, drawn without a display, equal bytes for equal data."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import matplotlib
import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from rsr.reports._html import unbroken

# One colour a meaning, in every picture; from the palette of Okabe and Ito, which colour-blind readers can tell apart.
REAL = "#1f2328"
BEFORE = "#d98200"
AFTER = "#0068a8"
RETRAINED = "#008f6b"
PRIOR = "#b3bac2"
ALONG_X = "#7a4fa3"
ALONG_Y = "#c2527a"
SERIES = (ALONG_X, ALONG_Y, AFTER, RETRAINED, BEFORE, "#4d4d4d")
"""Of figures beside each other, in turn."""

STYLE: dict[Any, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": "#8b939c",
    "axes.grid": True,
    "axes.labelcolor": "#3d444d",
    "axes.labelsize": 9,
    "axes.linewidth": 0.8,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "font.family": ["DejaVu Sans"],  # comes with matplotlib, so it looks the same everywhere
    "font.size": 9,
    "grid.color": "#e6e9ec",
    "grid.linewidth": 0.7,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "lines.solid_capstyle": "round",
    "savefig.dpi": 160,
    "savefig.facecolor": "white",
    "svg.hashsalt": "rsr",
    "text.color": "#1f2328",
    "xtick.color": "#5b636c",
    "xtick.labelsize": 8,
    "ytick.color": "#5b636c",
    "ytick.labelsize": 8,
}

T = TypeVar("T")
Paint = Callable[[Sequence[Axes]], None]
"""Draw into axes, which come row by row."""

WIDE = 8.4
"""Width in inches of a picture that fills the page."""


@dataclass(frozen=True)
class Drawn:
    svg: bytes
    width_inches: float


def draw(paint: Paint, size: tuple[float, float], grid: tuple[int, int] = (1, 1)) -> Drawn:
    """Draw an SVG of `size` inches over a grid of (rows, columns)."""

    def compose(figure: Figure) -> None:
        paint(list(np.ravel(figure.subplots(*grid))))

    return Drawn(render(compose, size, "svg"), size[0])


def render(compose: Callable[[Figure], None], size: tuple[float, float], form: str) -> bytes:
    """Draw a whole figure as "svg" or "png"."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasAgg(figure)
        compose(figure)
        buffer = io.BytesIO()
        stamp = {"Date": None} if form == "svg" else {"Software": None}
        figure.savefig(buffer, format=form, metadata=stamp)
    return buffer.getvalue()


def picture(drawn: Drawn, alt: str, caption: str) -> Markup:
    """Put an SVG into the page. As an image, because the names inside two SVGs of one page may collide."""
    data = base64.b64encode(drawn.svg).decode()
    width = f"{100 * drawn.width_inches / WIDE:.0f}%"
    image = Markup('<img alt="{}" style="max-width: {}" src="data:image/svg+xml;base64,{}">').format(alt, width, data)
    return Markup("<figure>{}<figcaption>{}</figcaption></figure>").format(image, unbroken(caption))


def band(axes: Axes, x: np.ndarray, samples: np.ndarray, colour: str, label: str) -> None:
    """Draw median and the range of the middle 80 % of samples [n, len(x)]."""
    low, middle, high = np.percentile(samples, [10, 50, 90], axis=0)
    axes.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0)
    axes.plot(x, middle, color=colour, label=label)


def draw_panels(
    items: Sequence[T], paint: Callable[[Axes, T], None], height: float, most_columns: int = 3, **legend: Any
) -> Drawn:
    """Draw a panel for each item, row by row, with a legend in the first.

    Args:
        height: of a panel, in inches.
        legend: how the legend is drawn.
    """
    columns = min(most_columns, len(items))
    grid = -(-len(items) // columns), columns

    def compose(axes: Sequence[Axes]) -> None:
        for place, item in zip(axes, items, strict=False):
            paint(place, item)
        for place in axes[len(items) :]:
            place.set_visible(False)
        axes[0].legend(**legend)

    return draw(compose, (WIDE, height * grid[0]), grid)


def whole_numbers(axes: Axes, numbers: Sequence[int]) -> None:
    """Tick the iterations, and nothing between them."""
    axes.set_xticks(list(numbers))
    axes.set_xlim(min(numbers) - 0.4, max(numbers) + 0.4)
    axes.grid(visible=False, axis="x")


def share_axis(axes: Axes) -> None:
    """Make the vertical axis a share, 0 to 100 %."""
    axes.set_ylim(0, 1.03)
    axes.set_yticks([0, 0.25, 0.5, 0.75, 1.0], ["0 %", "25 %", "50 %", "75 %", "100 %"])
