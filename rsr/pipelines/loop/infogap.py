"""Measure how far the simulator was from the session, transition by transition, and how new a transition is to it."""

from __future__ import annotations

import numpy as np

from rsr.calibration import load_calibration
from rsr.common import Advance, SessionError, generator
from rsr.config import InfoGapConfig
from rsr.environments import feature_noise
from rsr.infogap import RewardSettings, fit_infogap, transitions
from rsr.policies import recorded, with_velocities
from rsr.scenarios import VELOCITY, Channels, Scenario, Task, load_scenario, structured, task_of
from rsr.sessions import Episode, Session, read_session
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
    tuned = [load_calibration(workspace.calibration_dir(number)) for number in (iteration - 1, iteration)]
    predicted = [sample.simulated(structured(scenario, each.structure), each.vector()) for each in tuned]
    predicted.append(sample.simulated(scenario, scenario.space.nominal))
    advance(0.5, "transitions simulated")
    reward = fit_infogap(
        sample.real,
        predicted[0],
        predicted[1],
        feature_noise(task_of(scenario)),
        float(recorded(scenario, session).mean_reward().std()),  # spread over episodes of the task reward per step
        rng=rng,
        simulated_first=predicted[2],
        counted=_counted(task_of(scenario), config.infogap),
        settings=_settings(config.infogap),
    )
    reward.save(workspace.infogap_dir(iteration))


def _settings(config: InfoGapConfig) -> RewardSettings:
    return RewardSettings(
        form=config.form,
        metric=config.metric,
        order=config.order,
        estimator=config.estimator,
        kappa=config.kappa,
        literal_weight=config.weight,
        skew=config.skew,
        bonus_region=config.bonus_region,
    )


def _counted(task: Task, config: InfoGapConfig) -> np.ndarray | None:
    """The columns of a transition (s, a, s' - s) by which one is new."""
    if config.novelty == "transition":
        return None
    states, actions = len(task.states.names), task.action.size
    return np.arange(2 * states + actions) >= states + actions


class _Sample:
    """A seeded draw of recorded transitions, which any simulator can be asked to predict.

    The first rows of an episode are left out: what was commanded before them, and may still act, is not recorded.

    Args (attributes):
        real: [n, d], D_real; both ends of a step as measured, so that the step carries the noise of both.
    """

    def __init__(self, scenario: Scenario, session: Session, count: int, rng: np.random.Generator) -> None:
        episodes, task = session.episodes, task_of(scenario)
        steps = [(e, row) for e, each in enumerate(episodes) for row in range(scenario.history_steps, len(each) - 1)]
        if not steps:
            raise _too_short(session, scenario)
        chosen = np.sort(rng.choice(len(steps), min(count, len(steps)), replace=False))
        drawn = [steps[index] for index in chosen]
        states = [scenario.states(each) for each in episodes]
        seen = [_seen(scenario, task, each) for each in episodes]
        columns = [task.states.compute(each) for each in seen]
        self._scenario, self._task = scenario, task
        self._start = np.stack([states[e][row] for e, row in drawn])
        self._commands = np.stack([scenario.commands_from(episodes[e], row, 1) for e, row in drawn])
        self._action = np.stack([episodes[e]["action"][row] for e, row in drawn])
        self._velocity = {
            name: np.stack([seen[e][VELOCITY + name][row] for e, row in drawn]) for name in task.velocities
        }
        self._from = np.stack([columns[e][row] for e, row in drawn])
        self.real = transitions(self._from, self._action, np.stack([columns[e][row + 1] for e, row in drawn]))

    def simulated(self, scenario: Scenario, params: np.ndarray) -> np.ndarray:
        """The same states and actions, propagated one step: [n, d]."""
        with MujocoSimulator(scenario) as simulator:
            rolled = scenario.measure(simulator.rollout(self._start, self._commands, params))
        channels = dict(with_velocities(self._scenario, self._task, self._task.completed(rolled)))
        for name, begun in self._velocity.items():
            channels[VELOCITY + name][:, 0] = begun
        path = self._task.states.compute(channels)
        return transitions(self._from, self._action, self._from + path[:, 1] - path[:, 0])


def _seen(scenario: Scenario, task: Task, episode: Episode) -> Channels:
    """Channels [T, width] of an episode, and what the task derives of them."""
    measured = {name: values[None] for name, values in episode.values.items()}
    seen = with_velocities(scenario, task, task.completed(measured))
    return {name: values[0] for name, values in seen.items()}


def _too_short(session: Session, scenario: Scenario) -> SessionError:
    return SessionError(
        got=f"episodes of at most {max(len(episode) for episode in session.episodes)} rows",
        expected=f"at least one of {scenario.history_steps + 2}: what still acts on the first rows is not recorded",
        where=f"session '{session.card.session}', InfoGap's transitions",
        next_step="Record longer episodes.",
    )
