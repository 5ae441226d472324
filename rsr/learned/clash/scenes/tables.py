"""A user's table of impacts between bodies of a scene, CSV or parquet, and what may be wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import mujoco
import numpy as np

from rsr.common import ScenarioError, SessionError, rotated
from rsr.learned.clash.scenes.impacts import simulate
from rsr.learned.clash.scenes.meeting import gap_of, touching
from rsr.learned.clash.scenes.scene import ContactScene
from rsr.learned.clash.tables import FEWEST, name_rows, numbers_of, refuse_copies, refuse_mirrored
from rsr.scenarios.built_in.strike import RecordedStrikes

_HELD = (int(mujoco.mjtJoint.mjJNT_SLIDE), int(mujoco.mjtJoint.mjJNT_HINGE))
_LARGEST_GAP_M, _DROPPED_MOST = 0.01, 0.3
_ONE_PLACE = 0.2
_SLOWEST_M_S, _FASTEST_M_S, _FASTEST_AFTER = 0.02, 5.0, 4.0


@dataclass(frozen=True)
class SceneStrikes:
    """N recorded impacts.

    Args:
        states: [N, n], of the whole scene when the two just touch.
        gained: [N, 3], by how much the struck body's velocity changed, in its frame before (m/s, m/s, rad/s).
        rest: [N, 3] or None, displacement (m, m) and turn (rad) until it came to rest, in the same frame.
        dropped: rows of the table in which the two do not meet: they graze, or motion capture erred.
    """

    states: np.ndarray
    gained: np.ndarray
    rest: np.ndarray | None = None
    dropped: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.states)

    def take(self, rows: np.ndarray | slice) -> SceneStrikes:
        return SceneStrikes(self.states[rows], self.gained[rows], None if self.rest is None else self.rest[rows])


def column_names(scene: ContactScene) -> tuple[list[str], list[str], list[str]]:
    """Our names of the columns of a table: of the state before, of the velocity after, and of the rest, if known."""
    one, other = scene.declared.plane
    after = [f"post_v{one}", f"post_v{other}", "post_spin"]
    rest = [f"rest_{one}", f"rest_{other}", "rest_turn"]
    before = [*_planar(scene, ""), *_striker_columns(scene)]
    if twice := sorted({name for name in before if before.count(name) > 1}):
        raise ScenarioError(
            got=f"joints of the striker named {', '.join(twice)}, as columns of the struck body are",
            expected="other names",
            where=f"scenario {scene.scenario.name}",
            next_step="Rename these joints in the MJCF, such as pad_x: a table has a column for each.",
        )
    return before, after, rest


def _planar(scene: ContactScene, prefix: str) -> list[str]:
    one, other = scene.declared.plane
    return [f"{prefix}{name}" for name in (one, other, "turn", f"v{one}", f"v{other}", "spin")]


def _striker_columns(scene: ContactScene) -> list[str]:
    """Columns of the striker: none for walls, a pose for a free body, else a place and a speed for each joint."""
    if scene.strikes_freely:
        return _planar(scene, "striker_")
    return [name for joint in _joints(scene) for name in (joint, f"{joint}_speed")]


def _joints(scene: ContactScene) -> list[str]:
    """Names of the joints between the world and the striker."""
    model, body, names = scene.model, scene.striker, list[str]()
    while body:
        first = model.body_jntadr[body]
        for joint in range(first, first + model.body_jntnum[body]):
            if int(model.jnt_type[joint]) not in _HELD:
                raise SessionError(
                    got=f"joint '{model.joint(joint).name}' of the striker, a ball joint",
                    expected="sliding joints, hinges, a free joint, or none",
                    where=f"scenario {scene.scenario.name}, collision, striker",
                    next_step="Model what holds the striker by hinges, one for each axis.",
                )
            names.append(model.joint(joint).name)
        body = int(model.body_parentid[body])
    return names[::-1]


def read_scene_strikes(path: Path, scene: ContactScene, fewest: int = FEWEST) -> SceneStrikes:
    """Read and check a table of impacts; all in the world's axes, SI units."""
    before, after, rest = column_names(scene)
    if unknown := set(scene.declared.table) - {*before, *after, *rest}:
        known = ", ".join([*before, *after, *rest])
        where = f"scenario {scene.scenario.name}, collision, table"
        advice = "Write our name first, then the one in your tables, such as {x: puck_x}."
        raise ScenarioError(got=", ".join(sorted(unknown)), expected=f"some of {known}", where=where, next_step=advice)
    columns = numbers_of(path, [*before, *after], rest, called=scene.declared.table)
    states, yaw = _states(scene, columns), columns["turn"]
    change = np.column_stack([columns[name] for name in after]) - np.column_stack([columns[n] for n in before[3:6]])
    gained = np.column_stack([rotated(change[:, :2], -yaw), change[:, 2]])
    moved = None
    if rest[0] in columns:
        far = np.column_stack([columns[name] for name in rest]) - np.column_stack([columns[n] for n in before[:3]])
        moved = np.column_stack([rotated(far[:, :2], -yaw), far[:, 2]])
    _refuse_restless(path, scene, states, change)
    refuse_copies(path, columns, fewest)
    return _meeting(path, scene, SceneStrikes(states, gained, moved))


def scene_states(scene: ContactScene, columns: Mapping[str, np.ndarray]) -> np.ndarray:
    """Make states [N, n] in which the two just touch, as an adapted scene takes them: impacts that are yet to be done.

    Args:
        columns: those of the table that say how the two meet, by our names; [N] or a number for all.
    """
    before = column_names(scene)[0]
    if missing := [name for name in before if name not in columns]:
        raise SessionError(
            got=f"no {', '.join(missing)}",
            expected=", ".join(before),
            where=f"impacts in scenario {scene.scenario.name}",
            next_step="Say of each how the two meet, as in a table of recorded impacts.",
        )
    arrays = np.broadcast_arrays(*(np.atleast_1d(columns[name]).astype(float) for name in before))
    placed, far = touching(scene, _states(scene, dict(zip(before, arrays, strict=True))))
    if np.isnan(far).any():
        raise SessionError(
            got=f"{name_rows(np.flatnonzero(np.isnan(far)))} in which the two do not meet",
            expected="poses at most 20 mm from touching, and velocities that bring them nearer",
            where=f"impacts in scenario {scene.scenario.name}",
            next_step="Place the two next to one another, or leave these out.",
        )
    return placed


def _states(scene: ContactScene, columns: dict[str, np.ndarray]) -> np.ndarray:
    count = len(columns["turn"])
    return np.array([_state(scene, columns, row) for row in range(count)]).reshape(count, -1)


def _state(scene: ContactScene, columns: dict[str, np.ndarray], row: int) -> np.ndarray:
    model, state = scene.model, np.zeros(scene.scenario.physics_size)
    qpos, qvel = state[: model.nq], state[model.nq : model.nq + model.nv]
    qpos[:] = model.qpos0
    pose = np.array([columns[name][row] for name in _planar(scene, "")])
    scene.place(qpos, qvel, scene.struck, pose[:3], pose[3:])
    if scene.strikes_freely:
        other = np.array([columns[name][row] for name in _planar(scene, "striker_")])
        scene.place(qpos, qvel, scene.striker, other[:3], other[3:])
    else:
        for name in _joints(scene):
            joint = model.joint(name)
            qpos[joint.qposadr[0]], qvel[joint.dofadr[0]] = columns[name][row], columns[f"{name}_speed"][row]
    return state


def _meeting(path: Path, scene: ContactScene, recorded: SceneStrikes) -> SceneStrikes:
    """The impacts in which the two meet, from where they just touch; refused where there are few of them."""
    placed, far = touching(scene, recorded.states)
    met = far < _LARGEST_GAP_M
    impacts = simulate(scene, scene.scenario.space.nominal, placed)
    kept, dropped = np.flatnonzero(met & impacts.touched), np.flatnonzero(~(met & impacts.touched))
    if (~met).mean() > _DROPPED_MOST:
        gap = gap_of(scene, recorded.states[int(np.flatnonzero(~met)[0])])
        raise _wrong(
            path,
            f"{name_rows(np.flatnonzero(~met))} in which the two do not meet, such as {1000 * gap:.1f} mm apart",
            "poses at the impact, at most 10 mm from touching, and velocities that bring them nearer",
            "Are poses of the centre of mass, in the world's axes, and as the MJCF is drawn?",
        )
    if len(dropped) > _DROPPED_MOST * len(recorded):
        raise _wrong(
            path,
            f"{name_rows(dropped)} in which the scene lets the two pass",
            "contacts between striker and struck",
            "Correct contype, conaffinity or <pair> of the MJCF.",
        )
    # Flat on flat, the push may act anywhere between both ends, and turn the body either way.
    clear = kept[impacts.patch.spread_m[kept] < _ONE_PLACE * scene.shape.gyration_m]
    one, other = scene.declared.plane
    advice = f"Turns and spins run from {one} to {other}: turn their signs about, or those of one axis."
    refuse_mirrored(path, RecordedStrikes(impacts.strikes.take(clear), recorded.gained[clear]), scene.shape, advice)
    found = replace(recorded, states=placed).take(kept)
    return replace(found, dropped=tuple(dropped.tolist()))


def _refuse_restless(path: Path, scene: ContactScene, states: np.ndarray, change: np.ndarray) -> None:
    """Millimetres and degrees are wrong by factors that no impact shows."""
    nq = scene.model.nq
    speed = float(np.median(np.abs(states[:, nq:]).max(axis=1)))
    fastest = float(np.median(np.linalg.norm(change[:, :2], axis=1)))
    if speed < _SLOWEST_M_S or not 0.01 < fastest < _FASTEST_M_S * _FASTEST_AFTER:
        found = f"speeds of {speed:.3g} before, and changes of {fastest:.3g}, in the median"
        raise _wrong(path, found, "0.02 to 5 m/s", "Give velocities in m/s and rad/s; columns may also be swapped.")


def _wrong(path: Path, got: str, expected: str, next_step: str) -> SessionError:
    return SessionError(got=got, expected=expected, where=str(path), next_step=next_step)
