"""Measure how far the simulator was from the session, transition by transition, and how new a transition is to it."""

from __future__ import annotations

import numpy as np

from rsr.calibration import load_calibration
from rsr.config import InfoGapConfig
from rsr.infogap import RewardSettings, fit_infogap, transitions
from rsr.policies.novelty import feature_noise, features, state_columns
from rsr.policies.rollouts import recorded
from rsr.progress import Advance
from rsr.randomness import generator
from rsr.scenarios import Scenario, load_scenario, structured, task_of
from rsr.scenarios.pushing.arm import ACTION_SIZE
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
    tuned = [load_calibration(workspace.calibration_dir(number)) for number in (iteration - 1, iteration)]
    predicted = [sample.simulated(structured(scenario, each.structure), each.vector()) for each in tuned]
    predicted.append(sample.simulated(scenario, scenario.space.nominal))
    advance(0.5, "transitions simulated")
    reward = fit_infogap(
        sample.real,
        predicted[0],
        predicted[1],
        feature_noise(scenario),
        _task_reward_std(session),
        rng=rng,
        simulated_first=predicted[2],
        counted=_counted(scenario, config.infogap),
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
        paid=config.paid,
    )


def _counted(scenario: Scenario, config: InfoGapConfig) -> np.ndarray | None:
    """The columns of a transition (s, a, s' - s) by which one is new."""
    if config.novelty == "transition":
        return None
    states = len(state_columns(task_of(scenario)))
    return np.arange(2 * states + ACTION_SIZE) >= states + ACTION_SIZE


class _Sample:
    """A seeded draw of recorded transitions, which any simulator can be asked to predict.

    The first rows of an episode are left out: what was commanded before them, and may still act, is not recorded.

    Args (attributes):
        real: [n, d], D_real; both ends of a step as measured, so that the step carries the noise of both.
    """

    def __init__(self, scenario: Scenario, session: Session, count: int, rng: np.random.Generator) -> None:
        first, last = scenario.history_steps, len(session.episodes[0]) - 1
        total = len(session.episodes) * (last - first)
        chosen = np.sort(rng.choice(total, min(count, total), replace=False))
        episode, step = chosen // (last - first), first + chosen % (last - first)
        measured = _measured(scenario, session)
        self._scenario = scenario
        self._start = np.stack([scenario.states(e) for e in session.episodes])[episode, step]
        self._commands = np.stack(
            [scenario.commands_from(session.episodes[e], row, 1) for e, row in zip(episode, step, strict=True)]
        )
        self._action = np.stack([e["action"] for e in session.episodes])[episode, step]
        self._from = measured[episode, step]
        self.real = transitions(self._from, self._action, measured[episode, step + 1])

    def simulated(self, scenario: Scenario, params: np.ndarray) -> np.ndarray:
        """The same states and actions, propagated one step: [n, d]."""
        with MujocoSimulator(scenario) as simulator:
            rolled = scenario.measure(simulator.rollout(self._start, self._commands, params))
        path = features(rolled["joint_position"], task_of(self._scenario).block(rolled))
        return transitions(self._from, self._action, self._from + path[:, 1] - path[:, 0])


def _measured(scenario: Scenario, session: Session) -> np.ndarray:
    """The columns InfoGap looks at as the sensors saw them, [episodes, T + 1, k]."""
    task = task_of(scenario)
    return np.stack([features(e["joint_position"], task.block(e.values)) for e in session.episodes])


def _task_reward_std(session: Session) -> float:
    """Spread over episodes of the mean task reward per step."""
    real = recorded(session)
    reward = real.task.reward(real.tip, real.block, real.target[:, None])
    return float(reward.mean(axis=1).std())
