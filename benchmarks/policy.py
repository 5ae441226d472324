"""How well, and at what cost, push_cube is learnt from scratch in the nominal simulator.

    push_cube_success_2cm   share of fresh starts that end within 2 cm of the target, mean over the seeds
    push_cube_success_3cm   the same within 3 cm, which is what the scenario calls success
    push_cube_cpu_seconds   processor time of one training, all threads

256 starts that no training saw, through the scenario's sensor noise. `--steps` and `--seeds` change the budget.
"""

from __future__ import annotations

import time

import numpy as np
from _common import Figure, run

from rsr.config import StartConfig
from rsr.policies import Policy, rollouts
from rsr.policies.training import PPOSettings, train
from rsr.progress import bar
from rsr.randomness import generator
from rsr.scenarios import load_scenario
from rsr.scenarios.push_cube.task import sample_starts

STARTS = 256
QUICK_STEPS = 20_000
SCENARIO = load_scenario("push_cube")


def measure(quick: bool, steps: int, seeds: int) -> dict[str, Figure]:
    """Train with each seed and average."""
    steps, seeds = (min(steps, QUICK_STEPS), 1) if quick else (steps, seeds)
    figures = np.array([train_and_judge(seed, steps) for seed in range(seeds)])
    within_2cm, within_3cm, cpu_s = figures.mean(axis=0)
    return {
        "push_cube_success_2cm": within_2cm,
        "push_cube_success_3cm": within_3cm,
        "push_cube_cpu_seconds": cpu_s,
        "train_steps": steps,
        "seeds": seeds,
    }


def train_and_judge(seed: int, steps: int) -> tuple[float, float, float]:
    """Shares of successes within 2 and 3 cm, and the training's CPU seconds."""
    start_s = time.process_time()
    with bar(f"seed {seed}") as advance:
        trained = train(SCENARIO, SCENARIO.space.nominal, PPOSettings(steps), seed, advance)
    cpu_s = time.process_time() - start_s
    missed_m = final_distances_m(trained.policy, seed)
    return float((missed_m < 0.02).mean()), float((missed_m < 0.03).mean()), cpu_s


def final_distances_m(policy: Policy, seed: int) -> np.ndarray:
    """Distance of block and target in the plane when the episodes end, [STARTS]."""
    starts = sample_starts(generator(seed, "benchmark", "starts"), STARTS)
    noise = generator(seed, "benchmark", "noise")
    seen = rollouts.run(SCENARIO, SCENARIO.space.nominal, policy, starts, noise)
    return np.linalg.norm((seen.block[:, -1] - seen.target)[:, :2], axis=1)


if __name__ == "__main__":
    run(measure, __doc__, steps=StartConfig().train_steps, seeds=3)
