"""Measure how far the simulator was from the session, transition by transition, and how new a transition is to it."""

from __future__ import annotations

import numpy as np

from rsr.calibration import load_calibration
from rsr.infogap import fit_infogap, transitions
from rsr.policies.novelty import feature_noise, features
from rsr.policies.rollouts import recorded
from rsr.progress import Advance
from rsr.randomness import generator
from rsr.scenarios import Scenario, load_scenario
from rsr.scenarios.push_cube.task import reward as task_reward
from rsr.sessions import Session, read_session
from rsr.simulators import MujocoSimulator
from rsr.workspace import Workspace


def infogap(workspace: Workspace, iteration: int, advance: Advance) -> None:
    """Write infogap/: KL(D_real^k || D_sim^{k-1}) and the transport model of D_sim^k, Eq. (3)."""
    config = workspace.config(iteration)
    scenario = load_scenario(config.scenario)
    session = read_session(workspace.session_dir(iteration))
    rng = generator(config.seed, iteration, "infogap")
    sample = _Sample(scenario, session, config.infogap.transitions, rng)
    advance(0.2, "transitions drawn")
    before, after = (
        load_calibration(workspace.calibration_dir(number)).vector() for number in (iteration - 1, iteration)
    )
    with MujocoSimulator(scenario) as simulator:
        predicted = [sample.simulated(simulator, params) for params in (before, after, scenario.space.nominal)]
    advance(0.5, "transitions simulated")
    reward = fit_infogap(
        sample.real,
        predicted[0],
        predicted[1],
        feature_noise(scenario),
        _task_reward_std(session),
        rng=rng,
        simulated_first=predicted[2],
        kappa=config.infogap.kappa,
        skew=config.infogap.skew,
    )
    reward.save(workspace.infogap_dir(iteration))


class _Sample:
    """A seeded draw of recorded transitions, which any simulator can be asked to predict.

    Args (attributes):
        real: [n, d], D_real.
    """

    def __init__(self, scenario: Scenario, session: Session, count: int, rng: np.random.Generator) -> None:
        steps = len(session.episodes[0]) - 1
        chosen = rng.choice(len(session.episodes) * steps, min(count, len(session.episodes) * steps), replace=False)
        episode, step = np.divmod(np.sort(chosen), steps)
        states = np.stack([scenario.states(e) for e in session.episodes])
        action = np.stack([e["action"] for e in session.episodes])
        self._scenario = scenario
        self._start = states[episode, step]
        self._commands = _with_history(scenario, session)[episode, step]
        self._action = action[episode, step]
        self.real = self._transitions(states[episode, step + 1])

    def simulated(self, simulator: MujocoSimulator, params: np.ndarray) -> np.ndarray:
        """The same states and actions, propagated one step: [n, d]."""
        return self._transitions(simulator.rollout(self._start, self._commands, params)[:, 1])

    def _transitions(self, after: np.ndarray) -> np.ndarray:
        return transitions(self._seen(self._start), self._action, self._seen(after))

    def _seen(self, states: np.ndarray) -> np.ndarray:
        channels = self._scenario.measure(states)
        return features(channels["joint_position"], channels["block_position"])


def _with_history(scenario: Scenario, session: Session) -> np.ndarray:
    """Commands in force around each step, [episodes, T, H + 1, nu]; before the start the first setpoint held."""
    ages = scenario.history_steps
    commands = np.stack([scenario.commands(episode) for episode in session.episodes])
    first = np.stack([scenario.measure(scenario.states(e)[:1])["joint_position"] for e in session.episodes])
    padded = np.concatenate([np.repeat(first, ages, axis=1), commands], axis=1)
    windows = np.lib.stride_tricks.sliding_window_view(padded, ages + 1, axis=1)
    return np.moveaxis(windows, -1, 2)


def _task_reward_std(session: Session) -> float:
    """Spread over episodes of the mean task reward per step."""
    real = recorded(session)
    reward = task_reward(real.tip, real.block, real.target[:, None])
    return float(reward.mean(axis=1).std())


