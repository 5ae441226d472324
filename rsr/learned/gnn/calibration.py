"""From a scenario's own recordings to a learned simulator: data of an identified MuJoCo, training, fine-tuning.

Fine-tuning is kept where it predicts recordings better that it did not see; episodes that nothing was fitted to judge
what was chosen.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from rsr.common import Advance, CalibrationError, generator, part_of, write_json
from rsr.config import GnnConfig
from rsr.learned.gnn.contact_network import ContactNetwork
from rsr.learned.gnn.recordings import judged_trajectories
from rsr.learned.gnn.scaling import varied_trajectories
from rsr.learned.gnn.simulator import GnnSimulator
from rsr.learned.gnn.storage import load_network, save_network
from rsr.learned.gnn.training import TrainingSettings, fine_tune, train_network
from rsr.learned.gnn.trajectories import Trajectory
from rsr.scenarios import Scenario
from rsr.sessions import Episode, Session, join_sessions
from rsr.simulators import MujocoSimulator, Simulator, evaluate_recording, unseen_episodes

NETWORK, RECORD = "network", "gnn.json"
_UNFINISHED = ".training"
_KEPT_BACK = 0.2
# Trials; of more, some are kept back once.
_LEFT_OUT_IN_TURN = 5
_FINETUNE_FRAMES = 42
FEWEST_TO_FINE_TUNE = 2
"""Of three recordings, two: each is left out once to choose by."""


def fine_tuning(steps: int, frames: int, recordings: int) -> TrainingSettings:
    """Whole windows of so many frames from the first step on; recordings bring noise of their own.

    Centimetres count here, the millimetres that cameras add do not.
    """
    return TrainingSettings(
        steps=steps,
        batch=min(80, 4 * recordings),
        rate=4e-4,
        unroll=frames - 2,
        long_from=0.0,
        noise_m=0.0,
        scale_m_s=0.1,
    )


@dataclass(frozen=True)
class LearningProblem:
    """Recordings, teacher and effort: all that a fit depends on. Equal ones part the episodes alike.

    Args:
        teacher: [P], the scenario's parameters as identified on the fitted episodes.
        fitted: episodes, counted over all sessions one after the other, that may be used; all others judge, but for
            repeats of a fitted trial.
    """

    scenario: Scenario
    sessions: Sequence[Session]
    teacher: np.ndarray
    fitted: Sequence[int]
    settings: GnnConfig
    seed: int

    @property
    def training(self) -> TrainingSettings:
        """Settings of the training on simulated trajectories."""
        return TrainingSettings(steps=self.settings.steps)

    @cached_property
    def session(self) -> Session:
        return join_sessions(self.sessions)

    def simulated(self, advance: Advance) -> list[Trajectory]:
        """Let the teacher simulate from varied starts of the recordings that are not kept back."""
        known, frames = self._recorded(self._once()[0]), self.scenario.episode_steps
        return varied_trajectories(
            self.scenario, self.teacher, known, self.settings.trajectories, frames, self.seed, advance=advance
        )

    def splits(self) -> list[tuple[list[int], list[int]]]:
        """Episodes to learn from and episodes to choose by: one split of many trials, as many as there are of few."""
        once = self._once()
        trial = {index: self.scenario.group(self.session.episodes[index]) for index in self.fitted}
        trials = set(trial.values())
        if len(trials) > _LEFT_OUT_IN_TURN:
            return [once]
        return [
            ([index for index in trial if trial[index] != left], [index for index in trial if trial[index] == left])
            for left in sorted(trials)
        ]

    def fine_tuned(self, network: ContactNetwork, learnt: Sequence[int], advance: Advance) -> ContactNetwork:
        """A copy of a network that goes on learning from these recorded episodes."""
        recorded = judged_trajectories(self.scenario, self.teacher, self._recorded(learnt), _FINETUNE_FRAMES)
        if not recorded:
            raise CalibrationError(
                got="no recording that allows the start the scenario is judged by",
                expected="at least one",
                where="fine-tuning of a learned simulator",
                next_step="Record longer episodes, or set finetune_steps: 0.",
            )
        whole = of_one_length(recorded)
        settings = fine_tuning(self.settings.finetune_steps, len(whole[0]), len(whole))
        return fine_tune(network, whole, settings, self.seed, advance)

    def _once(self) -> tuple[list[int], list[int]]:
        return split_known(self.scenario, self.session.episodes, self.fitted, self.seed)

    def _recorded(self, episodes: Sequence[int]) -> list[Episode]:
        return [self.session.episodes[index] for index in episodes]


Errors = Mapping[str, float]
"""The scenario's own metrics by name."""


@dataclass(frozen=True)
class GnnFit:
    """A learned simulator and what it is worth.

    Args:
        folder: where `load_gnn` finds it.
        chosen: "network" or "fine-tuned", decided on fitted episodes that fine-tuning did not see.
        errors: "nominal", "teacher", "network" and perhaps "fine-tuned" -> metrics on the held-out episodes.
    """

    scenario: Scenario
    folder: Path
    chosen: str
    errors: Mapping[str, Errors]

    def simulator(self) -> GnnSimulator:
        return load_gnn(self.scenario, self.folder)


def load_gnn(scenario: Scenario, folder: Path) -> GnnSimulator:
    """Open the simulator that `fit_gnn` left in a folder."""
    return GnnSimulator(scenario, load_network(folder / NETWORK))


def fit_gnn(problem: LearningProblem, out: Path, advance: Advance) -> GnnFit:
    """Teach a network what the identified MuJoCo does, then what it does not do and the recordings show.

    Args:
        out: folder for the network and `gnn.json`.
    """
    taught = problem.simulated(part_of(advance, 0.0, 0.1))
    learning = part_of(advance, 0.1, 0.8)
    network = train_network(taught, problem.training, problem.seed, learning, folder=out / _UNFINISHED)
    fit = keep_better(network, problem, out, part_of(advance, 0.8, 1.0))
    # Only now is everything stored that a killed fit would need its checkpoint for.
    shutil.rmtree(out / _UNFINISHED, ignore_errors=True)
    return fit


def keep_better(network: ContactNetwork, problem: LearningProblem, out: Path, advance: Advance) -> GnnFit:
    """Fine-tune a taught network, keep it where it predicts recordings better that fine-tuning did not see; judge both.

    Of few recordings each is left out once, and what is kept was fine-tuned on all of them; of many, a fifth is kept
    back.
    """
    scenario, splits = problem.scenario, problem.splits()
    judges = HeldOutTrajectories(scenario, problem.session, problem.teacher)
    candidates = {"network": network}
    scores = {"network": float(np.mean([judges.score(network, kept_back) for _, kept_back in splits]))}
    if problem.settings.finetune_steps and min(len(learnt) for learnt, _ in splits) >= FEWEST_TO_FINE_TUNE:

        def tuned_on(learnt: Sequence[int], part: int) -> ContactNetwork:
            # The last share is for judging; the one before it for the fine-tuning on all recordings.
            share = 0.8 / (len(splits) + 1)
            return problem.fine_tuned(network, learnt, part_of(advance, part * share, (part + 1) * share))

        tuned = [tuned_on(learnt, part) for part, (learnt, _) in enumerate(splits)]
        judged = [judges.score(each, kept_back) for each, (_, kept_back) in zip(tuned, splits, strict=True)]
        scores["fine-tuned"] = float(np.mean(judged))
        # With one split, its network is the candidate itself; else the choice holds for one that saw all recordings.
        candidates["fine-tuned"] = tuned[0] if len(splits) == 1 else tuned_on(problem.fitted, len(splits))
    # A network that diverged scores NaN, which min() would otherwise take for the best.
    chosen = min(scores, key=lambda name: np.nan_to_num(scores[name], nan=np.inf))
    errors = judges.errors(candidates, unseen_episodes(scenario, problem.session, problem.fitted))
    save_network(candidates[chosen], out / NETWORK, {"chosen": chosen, "scores": scores})
    record = {"settings": problem.settings.model_dump(), "chosen": chosen, "scores": scores, "errors": errors}
    write_json(out / RECORD, {"scenario": scenario.name, "seed": problem.seed, **record})
    advance(1.0, f"{chosen} chosen")
    return GnnFit(scenario, out, chosen, errors)


@dataclass(frozen=True)
class HeldOutTrajectories:
    """Compares simulators with recorded episodes, in the scenario's own metrics."""

    scenario: Scenario
    session: Session
    teacher: np.ndarray

    def score(self, network: ContactNetwork, episodes: Sequence[int]) -> float:
        """Mean over the metrics of the error over the teacher's, on some episodes."""
        own = self._metrics(GnnSimulator(self.scenario, network), self.teacher, episodes)
        with MujocoSimulator(self.scenario) as simulator:
            teacher = self._metrics(simulator, self.teacher, episodes)
        # Metrics have different units: each counts in shares of the teacher's error.
        return float(np.mean([own[name] / max(teacher[name], 1e-12) for name in own]))

    def errors(self, networks: Mapping[str, ContactNetwork], episodes: Sequence[int]) -> Mapping[str, Errors]:
        with MujocoSimulator(self.scenario) as simulator:
            found = {
                "nominal": self._metrics(simulator, self.scenario.space.nominal, episodes),
                "teacher": self._metrics(simulator, self.teacher, episodes),
            }
        learnt = {name: GnnSimulator(self.scenario, network) for name, network in networks.items()}
        return found | {name: self._metrics(each, self.teacher, episodes) for name, each in learnt.items()}

    def _metrics(self, simulator: Simulator, params: np.ndarray, episodes: Sequence[int]) -> dict[str, float]:
        judged = evaluate_recording(self.scenario, self.session, params, episodes=episodes, simulator=simulator)
        return {metric.name: judged[metric.name] for metric in self.scenario.evaluation.metrics}


def split_known(
    scenario: Scenario, episodes: Sequence[Episode], fitted: Sequence[int], seed: int
) -> tuple[list[int], list[int]]:
    """Keep some of the fitted episodes back, to choose by; those that repeat one trial stay on one side."""
    trials: dict[str, list[int]] = {}
    for index in fitted:
        trials.setdefault(scenario.group(episodes[index]), []).append(index)
    if len(trials) < 2 or all(scenario.group(episode) in trials for episode in episodes):
        raise CalibrationError(
            got=f"{len(trials)} trials to fit, of {len(episodes)} episodes in all",
            expected="at least 2, and at least one episode held out",
            where="fit of a learned simulator",
            next_step="Record more episodes, or fit fewer of them.",
        )
    # By trials, not episodes: a repeat of a trial that was learnt from would judge too kindly.
    order = generator(seed, "gnn", "kept back").permutation(len(trials))
    groups = list(trials.values())
    count = max(1, round(_KEPT_BACK * len(groups)))
    kept_back = sorted(index for place in order[:count] for index in groups[place])
    return sorted(set(fitted) - set(kept_back)), kept_back


def of_one_length(trajectories: Sequence[Trajectory]) -> list[Trajectory]:
    """Cut trajectories to what three in four of them reach; shorter ones are left out, for windows are whole."""
    # By the longest alone, one recording that is a little longer would silence all others.
    frames = sorted(len(each) for each in trajectories)[len(trajectories) // 4]
    return [each.with_poses(each.poses[:frames]) for each in trajectories if len(each) >= frames]
