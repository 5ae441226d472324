"""A stand-in for a table on which one cube is pushed into another, measured by cameras. Everything here is simulated.

What hides in it is in `rsr.realities._cubes`, frozen before anything was fitted. Methods are tuned on some seeds and
judged on others:

    TUNING_SEEDS    0 to 5        looked at while methods were written
    JUDGING_SEEDS   5200 to 5205  looked at by `benchmarks/gnn.py` alone
"""

from __future__ import annotations

import numpy as np

from rsr.common import Advance, generator
from rsr.realities._cubes.table import Table
from rsr.realities._cubes.tags import seen
from rsr.realities._cubes.truth import draw_truth
from rsr.realities.reality import CollectionPlan, Controller
from rsr.scenarios import load_scenario
from rsr.scenarios.built_in.two_cubes import FRAME_S, SIDE_M
from rsr.sessions import Card, Episode, Session

TUNING_SEEDS = tuple(range(6))
JUDGING_SEEDS = tuple(range(5200, 5206))
TRAINING, TEST = 3, 14

_FRAMES = 22
_SPEED_M_S = (0.8, 1.4)
_GAP_M = (0.04, 0.07)


class CubesStandIn:
    """Two cubes and a table that obey more than MuJoCo's contact law, seen through tags."""

    of_scenario = "two_cubes"

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._table = Table(draw_truth(seed))

    def collect(self, policy: Controller | None, plan: CollectionPlan, advance: Advance) -> Session:
        """Push `plan.episodes` times; which pushes, the session's name says."""
        session = self.record(plan.session, plan.episodes)
        advance(1.0, f"{plan.episodes} pushes")
        return session

    def training(self) -> Session:
        """The three trajectories that fitting may use."""
        return self.record("push-training", TRAINING)

    def test(self) -> Session:
        """Fourteen others, from other starts, to judge by."""
        return self.record("push-test", TEST)

    def record(self, session: str, count: int, frames: int = _FRAMES) -> Session:
        """Push so many times and record. Equal arguments give equal sessions; another name, other pushes."""
        rng = generator(self._seed, "two_cubes", "record", session)
        pushes = [seen(self._table.push(*_start(rng), frames), rng) for _ in range(count)]
        scenario = load_scenario(self.of_scenario)
        time_s = np.arange(frames) * FRAME_S
        episodes = tuple(Episode(index, time_s, _values(poses)) for index, poses in enumerate(pushes))
        card = Card(
            session=session,
            scenario=scenario.name,
            reality="two cubes",
            simulated=True,
            control_dt_s=scenario.control_dt_s,
            robot="two cubes of 0.08 m and 0.15 kg, pushed by hand",
            notes="A stand-in: simulated with hidden contact laws, noise and tags that jump.",
        )
        return Session(card, scenario.channels, episodes)


def _start(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Poses [2, 7] and velocities [2, 6]: cube1 has just been let go, cube2 rests ahead of it."""
    heading, yaw = rng.uniform(-np.pi, np.pi), rng.normal(0, 0.35, 2)
    ahead = np.array([np.cos(heading), np.sin(heading)])
    aside = np.array([-ahead[1], ahead[0]])
    reach = (np.cos(np.abs(yaw)) + np.sin(np.abs(yaw))).sum() * SIDE_M / 2
    struck = rng.uniform(-0.15, 0.15, 2)
    pushed = struck - ahead * (reach + rng.uniform(*_GAP_M)) + aside * rng.uniform(-0.3, 0.3) * SIDE_M
    angle = heading + yaw
    poses = np.zeros((2, 7))
    poses[:, :2], poses[:, 2] = [pushed, struck], SIDE_M / 2
    poses[:, 3], poses[:, 6] = np.cos(angle / 2), np.sin(angle / 2)
    velocities = np.zeros((2, 6))
    velocities[0, :2] = ahead * rng.uniform(*_SPEED_M_S)
    velocities[0, 5] = rng.normal(0, 0.8)
    return poses, velocities


def _values(poses: np.ndarray) -> dict[str, np.ndarray]:
    values = {}
    for index in range(poses.shape[1]):
        values[f"cube{index + 1}_position"] = poses[:, index, :3]
        values[f"cube{index + 1}_orientation"] = poses[:, index, 3:]
    return values
