"""Falling bodies know the truth: free fall reads g. Where it does not, lengths or times are wrong, and by how much."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy.special import stdtrit

from rsr.sessions import Channel, Session
from rsr.sessions.checks.findings import Finding

G_M_S2 = 9.81
_WINDOW_S = 0.1
_LEAST_ROWS = 10
_STRAIGHT = 0.02
"""In flight, height strays from a parabola by less than this share of the parabola's own sag ..."""
_SIDEWAYS = 0.15
"""... and sideways acceleration is less than this share of the vertical one."""
_LEAST_FALLS = 3
_ALIKE = 0.1
"""Real falls agree: their readings scatter by less than this share of their median."""
_UNITS = {"mm": 1e3, "cm": 1e2, "inch": 1 / 0.0254, "ft": 1 / 0.3048}
_NEAR = 0.15
_TOLERATED = 0.005
"""Lengths wrong by less than half a percent stay unmentioned."""


@dataclass(frozen=True)
class FreeFall:
    """Gravity as flying bodies show it, in the channel's unit over s2.

    Args:
        falls: flights found.
        lower, upper: 95 % interval of the median flight.
    """

    channel: str
    reading: float
    lower: float
    upper: float
    falls: int

    @property
    def length_error(self) -> float:
        """How wrong lengths are if the clock is right, as a share; -0.02 is two percent short."""
        return self.reading / G_M_S2 - 1.0


def find_free_fall(session: Session, attached: Collection[str] = ()) -> FreeFall | None:
    """Look for flights in the positions of bodies, attached ones left out; None where nothing falls freely."""
    for channel in session.channels:
        if channel.name not in attached and channel.unit == "m" and channel.frame == "world" and channel.width == 3:
            readings = np.array(
                [fall for episode in session.episodes for fall in _falls(episode[channel.name], episode.time_s)]
            )
            found = _agreed(channel, readings)
            if found is not None:
                return found
    return None


def judge_free_fall(session: Session, fall: FreeFall | None) -> Iterator[Finding]:
    """Say what a reading of g means for the unit of lengths, or for the clock."""
    if fall is None:
        return
    where = f"session '{session.card.session}', channel '{fall.channel}'"
    for unit, per_metre in _UNITS.items():
        if abs(fall.reading / (G_M_S2 * per_metre) - 1.0) < _NEAR:
            yield Finding(
                "reject", "units", where,
                got=f"free fall at {fall.reading:.4g} m/s2 in {fall.falls} flights", expected=f"{G_M_S2} m/s2",
                next_step=f"These positions are in {unit}: divide by {per_metre:.4g} and store the session again.",
            )  # fmt: skip
            return
    if abs(fall.length_error) > _NEAR:
        yield Finding(
            "reject", "physics", where,
            got=f"free fall at {fall.reading:.4g} m/s2 in {fall.falls} flights", expected=f"{G_M_S2} m/s2",
            next_step=f"Lengths are wrong by a factor of {fall.reading / G_M_S2:.3g}, or times by its root; "
            "find which, convert and store the session again.",
        )  # fmt: skip
    elif abs(fall.length_error) > _TOLERATED and not fall.lower <= G_M_S2 <= fall.upper:
        yield _slightly(where, fall)


def _slightly(where: str, fall: FreeFall) -> Finding:
    percent = 100 * abs(fall.length_error)
    short, fast = ("short", "fast") if fall.length_error < 0 else ("long", "slow")
    return Finding(
        "care", "physics", where,
        got=f"free fall at {fall.reading:.3f} m/s2 ({fall.lower:.3f} to {fall.upper:.3f}, {fall.falls} flights)",
        expected=f"{G_M_S2} m/s2",
        next_step=f"Lengths are {percent:.1f} % {short} (or the clock is {percent / 2:.1f} % {fast}): measure a "
        "known length, or let gravity be a parameter of the scenario.",
    )  # fmt: skip


def _agreed(channel: Channel, readings: np.ndarray) -> FreeFall | None:
    if len(readings) < _LEAST_FALLS:
        return None
    middle = float(np.median(readings))
    spread = 1.4826 * float(np.median(np.abs(readings - middle)))
    if not spread < _ALIKE * middle:
        return None
    # 1.2533: what a median is less sharp than a mean.
    width = 1.2533 * spread / np.sqrt(len(readings)) * float(stdtrit(len(readings) - 1, 0.975))
    return FreeFall(channel.name, middle, float(middle - width), float(middle + width), len(readings))


def _falls(position: np.ndarray, time_s: np.ndarray) -> Iterator[float]:
    """Yield the downward acceleration of each flight of an episode: falling windows, joined where they meet."""
    step_s = float(np.median(np.diff(time_s))) if len(time_s) > 1 else 0.0
    rows = max(_LEAST_ROWS, round(_WINDOW_S / step_s)) if step_s > 0 else 0
    if not rows or len(position) < rows or not np.isfinite(position).all():
        return
    acceleration, misfit = parabolas(position, rows, step_s)
    sag = -acceleration[:, 2] * (rows * step_s) ** 2 / 8
    flying = (sag > 0) & (misfit[:, 2] < _STRAIGHT * sag)
    flying &= np.linalg.norm(acceleration[:, :2], axis=1) < _SIDEWAYS * -acceleration[:, 2]
    edges = np.flatnonzero(np.diff(np.concatenate([[0], flying.astype(int), [0]])))
    for start, stop in zip(edges[::2], edges[1::2], strict=True):
        whole = position[start : stop + rows - 1]
        yield -float(parabolas(whole, len(whole), step_s)[0][0, 2])


def parabolas(position: np.ndarray, rows: int, step_s: float) -> tuple[np.ndarray, np.ndarray]:
    """Fit a parabola to every window of [N, W]: accelerations and RMS misfits, [N - rows + 1, W] each."""
    since_s = step_s * (np.arange(rows) - (rows - 1) / 2)
    design = np.stack([np.ones(rows), since_s, 0.5 * since_s**2], axis=1)
    windows = sliding_window_view(position, rows, axis=0)  # [N - rows + 1, W, rows]
    found = windows @ np.linalg.pinv(design).T
    return found[..., 2], np.sqrt(np.mean(np.square(windows - found @ design.T), axis=-1))
