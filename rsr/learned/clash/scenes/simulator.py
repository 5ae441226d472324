"""The hybrid simulator of a scene: MuJoCo, but impacts of the declared pair end as the adapted scene says.

MuJoCo rolls windows out as it is. Where the pair first presses on one another, the window goes back to the state
before; the impact is simulated push by push, as it was when the scene was adapted, and MuJoCo goes on from when the two
have parted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import mujoco
import numpy as np
from mujoco import rollout as mujoco_rollout

from rsr.common import CalibrationError
from rsr.learned.clash.scenes.meeting import gap_of, touching
from rsr.learned.clash.scenes.model import AdaptedScene
from rsr.scenarios import Scenario
from rsr.simulators import delayed, weights_of

_SLOWEST_M_S = 0.05
"""Slower touches, and what lies or pushes on, are MuJoCo's own contact."""
_MOST = 20
_STEEP = 0.05


@dataclass(frozen=True)
class SceneMeeting:
    """One impact of the pair: which window, when since its start, how fast, and whether the model computed it."""

    window: int
    time_s: float
    speed_m_s: float
    handled: bool


class HybridScene:
    """Rolls a scenario whose collision has the base 'scene' forward. Close it, or use it in `with`.

    After a `rollout`, `meetings` lists what collided. Motion across the plane, and touches below 0.05 m/s, are left to
    MuJoCo. Parameters act on all but the impacts, which have those that were fitted.

    Example:
        >>> with HybridScene(scenario, load_scene(folder)) as simulator:
        ...     states = simulator.rollout(starts, commands, model.values)
    """

    def __init__(self, scenario: Scenario, model: AdaptedScene) -> None:
        if scenario.collision != model.scene.declared or scenario.space != model.scene.scenario.space:
            raise CalibrationError(
                got=f"an adapted scene of '{model.scene.scenario.name}', with another collision or other parameters",
                expected=f"one of '{scenario.name}' as it is",
                where=f"scenario {scenario.name}",
                next_step="Adapt it again: rsr clash adapt --scenario.",
            )
        self.scenario, self._adapted, self._scene = scenario, model, model.scene
        self._pool = mujoco_rollout.Rollout(nthread=1)
        self._data = mujoco.MjData(scenario.base_model)
        self.meetings: tuple[SceneMeeting, ...] = ()

    def __enter__(self) -> HybridScene:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._pool.close()

    def rollout(self, states: np.ndarray, actions: np.ndarray, params: np.ndarray) -> np.ndarray:
        """See `Simulator.rollout`."""
        scenario, found = self.scenario, list[SceneMeeting]()
        values = np.broadcast_to(np.atleast_2d(params), (len(states), len(scenario.space)))
        paths = []
        for window, (state, row) in enumerate(zip(states, values, strict=True)):
            controls = delayed(actions[window : window + 1], weights_of(scenario, row)[None])[0]
            path, met = self._window(scenario.model(row), state, controls)
            paths.append(path[:: scenario.substeps])
            found += [SceneMeeting(window, *each) for each in met]
        self.meetings = tuple(found)
        return np.stack(paths)

    def _window(
        self, model: mujoco.MjModel, state: np.ndarray, controls: np.ndarray
    ) -> tuple[np.ndarray, list[tuple[float, float, bool]]]:
        """States [M + 1, n] at physics steps under controls [M, nu], and impacts: time, speed, handled."""
        path, met, at, leaving = [state[None]], list[tuple[float, float, bool]](), 0, False
        while at < len(controls):
            states = self._rolled(model, path[-1][-1], controls[at:])
            struck = self._first(states, leaving)
            if struck is None:
                path.append(states[1:])
                break
            before = states[struck]
            ended = self._impact(before) if len(met) < _MOST else None
            speed, after, steps = (0.0, None, 0) if ended is None else ended
            met.append(((at + struck) * model.opt.timestep, speed, after is not None))
            if after is None:  # MuJoCo's own contact, until the two are apart again
                path.append(states[1 : struck + 2])
                at, leaving = at + struck + 1, True
                continue
            # In between the two parts of its path the window rests on a straight line: it is over in milliseconds.
            steps = min(max(1, round(steps / model.opt.timestep)), len(controls) - at - struck)
            between = [self._between(before, after, (step + 1) / steps) for step in range(steps)]
            path.append(np.concatenate([states[1 : struck + 1], between]))
            at, leaving = at + struck + steps, True
        return np.concatenate(path)[: len(controls) + 1], met

    def _rolled(self, model: mujoco.MjModel, state: np.ndarray, controls: np.ndarray) -> np.ndarray:
        """States [M + 1, n] from a state on."""
        initial = np.zeros((1, mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS)))
        initial[0, 1 : 1 + len(state)] = state
        after, _ = self._pool.rollout(model, [self._data], initial, controls[None])
        return np.concatenate([state[None], after[0, :, 1 : 1 + len(state)]])

    def _first(self, states: np.ndarray, leaving: bool) -> int | None:
        """Row before the first one in which the two overlap; an overlap that the window begins with does not count."""
        gone = not leaving
        for row in self._near(states):
            apart = gap_of(self._scene, states[row]) > 0
            if not apart and gone and row > 0:
                return row - 1
            gone = gone or apart
        return None

    def _near(self, states: np.ndarray) -> Iterator[int]:
        """Rows of states in turn, without those in which the two cannot have come together yet."""
        row, model = 0, self.scenario.base_model
        fastest = np.abs(states[:, model.nq : model.nq + model.nv]).max() * 2 + 0.5
        while row < len(states):
            yield row
            gap = gap_of(self._scene, states[row])
            row += max(1, int(gap / (fastest * model.opt.timestep)))

    def _impact(self, state: np.ndarray) -> tuple[float, np.ndarray | None, float] | None:
        """Speed, state after and duration of the impact that a state begins; no state where it is left to MuJoCo."""
        scene, nq = self._scene, self.scenario.base_model.nq
        placed, far = touching(scene, state[None])
        if not np.isfinite(far[0]):
            return None
        across = np.abs(scene.axes[2] @ scene.velocity_of(placed[0]))
        found = self._adapted.collide(placed)
        first = found.first
        speed = float(first.strikes.speed_m_s[0])
        approach = speed * np.cos(float(first.strikes.angle_rad[0]))
        if not first.touched[0] or approach < _SLOWEST_M_S or across > _STEEP * max(speed, 1e-9) + _SLOWEST_M_S:
            return speed, None, 0.0
        after, moving = state.copy(), slice(nq + scene.model.nv)
        after[moving] = found.ended[0, moving]
        return speed, after, float(found.lasted_s[0])

    def _between(self, before: np.ndarray, after: np.ndarray, share: float) -> np.ndarray:
        model = self.scenario.base_model
        state, change = before + share * (after - before), np.zeros(model.nv)
        # Positions along the geodesic: quaternions do not add up.
        mujoco.mj_differentiatePos(model, change, 1.0, before[: model.nq], after[: model.nq])
        state[: model.nq] = before[: model.nq]
        mujoco.mj_integratePos(model, state[: model.nq], change, share)
        return state
