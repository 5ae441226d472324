"""Running a policy in a simulator from given starts: the simulated half of every comparison with reality."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rsr.environments import Measuring, World
from rsr.policies.policy import Policy
from rsr.scenarios import HELD, VELOCITY, Channels, Plane, Scenario, Starts, Task, difference, task_of
from rsr.sessions import Session


@dataclass(frozen=True)
class Rollouts:
    """Closed-loop episodes of up to T + 1 rows; where one is shorter, its last row is repeated.

    Args:
        channels: [B, T + 1, width] each: what was measured or simulated, the goal, and what the task derives of them.
        rows: [B], how many rows each episode has.
    """

    task: Task
    channels: Channels
    rows: np.ndarray

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def success(self) -> np.ndarray:
        """[B], at the last row of each."""
        return self.task.succeeded(self.last)

    @property
    def last(self) -> Channels:
        """Channels [B, width] of the last rows."""
        return {name: values[:, -1] for name, values in self.channels.items()}

    def figures(self) -> dict[str, np.ndarray]:
        """The task's progress figures [B, T + 1]."""
        return {figure.name: figure.compute(self.channels) for figure in self.task.figures}

    def first(self, count: int) -> Rollouts:
        """Keep the first episodes."""
        kept = {name: values[:count] for name, values in self.channels.items()}
        return Rollouts(self.task, kept, self.rows[:count])

    def ended_after(self, rows: np.ndarray) -> Rollouts:
        """End each episode after so many rows [B], where the recording that it is compared with ends."""
        if (rows >= self.rows).all():
            return self
        longest = next(iter(self.channels.values())).shape[1]
        episode, row = np.arange(len(self))[:, None], np.minimum(np.arange(longest), rows[:, None] - 1)
        kept = {name: values[episode, row] for name, values in self.channels.items()}
        return Rollouts(self.task, kept, np.minimum(rows, self.rows))

    def mean_reward(self) -> np.ndarray:
        """Task reward [B], mean over the rows of each episode."""
        reward = self.task.reward(self.channels)
        return np.array([own[:rows].mean() for own, rows in zip(reward, self.rows, strict=True)])


def run(
    scenario: Scenario,
    params: np.ndarray,
    policy: Policy,
    starts: Starts,
    rng: np.random.Generator,
    steps: int | None = None,
) -> Rollouts:
    """Run the policy in the simulator with parameters [P], seeing through the scenario's sensor noise.

    An episode in which the task fails ends there.

    Args:
        steps: length of the episodes; by default the scenario's.
    """
    count, steps = len(starts), scenario.episode_steps if steps is None else steps
    task, everyone = policy.task, np.arange(len(starts))
    measuring = Measuring(scenario, task, count, rng, params)
    rows = np.ones(count, int)
    with World.simulated(scenario, params, count) as world:
        world.place(everyone, starts)
        seen, true = measuring.first(world, everyone), [world.channels]
        for _ in range(steps):
            going = _going(task, true[-1], rows, len(true))
            world.step(policy.act(task.observe(seen)))
            seen = measuring(world)
            true.append(world.channels)
            rows[going] += 1
    channels = {name: np.stack([each[name] for each in true], axis=1) for name in true[0]}
    return Rollouts(task, channels, np.full(count, steps + 1)).ended_after(rows)


def _going(task: Task, channels: Channels, rows: np.ndarray, row: int) -> np.ndarray:
    """True [B] where no episode has failed yet."""
    going = rows == row
    return going if task.failure is None else going & ~task.failure(channels)


def starts_of(scenario: Scenario, session: Session) -> Starts:
    """Where the episodes of a recording began, at rest, and what they were to reach.

    The command in force is the one that holds that pose: the first that is recorded was already the policy's.
    """
    qpos = [scenario.states(episode)[0, : scenario.base_model.nq] for episode in session.episodes]
    goal = {name: np.stack([each[name][0] for each in session.episodes]) for name in task_of(scenario).goal}
    return Starts(np.stack(qpos), goal)


def recorded(scenario: Scenario, session: Session) -> Rollouts:
    """The episodes of a recording in the same form, as the sensors saw them."""
    task = task_of(scenario)
    rows = np.array([len(episode) for episode in session.episodes])
    names = [channel.name for channel in session.channels]
    measured = {name: _equally_long([episode[name] for episode in session.episodes]) for name in names}
    channels = with_velocities(scenario, task, task.completed(measured))
    if task.held_s:
        channels[HELD] = _held(task.reached(channels), scenario.control_dt_s)
    return Rollouts(task, channels, np.full(len(rows), rows.max())).ended_after(rows)  # velocities are repeated, too


def _held(reached: np.ndarray, dt_s: float) -> np.ndarray:
    """Seconds [B, T, 1] for which what is true [B, T] has been true; the first row is where an episode begins."""
    held = np.zeros(reached.shape)
    for row in range(1, reached.shape[1]):
        held[:, row] = np.where(reached[:, row], held[:, row - 1] + dt_s, 0.0)
    return held[..., None]


def with_velocities(scenario: Scenario, task: Task, channels: Channels) -> dict[str, np.ndarray]:
    """The channels [B, T + 1, width], and the velocities that the task asks for, from their differences."""
    found = {}
    for name in task.velocities:
        values, kind = channels[name], scenario.observed_channel(name).kind
        rate = difference(kind, values[:, :-1], values[:, 1:]) / scenario.control_dt_s
        found[VELOCITY + name] = np.concatenate([np.zeros_like(rate[:, :1]), rate], axis=1)
    return {**channels, **found}


def _equally_long(episodes: list[np.ndarray]) -> np.ndarray:
    """Stack arrays [T, k] of any lengths as [B, longest T, k], each padded with its last row."""
    longest = max(len(values) for values in episodes)
    return np.stack([np.pad(values, ((0, longest - len(values)), (0, 0)), mode="edge") for values in episodes])


# Figures of rollouts, recorded or simulated.


CELLS = 15
"""Of the plane whose coverage is reported, along each side."""


def visits(rollouts: Rollouts) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]] | None:
    """Count rows in each cell of the task's plane: [cells, cells], and the edges; None where the task names none."""
    plane = rollouts.task.plane
    return None if plane is None else visited(plane, plane.compute(rollouts.channels))


def visited(plane: Plane, points: np.ndarray) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """Count points [..., 2] in each cell of a plane: [cells, cells], and the edges."""
    size = 2 * plane.half / CELLS
    cells = np.floor((points.reshape(-1, 2) - plane.centre + plane.half) / size).astype(int)
    inside = cells[((cells >= 0) & (cells < CELLS)).all(axis=1)]
    counts = np.zeros((CELLS, CELLS))
    np.add.at(counts, tuple(inside.T), 1)
    x_edges, y_edges = (np.linspace(centre - plane.half, centre + plane.half, CELLS + 1) for centre in plane.centre)
    return counts, (x_edges, y_edges)


def wilson_interval(share: float, count: int) -> tuple[float, float]:
    """95 % interval of a share observed in `count` trials (Wilson's score)."""
    z2 = 1.96**2
    centre = (share + z2 / (2 * count)) / (1 + z2 / count)
    reach = np.sqrt(z2) / (1 + z2 / count) * np.sqrt(share * (1 - share) / count + z2 / (4 * count**2))
    return max(0.0, float(centre - reach)), min(1.0, float(centre + reach))
