"""Where the two bodies of a scene meet: from recorded states, which err, to those in which they just touch."""

from __future__ import annotations

import mujoco
import numpy as np

from rsr.learned.clash.scenes.scene import ContactScene

_TOUCH_M, _FAR_M, _ERR_M = 1e-5, 0.02, 0.003
_PROBE_S, _SLOWEST_M_S, _TURNS = 1e-5, 0.005, 30
_LOOKS = 16


def gap_of(scene: ContactScene, state: np.ndarray) -> float:
    """Distance of the two in a state [n], m; negative where they overlap."""
    data = scene.at(state[: scene.model.nq])
    pairs = ((one, other) for one in scene.strikers for other in scene.touching)
    return min(mujoco.mj_geomDistance(scene.model, data, *pair, 1.0, None) for pair in pairs)


def touching(scene: ContactScene, states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Move states [N, n] along their velocities to where the two just touch; and how far that was [N], m.

    Recorded poses err by a millimetre, which would have the two overlap, or touch too late. The distance is NaN
    where the two are not about to touch. Those that graze, less than 3 mm apart, are put together as they are.
    """
    moved, far = states.copy(), np.full(len(states), np.nan)
    for row, state in enumerate(states):
        start = gap_of(scene, state)
        if abs(start) > _FAR_M:
            continue
        found = _met(scene, state)
        if found is None and abs(start) < _ERR_M:
            found = _shifted(scene, state)
        if found is not None:
            moved[row], far[row] = found, abs(start)
    return moved, far


def met_again(scene: ContactScene, state: np.ndarray, within_s: float) -> tuple[np.ndarray, float] | None:
    """The state in which two that have just parted touch again, and when; None where they do not so soon."""
    before = gap_of(scene, state)
    for look in range(1, _LOOKS + 1):
        time_s = within_s * look / _LOOKS
        gap = gap_of(scene, _coasted(scene, state, time_s))
        # Where one place parts while it still overlaps, the gap grows; it shrinks once another place comes nearer.
        if gap < min(_TOUCH_M, before - _TOUCH_M / 100):
            back = (_TOUCH_M - gap) / max(before - gap, 1e-12) if before > _TOUCH_M else 0.0
            time_s -= back * within_s / _LOOKS
            return _coasted(scene, state, time_s), time_s
        before = gap
    return None


def _met(scene: ContactScene, state: np.ndarray) -> np.ndarray | None:
    """The state at which the two touch as they move; None where they do not come nearer."""
    time_s = 0.0
    for _ in range(_TURNS):
        gap = gap_of(scene, _coasted(scene, state, time_s))
        if abs(gap - _TOUCH_M) < _TOUCH_M / 2:
            return _coasted(scene, state, time_s)
        nearer = gap - gap_of(scene, _coasted(scene, state, time_s + _PROBE_S))
        if nearer <= _SLOWEST_M_S * _PROBE_S:
            return None
        time_s += (gap - _TOUCH_M) / nearer * _PROBE_S
    return None


def _shifted(scene: ContactScene, state: np.ndarray) -> np.ndarray | None:
    """The state with the struck body moved by the least that has the two touch: they graze, or recordings err."""
    after, ends = state.copy(), np.zeros(6)
    at = int(scene.model.jnt_qposadr[scene.free])
    for _ in range(_TURNS):
        gap = gap_of(scene, after)
        if abs(gap - _TOUCH_M) < _TOUCH_M / 2:
            return after
        pairs = [(one, other) for one in scene.strikers for other in scene.touching]
        distances = [mujoco.mj_geomDistance(scene.model, scene.data, *pair, 1.0, None) for pair in pairs]
        mujoco.mj_geomDistance(scene.model, scene.data, *pairs[int(np.argmin(distances))], 1.0, ends)
        outward = scene.axes[:2].T @ (scene.axes[:2] @ (ends[3:] - ends[:3])) * np.sign(gap)
        if (length := float(np.linalg.norm(outward))) < 1e-9:
            return None
        after[at : at + 3] += (_TOUCH_M - gap) * outward / length
    return None


def _coasted(scene: ContactScene, state: np.ndarray, time_s: float) -> np.ndarray:
    after, nq = state.copy(), scene.model.nq
    mujoco.mj_integratePos(scene.model, after[:nq], state[nq : nq + scene.model.nv], time_s)
    return after
