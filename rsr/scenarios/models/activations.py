"""Actuators with internal state: a filter between command and force, such as `<position timeconst="0.05"/>`.

No recording shows the state of a filter. But it depends on nothing except past commands, so a window begins with what
the commands before it left: the oldest one known held for ever, and the others replayed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mujoco
import numpy as np

from rsr.common import ScenarioError

_SETTLED = 5.0
"""Time constants of commands that a window looks back on: what is older acts with less than exp(-5) = 0.7 %."""
_FILTERS = (mujoco.mjtDyn.mjDYN_FILTER, mujoco.mjtDyn.mjDYN_FILTEREXACT)
_MOST_STEPS = 1000


def check_activations(model: mujoco.MjModel, where: str) -> None:
    """Refuse internal states that cannot be known from past commands, by the names of their actuators.

    Raises:
        ScenarioError: an actuator integrates, is a muscle, a motor with current or a plugin; or the MJCF delays
            actuators or sensors itself.
    """
    if model.nu != model.nactuator:
        several = ", ".join(model.actuator(i).name for i in np.flatnonzero(model.actuator_ctrlnum != 1))
        raise _refused(f"actuators with several inputs ({several})", "one command each", where, "Replace them.")
    for actuator in np.flatnonzero(model.actuator_actnum > 0):
        kind = mujoco.mjtDyn(model.actuator_dyntype[actuator])
        if kind not in _FILTERS or model.actuator_actnum[actuator] > 1:
            name = model.actuator(actuator).name or f"number {actuator}"
            raise _refused(
                f"actuator '{name}' with an internal state of dyntype {kind.name[6:].lower()}",
                "none, or a filter (dyntype filter or filterexact, timeconst), whose state follows from past commands",
                where,
                "Replace it, for example by <position timeconst> or <general dyntype='filterexact'>.",
            )
    if model.nhistory:
        delayed = [model.actuator(i).name for i in np.flatnonzero(model.actuator_history[:, 0])]
        delayed += [model.sensor(i).name for i in np.flatnonzero(model.sensor_history[:, 0])]
        raise _refused(
            f"delays in the MJCF ({', '.join(delayed)})",
            "delays as parameters, which a calibration can estimate",
            where,
            "Remove `delay` and `nsample` there; add a parameter with `delays: command` or `sensor_delay: CHANNEL`.",
        )
    if model.npluginstate:
        names = ", ".join(sorted({model.plugin(i).name for i in range(model.nplugin)}))
        raise _refused(f"plugins with internal state ({names})", "none", where, "Remove them from the MJCF.")


def settling_steps(models: Sequence[mujoco.MjModel], control_dt_s: float) -> int:
    """Control steps before a window whose commands its activations still remember; 0 without internal state."""
    longest_s = max(float(time_constants_s(model).max(initial=0.0)) for model in models)
    return min(_MOST_STEPS, int(np.ceil(_SETTLED * longest_s / control_dt_s - 1e-9)))


def time_constants_s(model: Any, xp: Any = np) -> Any:
    """[na], in the order of the activations, of a C model or one of MJX (`xp` is then `jax.numpy`)."""
    return xp.maximum(model.actuator_dynprm[_owners(model), 0], mujoco.mjMINVAL)


def steady_activations(model: mujoco.MjModel, controls: Any, xp: Any = np) -> Any:
    """Activations [..., na] under controls [..., nu] that have been held for long, clamped as MuJoCo does."""
    owners = _owners(model)
    limits = np.where(model.actuator_ctrllimited[:, None], model.actuator_ctrlrange, [-np.inf, np.inf])[owners]
    if model.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_CLAMPCTRL:
        limits = np.full_like(limits, [-np.inf, np.inf])
    steady = xp.clip(controls[..., owners], limits[:, 0], limits[:, 1])
    allowed = np.where(model.actuator_actlimited[:, None], model.actuator_actrange, [-np.inf, np.inf])[owners]
    return xp.clip(steady, allowed[:, 0], allowed[:, 1])


def shares_kept(model: mujoco.MjModel, time_constants_s: Any, xp: Any = np) -> Any:
    """[..., na], the share of an activation's distance from its steady state that one physics step leaves."""
    steps = model.opt.timestep / time_constants_s
    exact = model.actuator_dyntype[_owners(model)] == mujoco.mjtDyn.mjDYN_FILTEREXACT
    # filter takes an Euler step, filterexact integrates a held command exactly.
    return xp.where(exact, xp.exp(-steps), 1.0 - steps)


def settled(models: Sequence[mujoco.MjModel], controls: np.ndarray) -> np.ndarray:
    """Activations [B, na] that controls [B, N, nu] at physics rate leave, the first held for ever before."""
    base = models[0]
    steady = steady_activations(base, controls)
    kept = shares_kept(base, np.stack([time_constants_s(model) for model in models]))
    activation = steady[:, 0]
    for step in range(1, steady.shape[1]):
        activation = steady[:, step] + kept * (activation - steady[:, step])
    return activation


def _owners(model: Any) -> np.ndarray:
    """[na], the actuator that each activation belongs to; each has one (`check_activations`)."""
    stateful = np.flatnonzero(model.actuator_actnum > 0)
    return stateful[np.argsort(model.actuator_actadr[stateful])]


def _refused(got: str, expected: str, where: str, next_step: str) -> ScenarioError:
    return ScenarioError(got=got, expected=expected, where=where, next_step=next_step)
