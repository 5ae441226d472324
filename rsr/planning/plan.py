"""Ranking of candidates by novelty and by expected information gain, and a session put together from the best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rsr.calibration import Calibration, expected_nats, posterior_covariance
from rsr.common import Advance, generator, ignore
from rsr.infogap import EstimatorChoice, GroundMetric, Scaler, diagnose, saturating, w_of_added_batch
from rsr.planning.candidates import Candidate, make_candidates
from rsr.planning.fisher import information_by_window
from rsr.planning.transitions import ObservedTransitions, TransitionPairs
from rsr.policies import Policy
from rsr.scenarios import Scenario, structured
from rsr.sessions import Session
from rsr.simulators import MujocoSimulator

REFERENCE = 400
"""Recorded transitions that a candidate is compared with ..."""
PER_CANDIDATE = 40
"""... and transitions of a candidate: exact transport between the two takes 30 ms."""
WINDOWS = 12
"""Windows of a candidate that sensitivities are taken on, evenly spread; the rest counts as these do."""
SESSION_EPISODES = 8
COMPARED = 1000
"""Transitions whose divergence from the simulator is measured."""


@dataclass(frozen=True)
class Scored:
    """A candidate with its scores.

    Args:
        nats: expected information gain on all parameters.
        weak_nats: the same on the parameters that are not identified.
        most_informed: the one of these whose variance it is expected to shrink most.
        novelty: 0 to 1, W1 between its transitions and the recorded ones, in units of the largest that the bounded
            ground metric knows.
        infogap: Eq. 3 of the whole episode, KL times the W1 that adding it makes; nats.
        path: [T + 1, c], the gap channel.
        information: [P, P].
    """

    candidate: Candidate
    nats: float
    weak_nats: float
    most_informed: str
    novelty: float
    infogap: float
    path: np.ndarray
    information: np.ndarray


@dataclass(frozen=True)
class RecordingPlan:
    """Recommended next recordings.

    Args:
        weak: parameters that are not identified; all parameters if all are.
        gap: the divergence of the calibrated simulator from the recordings.
        ranked: best first: the mean of the places by `weak_nats` and by `novelty`.
        session: names of the episodes that together inform most on the weak parameters, greedily, and the nats reached
            with each of them.
        recorded: the gap channel of all recorded rows, [n, c].
    """

    scenario: Scenario
    weak: tuple[str, ...]
    gap: EstimatorChoice
    ranked: tuple[Scored, ...]
    session: tuple[tuple[str, float], ...]
    recorded: np.ndarray

    def document(self) -> dict[str, object]:
        """As JSON: figures, and of each candidate its start and commands, so that it can be recorded."""
        return {
            "scenario": self.scenario.name,
            "weak_parameters": list(self.weak),
            "divergence_nats": self.gap.estimate.value,
            "divergence_floor_nats": self.gap.estimate.floor,
            "estimator": self.gap.advised,
            "session": [{"name": name, "nats": nats} for name, nats in self.session],
            "candidates": [
                {
                    "rank": rank,
                    "name": each.candidate.name,
                    "kind": each.candidate.kind,
                    "description": each.candidate.description,
                    "novelty": each.novelty,
                    "infogap_nats": each.infogap,
                    "nats": each.nats,
                    "weak_nats": each.weak_nats,
                    "most_informed": each.most_informed,
                    "start": each.candidate.start.tolist(),
                    "history_steps": self.scenario.history_steps,
                    "commands": each.candidate.commands.tolist(),
                }
                for rank, each in enumerate(self.ranked, start=1)
            ],
        }


def make_plan(
    scenario: Scenario,
    sessions: Sequence[Session],
    calibration: Calibration,
    *,
    candidates: int = 32,
    seed: int = 0,
    policy: Policy | None = None,
    advance: Advance = ignore,
) -> RecordingPlan:
    """Rank candidate episodes by InfoGap novelty and by expected information gain.

    Args:
        calibration: of these sessions; its covariance is the prior of the plan.
        candidates: how many to consider.
        policy: also let this one act from fresh starts, where the scenario has a task.
    """
    scenario = structured(scenario, calibration.structure)
    params = calibration.vector()
    considered = make_candidates(scenario, sessions, params, candidates, seed, policy)
    advance(0.2, f"{len(considered)} candidates")
    names = scenario.space.names
    weak = tuple(name for name in names if calibration.estimates[name].verdict != "identified") or names
    with MujocoSimulator(scenario) as simulator:
        score = _Scorer(scenario, simulator, sessions, calibration, weak, seed)
        scored = []
        for number, candidate in enumerate(considered, start=1):
            scored.append(score(candidate))
            advance(0.2 + 0.8 * number / len(considered), candidate.name)
    recorded = [episode[scenario.gap_channel] for session in sessions for episode in session.episodes]
    return RecordingPlan(
        scenario=scenario,
        weak=weak,
        gap=score.gap,
        ranked=_ranked(scored),
        session=_session(scored, calibration.covariance, score.weak),
        recorded=np.concatenate(recorded),
    )


class _Scorer:
    """Simulates a candidate and computes its scores."""

    def __init__(
        self,
        scenario: Scenario,
        simulator: MujocoSimulator,
        sessions: Sequence[Session],
        calibration: Calibration,
        weak: tuple[str, ...],
        seed: int,
    ) -> None:
        self._scenario, self._simulator = scenario, simulator
        self._params, self._covariance = calibration.vector(), calibration.covariance
        self._watched = ObservedTransitions(scenario)
        self._names = scenario.space.names
        self.weak = np.array([self._names.index(name) for name in weak])
        rng = generator(seed, "plan", "recorded")
        pairs = TransitionPairs(scenario, sessions, COMPARED, rng)
        noise = self._watched.noise()
        self._scaler = Scaler.fit(pairs.real, noise=noise)
        self.gap = diagnose(pairs.real, pairs.simulated(simulator, self._params), noise=noise)
        self._reference, self._metric = self._prepared(pairs.real, rng)

    def _prepared(self, real: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, GroundMetric]:
        rows = rng.permutation(len(real))[:REFERENCE]
        reference = self._scaler(real[rows])
        return reference, saturating(reference)

    def __call__(self, candidate: Candidate) -> Scored:
        history = self._scenario.history_steps
        states = self._simulator.rollout(candidate.start[None], candidate.commands[None], self._params)[0]
        path = self._watched.position(states)
        # Where parameters were stretched too far a simulation may blow up; what came before still counts.
        steps = int(np.argmin(np.isfinite(states).all(axis=1))) - 1 if not np.isfinite(states).all() else len(path) - 1
        sent = candidate.commands[history : history + steps, : self._scenario.base_model.nu]
        step = self._watched.step(path[:steps], path[1 : steps + 1])
        features = self._scaler(self._watched.transitions(states[:steps], sent, step))
        added = _thinned(features, PER_CANDIDATE)
        moved = w_of_added_batch(added, self._reference, self._metric)
        information = self._information(states[: steps + 1], candidate.commands)
        # Log ratio of each variance before and after.
        narrowed = np.log(np.diag(self._covariance) / np.diag(posterior_covariance(self._covariance, information)))
        # W1 of m samples added to n is m / (n + m) * W1(reference, added); that is at most tau, and novelty its share.
        n, m = len(self._reference), len(added)
        largest = self._metric.tau if np.isfinite(self._metric.tau) else 1.0
        return Scored(
            candidate=candidate,
            nats=expected_nats(information, self._covariance),
            weak_nats=expected_nats(information, self._covariance, self.weak),
            most_informed=self._names[self.weak[np.argmax(narrowed[self.weak])]],
            novelty=moved * (n + m) / m / largest,
            infogap=max(0.0, self.gap.estimate.value) * moved,
            path=path[: steps + 1],
            information=information,
        )

    def _information(self, states: np.ndarray, commands: np.ndarray) -> np.ndarray:
        """Compute the information of a candidate's windows, each beginning where its simulation passes."""
        length = min(self._scenario.window_steps, len(states) - 1)
        every = np.arange(0, len(states) - length, length)
        rows = _thinned(every, WINDOWS)
        reach = self._scenario.history_steps + length
        windows = np.array([commands[row : row + reach] for row in rows])
        each = information_by_window(self._scenario, self._simulator, states[rows], windows, self._params)
        # Information adds over windows; those not simulated count as the average of those that were.
        return each.sum(axis=0) * len(every) / len(rows)


def _thinned(rows: np.ndarray, count: int) -> np.ndarray:
    """At most `count` rows, evenly spread."""
    return rows[np.unique(np.linspace(0, len(rows) - 1, min(count, len(rows))).round().astype(int))]


def _ranked(scored: Sequence[Scored]) -> tuple[Scored, ...]:
    """Order by the mean of both ranks; ties by information gain."""
    by_nats = np.argsort(np.argsort([-each.weak_nats for each in scored], kind="stable"))
    by_novelty = np.argsort(np.argsort([-each.novelty for each in scored], kind="stable"))
    order = sorted(range(len(scored)), key=lambda i: (by_nats[i] + by_novelty[i], -scored[i].weak_nats))
    return tuple(scored[i] for i in order)


def _session(scored: Sequence[Scored], covariance: np.ndarray, weak: np.ndarray) -> tuple[tuple[str, float], ...]:
    """Choose episodes one after the other, each with the largest gain given those chosen before it."""
    # Greedy is near-optimal: log det is submodular, so the gain of a second similar episode is smaller.
    left, posterior, reached, chosen = list(scored), covariance, 0.0, []
    while left and len(chosen) < SESSION_EPISODES:
        gains = [expected_nats(each.information, posterior, weak) for each in left]
        best = left.pop(int(np.argmax(gains)))
        posterior, reached = posterior_covariance(posterior, best.information), reached + max(gains)
        chosen.append((best.candidate.name, reached))
    return tuple(chosen)
