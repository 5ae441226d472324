"""Early stopping: a training ends when the success of its policy has levelled off, and the budget is its upper limit.

Where success has, but episodes end just within what counts, it goes on while they still end nearer: a policy with room
to spare bears that reality differs from the simulator.

At even distances of the budget the policy acts as it is deployed, without exploration, in episodes of their own: starts
and sensor noise are drawn from the training's seed for this purpose, the same at each check, and no copy that learns
draws from them. What a training learns until it stops is therefore what it would have learnt unchecked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback

from rsr.common import Advance, generator
from rsr.policies import rollouts
from rsr.policies.learner import Learner
from rsr.scenarios import Channels, Scenario, Task

EPISODES = 128
"""Of a check: success near 95 % has a standard error of 2 points."""
LAST_CHECKS = 8
"""Whose trend decides: of the usual 20 in a budget, 35 % of it have passed with the first eight."""
CEILING = 0.9
"""Of success in the mean of the last checks: where most episodes succeed, how well they do is the next question."""
STILL_GOOD = 0.5
"""Success of an earlier policy in a simulator that is new to it, from which on it is refined."""
LEARNT_SHARE = 0.1
"""Success below this may be chance: the task is not learnt yet, and many a task is learnt late."""
ENOUGH_ROOM = 0.5
"""Of the tolerance: a policy that ends within the rest of it in the mean need not end nearer."""


@dataclass(frozen=True)
class Check:
    """How a policy does as it stands, in `EPISODES`.

    Args:
        success: share of the episodes.
        room: what is left of the tolerance at the end, in the mean: 1 on the target, 0 at the tolerance and beyond; 1
            where no figure has one.
    """

    success: float
    room: float


Judge = Callable[[Learner], Check]


def judge_in(scenario: Scenario, params: np.ndarray, seed: int) -> Judge:
    """Judge policies in the simulator that a training of this seed has: parameters [P], or [copies, P]."""
    rows = np.atleast_2d(params)
    # Copies that differ from each other are judged in equal parts, one after the other.
    params = rows if len(rows) == 1 else np.resize(rows, (EPISODES, rows.shape[1]))

    def judged(learner: Learner) -> Check:
        policy = learner.policy(learner.envs.task, {})
        rng = generator(seed, "success checks")
        starts = policy.task.reset(rng, EPISODES)
        made = rollouts.run(scenario, params, policy, starts, rng)
        return Check(float(made.success.mean()), _room(policy.task, made.last))

    return judged


def _room(task: Task, last: Channels) -> float:
    if task.success is not None or not any(figure.tolerance for figure in task.figures):
        return 1.0
    return float(np.clip(1.0 - task.off_target(last), 0.0, 1.0).mean())


def distance_of_checks(scenario: Scenario, budget: int, checks: int) -> int:
    """Environment steps from one check to the next: never fewer than the episodes of a check themselves take."""
    return max(budget // max(checks, 1), EPISODES * scenario.episode_steps)


def standard_error(share: float) -> float:
    """Standard error of a check; by the rule of succession, so that 0 and 100 % have one, too."""
    share = (share * EPISODES + 1) / (EPISODES + 2)
    return float(np.sqrt(share * (1 - share) / EPISODES))


def within_error_of_best(successes: Sequence[float]) -> bool:
    """Whether the newest check is worse than the best by no more than the standard error of their difference."""
    best, newest = max(successes), successes[-1]
    return newest >= best - np.hypot(standard_error(best), standard_error(newest))


def levelled_off(successes: Sequence[float], rooms: Sequence[float] = ()) -> bool:
    """Whether success no longer rises; nor, where it is near its ceiling by little, the room that is left."""
    if len(successes) < LAST_CHECKS or max(successes) < LEARNT_SHARE:
        return False
    if _rises(successes, standard_error(float(np.mean(successes[-LAST_CHECKS:])))):
        return False
    scarce = bool(rooms) and rooms[-1] < ENOUGH_ROOM and np.mean(successes[-LAST_CHECKS:]) > CEILING
    return not (scarce and _rises(rooms))


def _rises(values: Sequence[float], sampled: float = np.inf) -> bool:
    """Whether the last checks rise, by their regression line, faster than the line's slope is uncertain.

    A line through eight, since a slow rise is lost in the noise of single checks. All begin alike, so that they scatter
    less than episodes of their own would: the scatter about the line tells the uncertainty. Where they scatter more,
    the policy itself still changes from check to check, as it does where a small budget brings checks close together:
    the more it does, the less of a rise is enough, for such scatter would hide any.

    Args:
        sampled: standard deviation of a check that its number of episodes explains.
    """
    last, time = np.array(values[-LAST_CHECKS:]), np.arange(LAST_CHECKS) - (LAST_CHECKS - 1) / 2
    spread = time @ time
    slope = (time @ last) / spread
    scatter = last - last.mean() - slope * time
    error = np.sqrt(scatter @ scatter / (LAST_CHECKS - 2) / spread)
    hidden = min(error, 2 * sampled / np.sqrt(spread) - error)
    # Less than one episode more from the first to the last is no rise, however straight the line.
    return bool(slope > max(hidden, 1 / EPISODES / (LAST_CHECKS - 1)))


class EarlyStopping(BaseCallback):
    """Checks success where a rollout starts, keeps the newest of the best policies, and ends the training.

    Args:
        budget: environment steps of the whole training.
        distance: environment steps from one check to the next.
        goes_on: from an earlier policy. Where that fails in this simulator it explores anew; where it does not, that
            would unlearn what it can do (`docs/evidence/policies.md`).
    """

    def __init__(
        self, learner: Learner, judge: Judge, budget: int, distance: int, advance: Advance, goes_on: bool = False
    ) -> None:
        super().__init__()
        self._learner, self._judge, self._advance = learner, judge, advance
        self._budget, self._distance, self._goes_on = budget, distance, goes_on
        self._ended = False

    def _on_rollout_start(self) -> None:
        steps = self._learner.model.num_timesteps
        last = self._checks[-1]["steps"] if self._checks else -1
        # A training that was killed comes here again, at the steps of a check that its checkpoint knows.
        if steps // self._distance > last // self._distance:
            self._check(steps)
        self._ended = levelled_off(*([each[what] for each in self._checks] for what in ("success", "room")))

    def _on_step(self) -> bool:
        return not self._ended

    def _on_training_end(self) -> None:
        steps = self._learner.model.num_timesteps
        if self._ended:
            self._advance(1.0, "ended after " + ended(self._checks, self._learner.kept_steps, self._budget))
        elif self._checks and steps > self._checks[-1]["steps"]:
            self._check(steps)

    @property
    def _checks(self) -> list[dict[str, float]]:
        return self._learner.checks

    def _check(self, steps: int) -> None:
        self._checks.append({"steps": steps, **asdict(self._judge(self._learner))})
        # Of those that the noise of a check does not tell apart, the one that has learnt longest.
        if within_error_of_best([each["success"] for each in self._checks]):
            self._learner.keep()
        if steps == 0 and self._goes_on and self._checks[0]["success"] < STILL_GOOD:
            self._learner.algorithm.explore_anew()


def ended(checks: Sequence[dict[str, float]], kept_steps: int, budget: int) -> str:
    """Say how a training ended and which policy was kept."""
    (kept,) = (each["success"] for each in checks if each["steps"] == kept_steps)
    last = int(checks[-1]["steps"])
    how = f"all of {budget:,} steps" if last >= budget else f"{last:,} of {budget:,} steps, as success had levelled off"
    return f"{how}; policy of step {kept_steps:,} kept, {kept:.0%} success without exploring"
