"""Short windows cut out of episodes: starts, commands and what was measured; and which of them are worth simulating.

Over whole episodes the misfit is a rugged function of the parameters, because contact amplifies every error; over half
a second it is nearly convex. So parameters are fitted on windows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from rsr.scenarios import Observed, Scenario, difference
from rsr.sessions import Episode

MOVED_NOISES = 6.0
"""A channel moved if it strays from the window's start by more than this many standard deviations of its noise."""
GAP_SHARE = 0.75
"""Share of the chosen windows in which the gap channel moves, as long as there are enough of them."""


@dataclass(frozen=True)
class Windows:
    """W windows of T control steps.

    Args:
        starts: [W, nq + nv].
        commands: [W, H + T, nu]; the first H were in force before the window.
        real: observed channel -> [W, T, width], the rows after the start.
        episode: [W], position of the window's episode in the sequence it was cut from.
        first_row: [W].
        around: [W, 2 S + 1, nq + nv], states from S rows before each start to S rows after it, where a parameter shifts
            a channel by up to S rows; else empty.
    """

    starts: np.ndarray
    commands: np.ndarray
    real: dict[str, np.ndarray]
    episode: np.ndarray
    first_row: np.ndarray
    around: np.ndarray = field(default_factory=lambda: np.zeros((0, 1, 0)))

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def steps(self) -> int:
        """T, control steps in a window."""
        return next(iter(self.real.values())).shape[1]

    def take(self, chosen: np.ndarray) -> Windows:
        """Keep some of the windows, by index."""
        return Windows(
            self.starts[chosen],
            self.commands[chosen],
            {name: values[chosen] for name, values in self.real.items()},
            self.episode[chosen],
            self.first_row[chosen],
            self.around[chosen] if len(self.around) else self.around,
        )

    def shortened(self, steps: int) -> Windows:
        """The same windows, broken off after some control steps."""
        left_out = max(0, self.steps - steps)
        commands = self.commands[:, : self.commands.shape[1] - left_out]
        return replace(self, commands=commands, real={name: values[:, :steps] for name, values in self.real.items()})


def first_start(scenario: Scenario, episode: Episode, steps: int) -> int:
    """First row a window may begin at: H, where all commands that still act are recorded; 0 in very short episodes."""
    return scenario.history_steps if len(episode) > scenario.history_steps + steps else 0


def cut(scenario: Scenario, episodes: Sequence[Episode], steps: int, stride: int) -> Windows:
    """Cut all windows of `steps` control steps whose starts lie `stride` rows apart."""
    places = [
        (index, row)
        for index, episode in enumerate(episodes)
        for row in range(first_start(scenario, episode, steps), len(episode) - steps, stride)
    ]
    states = [scenario.states(episode) for episode in episodes]
    commands = [scenario.commands_from(episodes[index], row, steps) for index, row in places]
    total, inputs = scenario.history_steps + steps, scenario.base_model.nu
    return Windows(
        starts=np.array([states[index][row] for index, row in places]).reshape(-1, scenario.state_size),
        commands=np.array(commands).reshape(len(places), total, inputs),
        real={each.channel.name: _measured(each, episodes, places, steps) for each in scenario.observed},
        episode=np.array([index for index, _ in places], int),
        first_row=np.array([row for _, row in places], int),
        around=_around(scenario, states, places),
    )


def surroundings(scenario: Scenario, windows: Windows, episodes: Sequence[Episode]) -> np.ndarray:
    """`Windows.around` of windows that were cut for another set of shifts.

    What was subtracted from the starts since (zeros) is subtracted from the states around them.
    """
    states = [scenario.states(episode) for episode in episodes]
    places = list(zip(windows.episode.tolist(), windows.first_row.tolist(), strict=True))
    around = _around(scenario, states, places)
    return around - (around[:, scenario.shift_steps] - windows.starts)[:, None]


def _around(scenario: Scenario, states: Sequence[np.ndarray], places: Sequence[tuple[int, int]]) -> np.ndarray:
    """See `Windows.around`; beyond an episode's ends its first and last row stand in."""
    reach = np.arange(-scenario.shift_steps, scenario.shift_steps + 1)
    if not scenario.shifts or not places:
        return np.zeros((0, 1, 0))
    return np.array([states[index][np.clip(row + reach, 0, len(states[index]) - 1)] for index, row in places])


def _measured(
    observed: Observed, episodes: Sequence[Episode], places: Sequence[tuple[int, int]], steps: int
) -> np.ndarray:
    """Rows [W, steps, width] of one channel that follow each start."""
    name = observed.channel.name
    rows = [episodes[index][name][row + 1 : row + steps + 1] for index, row in places]
    return np.array(rows).reshape(len(places), steps, observed.channel.width)


def motion(scenario: Scenario, windows: Windows) -> dict[str, np.ndarray]:
    """How far each observed channel strays from its start, in standard deviations of its noise: name -> [W]."""
    started = scenario.measure(windows.starts)
    strayed = {}
    for observed in scenario.observed:
        name = observed.channel.name
        apart = difference(observed.kind, started[name][:, None], windows.real[name])
        strayed[name] = np.linalg.norm(apart, axis=-1).max(axis=1, initial=0.0) / observed.noise
    return strayed


def choose(scenario: Scenario, windows: Windows, limit: int, rng: np.random.Generator) -> Windows:
    """Choose at most `limit` windows in which something moves, spread evenly over the episodes.

    Windows in which nothing moves say nothing about the parameters and are dropped. Those in which the gap channel
    moves (contact) are the rare and telling ones: they get `GAP_SHARE` of the places.
    """
    strayed = motion(scenario, windows)
    telling = strayed[scenario.gap_channel] > MOVED_NOISES
    moving = np.any([values > MOVED_NOISES for values in strayed.values()], axis=0)
    contact, other = np.flatnonzero(telling), np.flatnonzero(moving & ~telling)
    places = min(len(contact), max(round(GAP_SHARE * limit), limit - len(other)))
    chosen = [
        *_spread(contact, windows.episode, places, rng),
        *_spread(other, windows.episode, limit - places, rng),
    ]
    return windows.take(np.sort(np.array(chosen, int)))


def _spread(candidates: np.ndarray, episode: np.ndarray, count: int, rng: np.random.Generator) -> list[int]:
    """Draw without replacement, a window of every episode before the second window of any."""
    shuffled = rng.permutation(candidates)
    turn = np.zeros(len(shuffled), int)
    for owner in np.unique(episode[shuffled]):
        mine = np.flatnonzero(episode[shuffled] == owner)
        turn[mine] = np.arange(len(mine))
    return shuffled[np.argsort(turn, kind="stable")][:count].tolist()
