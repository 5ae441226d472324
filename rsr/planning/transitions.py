"""Transitions of any scenario: the gap channel with its velocities, the command, and the step that followed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rsr.common import SessionError
from rsr.infogap import Scaler, Transport
from rsr.scenarios import Observed, Scenario, difference
from rsr.sessions import Episode, Session
from rsr.simulators import Simulator


@dataclass(frozen=True)
class ObservedTransitions:
    """Features of a scenario's transitions: x = (positions, velocities, commands, step of the positions).

    The gap channel is where simulation and reality are compared; whatever is commanded follows its commands.
    """

    scenario: Scenario

    def transitions(self, states: np.ndarray, commands: np.ndarray, step: np.ndarray) -> np.ndarray:
        """Build [n, d] from states [n, nq + nv], commands [n, nu] and steps [n, c] (`step`)."""
        observed = self._observed
        positions, velocities = list(observed.places), self.scenario.base_model.nq + np.array(observed.dofs)
        return np.concatenate([states[:, positions], states[:, velocities], commands, step], axis=1)

    def step(self, before: np.ndarray, after: np.ndarray) -> np.ndarray:
        """Change of the gap channel between its values [n, c]; rotation vectors for quaternions."""
        return difference(self._observed.kind, before, after)

    def position(self, states: np.ndarray) -> np.ndarray:
        """The gap channel of states [..., nq + nv]."""
        return states[..., list(self._observed.places)]

    def noise(self) -> np.ndarray:
        """Compute the noise [d] of a recorded transition that its simulated partner lacks: that of two readings.

        Both start from the same recorded state and command; the step carries the noise of both of its ends.
        """
        observed = self._observed
        shared = len(observed.places) + len(observed.dofs) + self.scenario.command_width
        return np.concatenate([np.zeros(shared), np.full(observed.tangent_width, np.sqrt(2) * observed.noise)])

    @property
    def _observed(self) -> Observed:
        return self.scenario.observed_channel(self.scenario.gap_channel)


class TransitionPairs:
    """A seeded draw of recorded transitions, which any simulator can be asked to predict.

    The first rows of an episode are left out: what was commanded before them, and may still act, is not recorded.

    Args (attributes):
        real: [n, d], both ends of a step as measured.
    """

    def __init__(self, scenario: Scenario, sessions: Sequence[Session], count: int, rng: np.random.Generator) -> None:
        episodes = [episode for session in sessions for episode in session.episodes]
        places = _places(scenario, episodes, count, rng)
        states = {index: scenario.states(episodes[index]) for index in {index for index, _ in places}}
        channel = [episodes[index][scenario.gap_channel] for index, _ in places]
        self._watched, self._inputs = ObservedTransitions(scenario), scenario.base_model.nu
        self._start = np.array([states[index][row] for index, row in places])
        self._commands = np.array([scenario.commands_from(episodes[index], row, 1) for index, row in places])
        before = np.array([values[row] for values, (_, row) in zip(channel, places, strict=True)])
        after = np.array([values[row + 1] for values, (_, row) in zip(channel, places, strict=True)])
        self.real = self._transitions(self._watched.step(before, after))

    def simulated(self, simulator: Simulator, params: np.ndarray) -> np.ndarray:
        """The same states and commands, propagated one control step: [n, d]."""
        path = self._watched.position(simulator.rollout(self._start, self._commands, params))
        return self._transitions(self._watched.step(path[:, 0], path[:, 1]))

    def _transitions(self, step: np.ndarray) -> np.ndarray:
        return self._watched.transitions(self._start, self._commands[:, -1, : self._inputs], step)


def _places(
    scenario: Scenario, episodes: Sequence[Episode], count: int, rng: np.random.Generator
) -> list[tuple[int, int]]:
    """(episode, row) of transitions, drawn evenly over all that there are."""
    every = [
        (index, row)
        for index, episode in enumerate(episodes)
        for row in range(scenario.history_steps, len(episode) - 1)
    ]
    if not every:
        raise SessionError(
            got=f"{len(episodes)} episodes of at most {max((len(each) for each in episodes), default=0)} rows",
            expected=f"an episode of {scenario.history_steps + 2} rows or more",
            where=f"recordings of {scenario.name}",
            next_step="Record longer episodes.",
        )
    chosen = np.sort(rng.choice(len(every), min(count, len(every)), replace=False))
    return [every[place] for place in chosen]


def novelty_map(recorded: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """How new each point of a grid is to recorded points [n, 2]: [len(y), len(x)], 0 to 1.

    The bounded ground metric's W1 of one added sample, as in the InfoGap reward, of these two columns alone.
    """
    scaler = Scaler.fit(recorded, noise=1e-9)
    transport = Transport.fit(scaler(recorded), rng=np.random.default_rng(0))
    points = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    largest = transport.metric.tau if np.isfinite(transport.metric.tau) else 1.0
    return (transport.mean_distance(scaler(points)) / largest).reshape(len(y), len(x))
