"""Recorded poses in the scene: bodies inside each other, or at rest where nothing holds them.

A wrong zero, sign, length or geometry passes every check of single channels. In the scene it shows: corners lie inside
the table, or a body that the recording says is at rest falls as soon as it is simulated.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import mujoco
import numpy as np

from rsr.scenarios import Scenario, difference
from rsr.sessions import Episode, Finding, Session, counted

_ROWS = 400
"""Rows of a session that are looked at, evenly over all of its episodes."""
_DEEP, _IMPOSSIBLE = 0.25, 0.5
"""Shares of a body's smallest half-width: most contact gives way by less than the first, and most trackers are better
than that; beyond the second something is wrong."""
_ROUNDED_M = 1e-3
"""That starts which a person typed may penetrate by: numbers are rounded, and what is gripped is pressed."""
_NOISES = 3.0
"""Or of how far noise alone moves the point of contact, in standard deviations: more at the end of a long limb ..."""
_OFTEN = 0.05
"""... in all but this share of rows: at an impact a filter may cut the corner."""
_LATEST_S = 0.06
"""Clock offsets up to this, either way, are tried before poses are called impossible."""
_REST_S, _REST_NOISES = 0.3, 6.0
"""At rest is what strays by less than so many standard deviations of its noise for so long."""
_RESTS = 24
_STAYS_S = 0.25
"""What rests is simulated for so long; falling freely it would drop by 0.3 m."""
_FAR_M = 0.5
_REMEDY = (
    "Check the zero, the sign and the unit of each joint, the frame and origin of positions, the order of quaternions, "
    "and the sizes in the MJCF"
)
_SHALLOW = "Soft contact, play in a joint or a zero a little off"
_OTHERWISE = f"{_REMEDY[0].lower()}{_REMEDY[1:]}"


@dataclass(frozen=True)
class _Scene:
    """The scenario's model, and which of its bodies the recording places.

    Args:
        model: nominal, with margins that let contacts be seen before they touch.
        placed: [nbody], whether every joint between a body and the world is observed.
        width_m: [nbody], smallest half-width of each body's largest geom.
        noise: [nv], standard deviation of the measurement of each joint coordinate.
    """

    model: mujoco.MjModel
    placed: np.ndarray
    width_m: np.ndarray
    noise: np.ndarray


def judge_poses(scenario: Scenario, session: Session) -> Iterator[Finding]:
    """Find recorded poses that the scene does not allow."""
    scene = _scene(scenario)
    where = f"session '{session.card.session}'"
    inside = list(_inside(scenario, scene, session, where))
    yield from inside or _unsupported(scenario, scene, session, where)  # what is inside is pushed out as well


def _scene(scenario: Scenario) -> _Scene:
    model = copy.copy(scenario.model(scenario.space.nominal))
    model.geom_margin[:], model.pair_margin[:] = _FAR_M, _FAR_M
    seen, noise = np.zeros(model.nv, bool), np.zeros(model.nv)
    for observed in scenario.observed:
        seen[list(observed.dofs)] = True
        noise[list(observed.dofs)] = observed.noise
    placed, width_m = np.ones(model.nbody, bool), np.full(model.nbody, np.inf)
    for body in range(1, model.nbody):
        dofs = slice(model.body_dofadr[body], model.body_dofadr[body] + model.body_dofnum[body])
        placed[body] = placed[model.body_parentid[body]] and bool(seen[dofs].all())
        halves = [model.geom_aabb[geom, 3:] for geom in range(model.ngeom) if model.geom_bodyid[geom] == body]
        width_m[body] = min(max(halves, key=np.prod)) if halves else np.inf
    return _Scene(model, placed, width_m, noise)


def _inside(scenario: Scenario, scene: _Scene, session: Session, where: str) -> Iterator[Finding]:
    """Find pairs of bodies that lie deep inside each other, time and again."""
    rows = [(episode, row) for episode in session.episodes for row in range(len(episode))]
    rows = rows[:: max(1, len(rows) // _ROWS)]
    deepest = _deep(scenario, scene, rows)
    pair, found = max(deepest.items(), key=lambda each: len(each[1]), default=(None, []))
    if pair is None or len(found) <= _OFTEN * len(rows):
        return
    depth_m, episode, row, ground = max(found)
    first, second = _name(scene.model, pair[0], ground), _name(scene.model, pair[1])
    got = (
        f"{second} inside {first} by up to {1e3 * depth_m:.0f} mm (episode {episode} row {row}), and deep inside in "
        f"{100 * len(found) / len(rows):.0f} % of rows"
    )
    offset = _clock_offset(scenario, scene, rows, len(found))
    if offset is not None:
        yield _clock_finding(scenario, *offset, got, where)
        return
    too_deep = _IMPOSSIBLE * min(scene.width_m[list(pair)])
    impossible = sum(each[0] > too_deep for each in found) > _OFTEN * len(rows)
    yield Finding(
        "reject" if impossible else "care", "physics", where,
        got=got,
        expected="poses in which bodies touch and do not penetrate",
        next_step=f"{_REMEDY}; then store the session again, or correct the scene."
        if impossible
        else f"{_SHALLOW} do that. If it is none of these: {_OTHERWISE}.",
    )  # fmt: skip


def _deep(
    scenario: Scenario, scene: _Scene, rows: list[tuple[Episode, int]], late: tuple[str, int] = ("", 0)
) -> dict[tuple[int, int], list[tuple[float, int, int, str]]]:
    """Collect how deep (m), in which episode and row, each pair of bodies lies inside each other.

    Args:
        late: a channel, and how many rows later than the others it is stamped.
    """
    deepest: dict[tuple[int, int], list[tuple[float, int, int, str]]] = {}
    data = mujoco.MjData(scene.model)
    for episode, row in rows:
        data.qpos[:] = _pose(scenario, episode, row, late)
        for pair, (distance_m, ground, noise_m) in _distances(scene, data).items():
            if -distance_m > max(_DEEP * min(scene.width_m[list(pair)]), _NOISES * noise_m):
                deepest.setdefault(pair, []).append((-distance_m, episode.index, row, ground))
    return deepest


def _clock_offset(
    scenario: Scenario, scene: _Scene, rows: list[tuple[Episode, int]], usual: int
) -> tuple[str, int, float] | None:
    """Find how late one channel of joints is stamped, if with that taken off the poses are possible.

    A limb that swings at 10 rad/s is drawn decimetres off by 30 ms: the same sight as a wrong zero.

    Args:
        usual: rows that are deep inside as recorded.

    Returns:
        The channel, how many rows later than the others it is stamped, and the share of rows that are then still deep
        inside; None if no offset explains the poses.
    """
    reach = int(_LATEST_S / scenario.control_dt_s + 1e-9)
    joints = [each.channel.name for each in scenario.observed if each.qpos and each.channel.frame == "joint"]
    offsets = [(name, shift) for name in joints for shift in range(-reach, reach + 1) if shift]
    if len(scenario.observed) < 2 or not offsets:
        return None
    counts = [max(map(len, _deep(scenario, scene, rows, offset).values()), default=0) for offset in offsets]
    least, _, (name, shift) = min((count, abs(each[1]), each) for count, each in zip(counts, offsets, strict=True))
    explained = least <= min(usual / 2, _OFTEN * len(rows))
    return (name, shift, least / len(rows)) if explained else None


def _clock_finding(scenario: Scenario, name: str, shift: int, share: float, got: str, where: str) -> Finding:
    side, delay_s = "late" if shift > 0 else "early", shift * scenario.control_dt_s
    tuned = [scenario.space.names[index] for channel, index in scenario.sensor_delays if channel == name]
    remedy = (
        f"Parameter '{tuned[0]}' estimates that."
        if tuned
        else f"{_SHALLOW} look alike. If it is the clock, take it off with `delay_s: {delay_s:.3g}` in the mapping, "
        f"or add a parameter with `sensor_delay: {name}`. If it is none of these: {_OTHERWISE}."
    )
    return Finding(
        "note" if tuned else "care", "clock", f"{where}, channel '{name}'",
        got=f"{got}; in {100 * share:.0f} % if '{name}' is stamped about {1e3 * abs(delay_s):.0f} ms {side}",
        expected="one clock for all channels",
        next_step=remedy,
    )  # fmt: skip


def always_inside(scenario: Scenario, qpos: np.ndarray) -> str | None:
    """Two bodies that lie deep inside each other in each of some poses [B, nq], in words; None where there are none."""
    scene = _scene(scenario)
    scene = replace(scene, placed=np.ones_like(scene.placed))
    data, deep = mujoco.MjData(scene.model), []
    for pose in qpos:
        data.qpos[:] = pose
        found = _distances(scene, data).items()
        deep.append(
            {pair: each for pair, each in found if -each[0] > max(_ROUNDED_M, _DEEP * min(scene.width_m[list(pair)]))}
        )
    for pair in set.intersection(*map(set, deep)):
        depth_m, ground = max((-each[pair][0], each[pair][1]) for each in deep)
        first, second = _name(scene.model, pair[0], ground), _name(scene.model, pair[1])
        return f"{second} inside {first} by up to {1e3 * depth_m:.0f} mm"
    return None


def _unsupported(scenario: Scenario, scene: _Scene, session: Session, where: str) -> Iterator[Finding]:
    """Find free bodies at rest in the recording that would not stay there."""
    model = scenario.model(scenario.space.nominal)
    free = [body for body in range(1, model.nbody) if scene.placed[body] and _flies(model, body)]
    rests = [(episode, row) for episode in session.episodes for row in _rests(scenario, episode)]
    rests = rests[:: max(1, len(rests) // _RESTS)]
    if not free or not rests or model.na:
        return
    moved = np.array([_moved(scenario, model, episode, row, free) for episode, row in rests])
    share = moved / (2 * scene.width_m[free])
    leaves = (share > _DEEP).any(axis=1)
    if np.mean(leaves) <= 0.5:
        return
    data, (episode, row) = mujoco.MjData(scene.model), rests[int(np.argmax(leaves))]
    data.qpos[:] = _pose(scenario, episode, row)
    body = free[int(np.argmax(share[int(np.argmax(leaves))]))]
    gaps = [distance_m for pair, (distance_m, *_) in _distances(scene, data).items() if body in pair]
    gap = f", {1e3 * min(gaps):.0f} mm from the nearest body" if gaps and min(gaps) > 0 else ""
    yield Finding(
        "care", "physics", where,
        got=f"{_name(model, body)} at rest where nothing holds it: in {int(leaves.sum())} of "
        f"{counted(len(rests), 'such pose')} it leaves within {_STAYS_S:g} s of simulation (first in episode "
        f"{episode.index} row {row}{gap})",
        expected="poses at rest that stay, neither hanging in the air nor pushed out of another body",
        next_step=f"{_REMEDY}; unless a hand held it there, the recording and the scene disagree.",
    )  # fmt: skip


def _flies(model: mujoco.MjModel, body: int) -> bool:
    """Whether a body, or the one that it hangs from, has a free joint."""
    root = int(model.body_rootid[body])
    joints = model.jnt_type[model.body_jntadr[root] : model.body_jntadr[root] + model.body_jntnum[root]]
    return mujoco.mjtJoint.mjJNT_FREE in joints.tolist()


def _pose(scenario: Scenario, episode: Episode, row: int, late: tuple[str, int] = ("", 0)) -> np.ndarray:
    """Recorded positions [nq]; of the channel that is stamped late, those of so many rows later."""
    qpos = scenario.base_model.qpos0.copy()
    for observed in scenario.observed:
        if observed.qpos:
            shown = row + late[1] if observed.channel.name == late[0] else row
            qpos[list(observed.qpos)] = episode[observed.channel.name][min(max(shown, 0), len(episode) - 1)]
    return qpos


def _distances(scene: _Scene, data: mujoco.MjData) -> dict[tuple[int, int], tuple[float, str, float]]:
    """Smallest distance of each pair of bodies that may touch and are placed, of two trees; negative inside.

    With it the name of the first one's geom (the world has many, and "the world" names none of them), and the standard
    deviation that noise gives that distance, where it is negative.
    """
    model, found = scene.model, {}
    mujoco.mj_kinematics(model, data)
    mujoco.mj_comPos(model, data)
    mujoco.mj_collision(model, data)
    for contact in data.contact:
        geom, other = sorted(contact.geom.tolist(), key=lambda geom: int(model.geom_bodyid[geom]))
        pair = int(model.geom_bodyid[geom]), int(model.geom_bodyid[other])
        # Links of one robot may overlap where its collision shapes are rough: that says nothing of the recording.
        if model.body_rootid[pair[0]] != model.body_rootid[pair[1]] and scene.placed[list(pair)].all():
            noise_m = _noise_m(scene, data, contact, pair) if contact.dist < 0 else 0.0
            found[pair] = min((float(contact.dist), model.geom(geom).name, noise_m), found.get(pair, (np.inf, "", 0.0)))
    return found


def _noise_m(scene: _Scene, data: mujoco.MjData, contact: Any, pair: tuple[int, int]) -> float:
    """Standard deviation along a contact's normal: noise of an angle counts by its lever."""
    jacobians = np.zeros((2, 3, scene.model.nv))
    for jacobian, body in zip(jacobians, pair, strict=True):
        mujoco.mj_jac(scene.model, data, jacobian, None, contact.pos, body)
    return float(np.linalg.norm(contact.frame[:3] @ (jacobians[1] - jacobians[0]) * scene.noise))


def _rests(scenario: Scenario, episode: Episode) -> list[int]:
    """The first and the last row of an episode from which everything rests for a while."""
    rows = max(2, round(_REST_S / scenario.control_dt_s))
    if len(episode) <= rows:
        return []
    still = np.ones(len(episode) - rows, bool)
    for observed in scenario.observed:
        values = episode[observed.channel.name]
        for later in (rows // 2, rows):
            strayed = difference(observed.kind, values[:-rows], values[later : len(values) - rows + later])
            still &= np.abs(strayed).max(axis=1) < _REST_NOISES * observed.noise
    found = np.flatnonzero(still)
    return [int(found[0]), int(found[-1])][: len(found)] if found.size else []


def _moved(scenario: Scenario, model: mujoco.MjModel, episode: Episode, row: int, bodies: list[int]) -> np.ndarray:
    """How far [len(bodies)] the middles of bodies move if a recorded pose is simulated from rest."""
    data = mujoco.MjData(model)
    data.qpos[:] = _pose(scenario, episode, row)
    if model.nu:
        data.ctrl[:] = scenario.commands(episode)[min(row, len(episode) - 2)]
    mujoco.mj_forward(model, data)
    before = data.xipos[bodies].copy()
    mujoco.mj_step(model, data, round(_STAYS_S / model.opt.timestep))
    return np.linalg.norm(data.xipos[bodies] - before, axis=1)


def _name(model: mujoco.MjModel, body: int, ground: str = "") -> str:
    return (ground or "the world") if body == 0 else model.body(body).name or f"body {body}"
