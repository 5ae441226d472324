"""Pushing along routes: the policy of a segment, again and again, each sub-goal followed by the next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rsr.clash.planning import Rollouts
from rsr.clash.routes import Route, next_segment
from rsr.clash.segment import Blocks
from rsr.clash.segment_env import strike
from rsr.clash.strike_policy import StrikePolicy
from rsr.randomness import generator


@dataclass(frozen=True)
class Pushed:
    """N blocks pushed along a route.

    Args:
        route: the route.
        completed: [N], segments completed before the first that was not.
        paths: of each block: poses [strikes + 1, 3] at rest, of the route's start (m, m, rad).
    """

    route: Route
    completed: np.ndarray
    paths: tuple[np.ndarray, ...]

    @property
    def succeeded(self) -> np.ndarray:
        """[N], whether the whole route was completed."""
        return self.completed == len(self.route)

    @property
    def success(self) -> float:
        """SR of the paper."""
        return float(self.succeeded.mean())

    @property
    def segments_completed(self) -> float:
        """SGCR of the paper: completed segments over all segments of all trials."""
        return float(self.completed.mean() / len(self.route))


def route_starts(route: Route, count: int, rng: np.random.Generator) -> np.ndarray:
    """Poses [N, 3] at the start of a route, turned as it says."""
    turned = rng.uniform(-route.spread_rad, route.spread_rad, count)
    return np.column_stack([np.zeros((count, 2)), turned])


def push(policy: StrikePolicy, route: Route, rollouts: Rollouts, starts: np.ndarray) -> Pushed:
    """Push blocks from `starts` [N, 3] along a route, all at once.

    Args:
        rollouts: a simulator, or whatever carries strikes out.
    """
    count, task = len(starts), policy.task
    completed = np.zeros(count, int)
    paths = [[pose] for pose in starts]
    rows, pose = np.arange(count), starts
    for segment, turn in enumerate(route.turns_rad):
        blocks = Blocks(pose, np.zeros(len(rows), int), np.full(len(rows), turn))
        arrived, kept = [np.zeros((0, 3))], [np.zeros(0, int)]
        while len(rows):
            outcome = strike(task, rollouts, blocks, policy.act(task.observe(blocks)))
            for row, world in zip(rows, route.to_world(segment, outcome.blocks.pose), strict=True):
                paths[row].append(world)
            arrived.append(next_segment(outcome.blocks.pose, blocks.turn_rad)[outcome.reached])
            kept.append(rows[outcome.reached])
            going = np.flatnonzero(~outcome.ended)
            rows, blocks = rows[going], outcome.blocks.take(going)
        rows, pose = np.concatenate(kept), np.concatenate(arrived)
        completed[rows] += 1
    return Pushed(route, completed, tuple(np.array(path) for path in paths))


def push_routes(
    policy: StrikePolicy, routes: Sequence[Route], rollouts: Rollouts, trials: int, seed: int
) -> tuple[Pushed, ...]:
    """Push along each route. Equal seeds give equal starts, for whatever policy."""
    return tuple(
        push(policy, route, rollouts, route_starts(route, trials, generator(seed, "route", route.name)))
        for route in routes
    )
