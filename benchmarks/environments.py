"""Stepping 64 copies of push_cube, and what the InfoGap bonus costs a PPO update.

    vecenv_speedup_over_dummy        env steps/s of TaskVecEnv over those of SB3's DummyVecEnv of TaskEnv
    steps_per_second_vecenv          env steps/s of TaskVecEnv alone
    infogap_overhead_of_ppo_update   extra time of a PPO iteration (rollout and update) with the bonus, as a share of
                                     one without
    seconds_per_ppo_update           one iteration without the bonus: 64 copies, 128 steps, 10 epochs

Same scene, same actions, sensor noise on; both sides take turns in this process and the best of each counts.
"""

from __future__ import annotations

import time

import numpy as np
from _common import Figure, best_seconds_in_turn, run
from stable_baselines3.common.vec_env import DummyVecEnv

from rsr.environments import TaskEnv, TaskVecEnv, bonus_of, feature_noise
from rsr.environments.vector import Bonus
from rsr.infogap import InfoGapReward, RewardSettings, fit_infogap, transitions
from rsr.policies import train
from rsr.policies.training import PPOSettings
from rsr.scenarios import Scenario, load_scenario

COPIES = 64
TRANSITIONS = 1000
SCENARIO = load_scenario("push_cube")


def measure(quick: bool) -> dict[str, Figure]:
    """Time the environments, then PPO with and without the bonus."""
    dummy_s, batched_s = stepping_seconds(steps=10 if quick else 50, rounds=3 if quick else 10)
    plain_s, paid_s = update_seconds(iterations=3 if quick else 20)
    return {
        "vecenv_speedup_over_dummy": dummy_s / batched_s,
        "steps_per_second_vecenv": COPIES / batched_s,
        "infogap_overhead_of_ppo_update": paid_s / plain_s - 1,
        "seconds_per_ppo_update": plain_s,
    }


def stepping_seconds(steps: int, rounds: int) -> tuple[float, float]:
    """Time of one step of all copies: DummyVecEnv, TaskVecEnv."""
    actions = np.random.default_rng(0).uniform(-1, 1, (steps, COPIES, 6)).astype(np.float32)
    dummy = DummyVecEnv([lambda: TaskEnv(SCENARIO)] * COPIES)
    batched = TaskVecEnv(SCENARIO, SCENARIO.space.nominal, COPIES)
    dummy.reset()
    batched.reset()
    dummy_s, batched_s = best_seconds_in_turn(
        [lambda: [dummy.step(action) for action in actions], lambda: [batched.step(action) for action in actions]],
        rounds,
    )
    dummy.close()
    batched.close()
    return dummy_s / steps, batched_s / steps


def update_seconds(iterations: int) -> tuple[float, float]:
    """Best time of one PPO iteration: without bonus, with it. They alternate within one training."""
    switched = _Switched(bonus_of(sample_reward()))
    settings = PPOSettings(train_steps=(2 * iterations + 1) * COPIES * 128, copies=COPIES, checks=0)
    train(SCENARIO, SCENARIO.space.nominal, settings, 0, switched.turn, bonus=switched.bonus)
    # Between the ends of two rollouts in a row lie an update and a rollout, the latter as switched at the former.
    times_s = np.diff(switched.turned_at_s)
    return float(times_s[1::2].min()), float(times_s[0::2].min())


class _Switched:
    """A bonus that is paid in every second rollout."""

    def __init__(self, bonus: Bonus) -> None:
        self._bonus = bonus
        self._on = False
        self.turned_at_s: list[float] = []

    def turn(self, fraction: float, words: str = "") -> None:
        self._on = not self._on
        self.turned_at_s.append(time.perf_counter())

    def bonus(self, observation: np.ndarray, action: np.ndarray, after: np.ndarray) -> np.ndarray:
        return self._bonus(observation, action, after) if self._on else np.zeros(len(action))


def sample_reward(scenario: Scenario = SCENARIO) -> InfoGapReward:
    """An InfoGap reward of the size that the loop uses, of transitions under random actions, paid everywhere."""
    rng = np.random.default_rng(0)
    env = TaskVecEnv(scenario, scenario.space.nominal, TRANSITIONS, noisy=False)
    env.reset()
    before = env.task.states.compute(env.world.channels)
    action = rng.uniform(-1, 1, (TRANSITIONS, 6))
    env.step(action)
    simulated = transitions(before, action, env.task.states.compute(env.world.channels))
    env.close()
    noise = feature_noise(env.task)
    # What a bonus costs does not depend on the gap, only on there being one.
    real = simulated + 5 * noise * rng.standard_normal(simulated.shape)
    settings = RewardSettings(bonus_region="everywhere")
    return fit_infogap(real, simulated, simulated, noise, task_reward_std=0.1, rng=rng, settings=settings)


if __name__ == "__main__":
    run(measure, __doc__)
