"""A stored policy of strikes, and how it pushes blocks along routes: each sub-goal followed by the next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from rsr.common import DAMAGED, PolicyError, generator, read_arrays, read_json, write_arrays, write_json
from rsr.learned.clash.generate import shape_card, shape_from
from rsr.learned.clash.planning import Rollouts
from rsr.learned.clash.segment import Blocks, Outcome, Route, SegmentTask, next_segment

_ARRAYS, _CARD = "strike_policy.npz", "strike_policy.json"


@dataclass(frozen=True)
class StrikePolicy:
    """A network that chooses speed, place and angle of the next strike; numpy alone evaluates it.

    Args:
        task: what it was trained for.
        layers: (weight [out, in], bias [out]) of each layer, float32; relu between them, tanh at the end.
        card: how it was trained.
    """

    task: SegmentTask
    layers: tuple[tuple[np.ndarray, np.ndarray], ...]
    card: dict[str, Any] = field(default_factory=dict)

    def act(self, observation: np.ndarray) -> np.ndarray:
        """Actions [N, 3] in -1..1 for observations [N, 9] of the task."""
        hidden = observation
        for weight, bias in self.layers[:-1]:
            hidden = np.maximum(hidden @ weight.T + bias, 0)
        weight, bias = self.layers[-1]
        return np.tanh(hidden @ weight.T + bias)

    def save(self, folder: Path) -> None:
        """Write arrays and a card; equal policies give equal bytes."""
        arrays = {}
        for index, (weight, bias) in enumerate(self.layers):
            arrays |= {f"weight{index}": weight, f"bias{index}": bias}
        write_arrays(folder / _ARRAYS, arrays)
        rules = {name: value for name, value in asdict(self.task).items() if name != "shape"}
        card = {"shape": shape_card(self.task.shape), "task": rules, "layers": len(self.layers)}
        write_json(folder / _CARD, self.card | card)

    @staticmethod
    def load(folder: Path) -> StrikePolicy:
        try:
            card, arrays = read_json(folder / _CARD), read_arrays(folder / _ARRAYS)
            layers = tuple((arrays[f"weight{index}"], arrays[f"bias{index}"]) for index in range(card["layers"]))
            task = SegmentTask(shape_from(card["shape"]), **card["task"])
        except (*DAMAGED, TypeError) as error:
            raise PolicyError(
                got=f"{type(error).__name__}: {error}",
                expected=f"{_ARRAYS} and {_CARD} of one policy",
                where=str(folder),
                next_step="Train it again with `rsr clash push`.",
            ) from error
        return StrikePolicy(task, layers, card)


def strike(task: SegmentTask, rollouts: Rollouts, blocks: Blocks, actions: np.ndarray) -> Outcome:
    """Strike each block once."""
    return task.outcome(blocks, rollouts(task.strikes(actions)))


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
        """SR of the paper's Table VI."""
        return float(self.succeeded.mean())

    @property
    def segments_completed(self) -> float:
        """SGCR of the same table: completed segments over all segments of all trials."""
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
    # All blocks go through the segments together; `rows` are those that completed all segments so far.
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
            # A reached sub-goal is the next segment's start, wherever within its radius the block came to rest.
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
