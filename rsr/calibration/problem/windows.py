"""Short windows of episodes: initial states, commands, readings; and the selection of informative ones.

Over whole episodes the misfit has many local minima, because contact amplifies every error; over half a second it is
nearly convex. So parameters are fitted on windows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from rsr.scenarios import Observed, Scenario, difference, one_sided_rows
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
        commands: [W, H + T, nu + C]; the first H were in force before the window.
        real: observed channel -> [W, T, width], the rows after the start.
        episode: [W], position of the window's episode in the sequence it was cut from.
        first_row: [W].
        lengths: [W], control steps before the episode ends, T at most; later rows repeat the last. All T by default.
        around: [W, 2 S + 1, nq + nv], states from S rows before each start to S rows after it, where a sensor delay of
            up to S rows is a parameter; else empty.
    """

    starts: np.ndarray
    commands: np.ndarray
    real: dict[str, np.ndarray]
    episode: np.ndarray
    first_row: np.ndarray
    lengths: np.ndarray = field(default_factory=lambda: np.zeros(0, int))
    around: np.ndarray = field(default_factory=lambda: np.zeros((0, 1, 0)))

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def steps(self) -> int:
        """T, control steps in a window."""
        return next(iter(self.real.values())).shape[1]

    @cached_property
    def inside(self) -> np.ndarray:
        """[W, T], true where a row belongs to its window."""
        lengths = self.lengths if len(self.lengths) else np.full(len(self), self.steps)
        return np.arange(self.steps) < lengths[:, None]

    @property
    def overlap(self) -> float:
        """How many windows share a recorded row, on average."""
        rows = self.first_row[:, None] + np.arange(self.steps)
        places = np.stack([np.broadcast_to(self.episode[:, None], rows.shape), rows], axis=-1)[self.inside]
        return len(places) / max(1, len(np.unique(places, axis=0)))

    def take(self, chosen: np.ndarray) -> Windows:
        """Keep some of the windows, by index."""
        return Windows(
            self.starts[chosen],
            self.commands[chosen],
            {name: values[chosen] for name, values in self.real.items()},
            self.episode[chosen],
            self.first_row[chosen],
            self.lengths[chosen] if len(self.lengths) else self.lengths,
            self.around[chosen] if len(self.around) else self.around,
        )

    def apart(self) -> Windows:
        """Keep windows that do not overlap, from the first of each episode on."""
        kept, ends = [], {}
        for index in np.lexsort([self.first_row, self.episode]):
            episode, row = int(self.episode[index]), int(self.first_row[index])
            if row >= ends.get(episode, 0):
                kept.append(index)
                ends[episode] = row + int(self.inside[index].sum())
        return self.take(np.array(kept, int))

    def shortened(self, steps: int) -> Windows:
        """Cut the windows short after some control steps."""
        left_out = max(0, self.steps - steps)
        commands = self.commands[:, : self.commands.shape[1] - left_out]
        real = {name: values[:, :steps] for name, values in self.real.items()}
        return replace(self, commands=commands, real=real, lengths=np.minimum(self.lengths, steps))


def first_start(scenario: Scenario, episode: Episode, steps: int) -> int:
    """Find the first row a window may begin at: H, where all commands that still act are recorded; 0 if too short."""
    return scenario.history_steps if len(episode) > scenario.history_steps + steps else 0


def cut(scenario: Scenario, episodes: Sequence[Episode], steps: int, stride: int) -> Windows:
    """Cut windows of `steps` control steps, one for each `stride` rows, from the quietest row among these.

    At the end of an episode they are shorter, by half at most.
    """
    places = [
        (index, row) for index, episode in enumerate(episodes) for row in _quiet(scenario, episode, steps, stride)
    ]
    # States are smoothed over the whole episode, so once for all of its windows.
    states = [scenario.states(episode) for episode in episodes]
    commands = [scenario.commands_from(episodes[index], row, steps) for index, row in places]
    return Windows(
        starts=np.array([states[index][row] for index, row in places]).reshape(-1, scenario.state_size),
        commands=np.array(commands).reshape(len(places), scenario.history_steps + steps, scenario.command_width),
        real={each.channel.name: _measured(each, episodes, places, steps) for each in scenario.observed},
        episode=np.array([index for index, _ in places], int),
        first_row=np.array([row for _, row in places], int),
        lengths=np.array([min(steps, len(episodes[index]) - 1 - row) for index, row in places], int),
        around=_around(scenario, states, places),
    )


def _quiet(scenario: Scenario, episode: Episode, steps: int, stride: int) -> list[int]:
    """Find the rows where windows begin: of each `stride` the quietest, if no impact is within its smoothing."""
    least = (steps + 1) // 2
    first, end = first_start(scenario, episode, least), len(episode) - least
    # At either end of a recording velocities are extrapolated; such rows only where there are no others.
    first = min(max(first, one_sided_rows(scenario.control_dt_s)), max(first, end - 1))
    if first >= end:
        return []
    unrest = scenario.unrest(episode)
    slots = [range(row, min(row + stride, end)) for row in range(first, end, stride)]
    rows = [min(slot, key=lambda row: unrest[row]) for slot in slots]
    quiet = [row for row in rows if unrest[row] <= 1.0]
    return quiet or rows


def surroundings(scenario: Scenario, windows: Windows, episodes: Sequence[Episode]) -> np.ndarray:
    """Compute `Windows.around` of windows that were cut for another set of sensor delays.

    Biases that were subtracted from the starts since are subtracted from the states around them.
    """
    states = [scenario.states(episode) for episode in episodes]
    places = list(zip(windows.episode.tolist(), windows.first_row.tolist(), strict=True))
    around = _around(scenario, states, places)
    return around - (around[:, scenario.shift_steps] - windows.starts)[:, None]


def _around(scenario: Scenario, states: Sequence[np.ndarray], places: Sequence[tuple[int, int]]) -> np.ndarray:
    """Compute `Windows.around`; beyond an episode's ends its first and last row are repeated."""
    reach = np.arange(-scenario.shift_steps, scenario.shift_steps + 1)
    if not scenario.sensor_delays or not places:
        return np.zeros((0, 1, 0))
    return np.array([states[index][np.clip(row + reach, 0, len(states[index]) - 1)] for index, row in places])


def _measured(
    observed: Observed, episodes: Sequence[Episode], places: Sequence[tuple[int, int]], steps: int
) -> np.ndarray:
    """Collect the rows [W, steps, width] of one channel that follow each start."""
    name = observed.channel.name
    reach = np.arange(1, steps + 1)
    rows = [episodes[index][name][np.minimum(row + reach, len(episodes[index]) - 1)] for index, row in places]
    return np.array(rows).reshape(len(places), steps, observed.channel.width)


def motion(scenario: Scenario, windows: Windows) -> dict[str, np.ndarray]:
    """Compute how far each observed channel moves from its start, in standard deviations of noise: name -> [W]."""
    started = scenario.measure(windows.starts)
    strayed = {}
    for observed in scenario.observed:
        name = observed.channel.name
        apart = difference(observed.kind, started[name][:, None], windows.real[name])
        strayed[name] = np.linalg.norm(apart, axis=-1).max(axis=1, initial=0.0) / observed.noise
    return strayed


def choose(scenario: Scenario, windows: Windows, limit: int, rng: np.random.Generator) -> Windows:
    """Choose at most `limit` windows in which something moves, spread evenly over the episodes.

    Windows in which nothing moves carry no information on the parameters and are dropped. Those in which the gap
    channel moves (contact) are rare and informative: they get `GAP_SHARE` of the places.
    """
    strayed = motion(scenario, windows)
    informative = strayed[scenario.gap_channel] > MOVED_NOISES
    moving = np.any([values > MOVED_NOISES for values in strayed.values()], axis=0)
    contact, other = np.flatnonzero(informative), np.flatnonzero(moving & ~informative)
    # At least its share of contact, and more where there are too few others to fill the rest.
    places = min(len(contact), max(round(GAP_SHARE * limit), limit - len(other)))
    chosen = [
        *_spread(contact, windows.episode, places, rng),
        *_spread(other, windows.episode, limit - places, rng),
    ]
    return windows.take(np.sort(np.array(chosen, int)))


def _spread(candidates: np.ndarray, episode: np.ndarray, count: int, rng: np.random.Generator) -> list[int]:
    """Draw without replacement, a window of every episode before the second window of any."""
    shuffled = rng.permutation(candidates)
    # turn: a window's rank within its own episode. Sorted by it, the first windows of all episodes come first.
    turn = np.zeros(len(shuffled), int)
    for index in np.unique(episode[shuffled]):
        mine = np.flatnonzero(episode[shuffled] == index)
        turn[mine] = np.arange(len(mine))
    return shuffled[np.argsort(turn, kind="stable")][:count].tolist()


def words(scenario: Scenario, windows: Windows, reason: str) -> str:
    """Say which windows parameters are fitted on, and the reason for their length."""
    lengths_s = windows.inside.sum(axis=1) * scenario.control_dt_s
    shortest, longest = lengths_s.min(), lengths_s.max()
    length = f"{longest:.2g} s" if shortest == longest else f"{shortest:.2g} to {longest:.2g} s"
    return (
        f"{len(windows)} of {length} from {len(np.unique(windows.episode))} episodes, begun in quiet rows; "
        f"the length is {reason}"
    )
