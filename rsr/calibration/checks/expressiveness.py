"""Whether a model can express what was recorded: how wrong it is where it fits best, in which channel and phase."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from rsr.calibration import Misfit
from rsr.calibration.problem import MOVED_NOISES, Loss
from rsr.scenarios import Observed, Scenario, difference
from rsr.sessions import Episode

INEXPRESSIBLE = 0.5
"""A model whose error is this share of a channel's motion explains less than three quarters of its variance."""
_KINK = 4.0
"""`Scenario.unrest` of a row that an impact or kink is near: noise alone exceeds 1 here and there, but never this."""
_MOSTLY = 0.75
_DIVERGED = 0.5
"""An unstable or chaotic system amplifies the errors of a window's start: where these alone make this share of the
squared error, it says little of the model."""

_AMPLIFIED = 3.0
"""Starts that differ drift apart in any system; one that takes them so many times further apart amplifies."""


def misfits(
    loss: Loss, episodes: Sequence[Episode], point: np.ndarray, divergence: Mapping[str, np.ndarray]
) -> dict[str, Misfit]:
    """Describe the model's error at a point [P], channel by channel.

    Args:
        episodes: those that the windows were cut from.
        divergence: see `Loss.divergence`.
    """
    left, disturbed = loss.differences(point), _after_impact(loss, episodes)
    motion, described = _motion(loss), {}
    # The longest windows are few: what is said is of a time that half of all windows reach.
    last = int(np.flatnonzero(loss.windows.inside.mean(axis=0) >= 0.5)[-1])
    for observed in loss.scenario.observed:
        name = observed.channel.name
        error, moved = float(loss.error_of(name)[last]), float(motion[name][last])
        squares = np.square(left[name]).sum(axis=-1)
        described[name] = Misfit(
            error=error,
            unit="rad" if observed.kind == "quaternion" else observed.channel.unit,
            after_s=(last + 1) * loss.scenario.control_dt_s,
            noises=error / observed.noise,
            motion_share=error / moved if moved > MOVED_NOISES * observed.noise else 0.0,
            after_impact=float(squares[disturbed].sum() / max(squares.sum(), 1e-300)),
            divergence=_amplified(loss.scenario, observed, float(divergence[name][last]), last + 1),
        )
    return described


def _amplified(scenario: Scenario, observed: Observed, parted: float, steps: int) -> float:
    """How far simulations have parted, if that is more than their starts' velocities would have taken them apart."""
    if not observed.dofs:
        return 0.0
    velocity_std = scenario.start_std[scenario.base_model.nv + np.array(observed.dofs)].max()
    return (
        parted if parted > _AMPLIFIED * np.hypot(observed.noise, velocity_std * steps * scenario.control_dt_s) else 0.0
    )


def _motion(loss: Loss) -> dict[str, np.ndarray]:
    """How far each channel is from a window's start [T], RMS of its columns."""
    started, windows = loss.scenario.measure(loss.windows.starts), loss.windows
    counted = np.maximum(windows.inside.sum(axis=0), 1)
    strayed = {}
    for observed in loss.scenario.observed:
        name = observed.channel.name
        apart = difference(observed.kind, started[name][:, None], windows.real[name])
        squares = np.square(apart).mean(axis=-1) * windows.inside
        strayed[name] = np.sqrt(squares.sum(axis=0) / counted)
    return strayed


def _after_impact(loss: Loss, episodes: Sequence[Episode]) -> np.ndarray:
    """Rows [W, T] that follow the first impact or kink of their window."""
    windows = loss.windows
    unrest = [loss.scenario.unrest(episode) for episode in episodes]
    rows = windows.first_row[:, None] + np.arange(1, windows.steps + 1)
    kinks = [unrest[e][np.minimum(r, len(unrest[e]) - 1)] > _KINK for e, r in zip(windows.episode, rows, strict=True)]
    return (np.cumsum(np.reshape(kinks, rows.shape), axis=1) > 0) & windows.inside


def expressed(found: Mapping[str, Misfit]) -> list[str]:
    """Warn of channels whose motion the model does not express, with the phase that shows it and what to look for."""
    worst = {name: each for name, each in found.items() if each.motion_share > INEXPRESSIBLE}
    return [
        _diverged(name, each)
        if each.divergence >= np.sqrt(_DIVERGED) * each.error
        else f"this model cannot express {name}: where it fits best it is wrong by {each.error:.2g} {each.unit} "
        f"{each.after_s:.2g} s after a start ({each.noises:.0f} times the noise, {100 * each.motion_share:.0f} % of "
        f"the motion), {_phase(each)}. Look there for an effect that the model lacks, or a wrong geometry; more "
        "episodes will not help."
        for name, each in worst.items()
    ]


def _diverged(name: str, misfit: Misfit) -> str:
    return (
        f"{name} cannot be predicted for {misfit.after_s:.2g} s: simulations whose starts differ no more than they err "
        f"part by {misfit.divergence:.2g} {misfit.unit} until then. That the model is wrong by {misfit.error:.2g} "
        f"{misfit.unit} where it fits best ({100 * misfit.motion_share:.0f} % of the motion) says little against it; "
        "shorter windows (`window_s`) would say more."
    )


def _phase(misfit: Misfit) -> str:
    if misfit.after_impact > _MOSTLY:
        return "nearly all of it after an impact or kink"
    if misfit.after_impact < 1.0 - _MOSTLY:
        return "nearly all of it before any impact or kink"
    return f"{100 * misfit.after_impact:.0f} % of it after an impact or kink"


def described(found: Mapping[str, Misfit]) -> str:
    """Say the model's error of all channels in one line."""
    parts = (f"{name} {each.error:.2g} {each.unit} ({each.noises:.1f} noises)" for name, each in found.items())
    after_s = next(iter(found.values())).after_s if found else 0.0
    return f"{', '.join(parts)}, {after_s:.2g} s after a start" if found else ""
