"""How well, and at what cost, policies are learnt from scratch in the nominal simulators, with PPO and with SAC.

    push_cube_success_2cm   share of fresh starts that end within 2 cm of the target; mean over the seeds
    push_cube_success_3cm   the same within 3 cm, which is what the scenario calls success
    push_cube_cpu_seconds   processor time of one training, all threads
    push_cube_steps         environment steps of one training
    push_cube_seeds         trainings
    sac_...                 the same with SAC instead of PPO
    push_t_success          PPO: share that ends within 3 cm and 15 degrees
    push_t_script           the same of the scripted pusher, from the starts of the first seed

Each with `_lowest` and `_highest` over the seeds. All six joints are commanded, and success counts at the end of an
episode: 256 starts that no training saw, through the scenario's sensor noise. `--push_cube`, `--sac` and `--push_t`
say with how many seeds each is trained, 0 leaves it out; `--figure FILE` draws the learning curves.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from _common import Figure, run
from baselines.scripted_pusher import ScriptedPusher
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Picture

from rsr.common import bar, generator
from rsr.policies import Policy, rollouts, settings_from_scratch, train
from rsr.scenarios import Scenario, load_scenario, task_of

STARTS = 256
SEEDS = 3
QUICK_STEPS = 20_000


@dataclass(frozen=True)
class Case:
    """One scenario and one algorithm; `key` begins the names of its figures."""

    key: str
    scenario: str
    algorithm: str

    @property
    def title(self) -> str:
        return f"{self.scenario}, {self.algorithm.upper()}"


CASES = (Case("push_cube", "push_cube", "ppo"), Case("sac", "push_cube", "sac"), Case("push_t", "push_t", "ppo"))


@dataclass(frozen=True)
class Run:
    """One training and what came of it.

    Args:
        shares: name -> share of the starts that ended so.
        curve: rows of `Trained.curve`.
    """

    shares: dict[str, float]
    cpu_s: float
    curve: list[dict[str, float]]


def measure(quick: bool, steps: int, figure: Path | None, **seeds: int) -> dict[str, Figure]:
    """Train each case with its number of seeds; 0 steps stand for as many as the recipe says."""
    if quick:
        steps, seeds = min(steps or QUICK_STEPS, QUICK_STEPS), dict.fromkeys(seeds, 1)
    wanted = [case for case in CASES if seeds[case.key]]
    runs = {case: [learn(case, seed, steps) for seed in range(seeds[case.key])] for case in wanted}
    if figure is not None:
        draw(runs, figure)
    figures: dict[str, Figure] = {}
    for case, of_case in runs.items():
        figures |= summary(case, of_case)
        if case.key == "push_t":
            figures["push_t_script"] = scripted(load_scenario(case.scenario))["success"]
    return figures


def learn(case: Case, seed: int, steps: int) -> Run:
    """Train, and let the deterministic policy act from starts that training did not see."""
    scenario = load_scenario(case.scenario)
    settings = settings_from_scratch(case.algorithm, scenario, steps or None)
    start_s = time.process_time()
    with bar(f"{case.key} {seed}") as advance:
        trained = train(scenario, scenario.space.nominal, settings, seed, advance)
    cpu_s = time.process_time() - start_s
    return Run(shares(scenario, trained.policy, seed), cpu_s, trained.curve)


def scripted(scenario: Scenario) -> dict[str, float]:
    """What the hand-written pusher of the T comes to."""
    return shares(scenario, ScriptedPusher(task_of(scenario)), seed=0)


def shares(scenario: Scenario, policy: Policy | ScriptedPusher, seed: int) -> dict[str, float]:
    """How many of the starts end well, by each measure that the task has."""
    task = task_of(scenario)
    starts = task.reset(generator(seed, "benchmark", "starts"), STARTS)
    noise = generator(seed, "benchmark", "noise")
    seen = rollouts.run(scenario, scenario.space.nominal, policy, starts, noise)
    missed_m = seen.figures()["distance"][:, -1]
    if "yaw" in seen.figures():
        return {"success": float(seen.success.mean()), "success_3cm": float((missed_m < 0.03).mean())}
    return {f"success_{1e2 * within_m:.0f}cm": float((missed_m < within_m).mean()) for within_m in (0.02, 0.03)}


def summary(case: Case, runs: Sequence[Run]) -> dict[str, Figure]:
    """Mean, lowest and highest of each figure over the seeds."""
    figures: dict[str, Figure] = {}
    values = {name: [run.shares[name] for run in runs] for name in runs[0].shares}
    values["cpu_seconds"] = [run.cpu_s for run in runs]
    for name, of_seeds in values.items():
        figures[f"{case.key}_{name}"] = float(np.mean(of_seeds))
        figures[f"{case.key}_{name}_lowest"] = min(of_seeds)
        figures[f"{case.key}_{name}_highest"] = max(of_seeds)
    figures[f"{case.key}_seeds"] = len(runs)
    figures[f"{case.key}_steps"] = int(runs[0].curve[-1]["steps"]) if runs[0].curve else 0
    return figures


def draw(runs: dict[Case, list[Run]], file: Path) -> None:
    """Success while exploring over processor time, a line a seed, and what the deterministic policy reaches, a dot."""
    picture = Picture(figsize=(4.5 * len(runs), 3.4), layout="tight")
    places = picture.subplots(1, len(runs), squeeze=False, sharey=True)[0]
    for place, (case, of_case) in zip(places, runs.items(), strict=True):
        for seed, one in enumerate(of_case):
            _curve(place, one, f"C{seed}", seed)
        place.set(title=case.title, xlabel="processor time of the training (s)", ylim=(0, 1))
        place.grid(alpha=0.3)
        place.legend(frameon=False, fontsize=8)
    places[0].set_ylabel("share of successes")
    file.parent.mkdir(parents=True, exist_ok=True)
    picture.savefig(file, dpi=150)


def _curve(place: Axes, one: Run, colour: str, seed: int) -> None:
    if not one.curve:
        return
    steps = np.array([row["steps"] for row in one.curve])
    place.plot(one.cpu_s * steps / steps[-1], [row["success"] for row in one.curve], color=colour, label=f"seed {seed}")
    for (name, share), marker in zip(one.shares.items(), "ov", strict=False):
        label = f"deterministic, {name.replace('_', ' ')}" if seed == 0 else None
        place.plot([one.cpu_s], [share], marker, color=colour, clip_on=False, label=label)


if __name__ == "__main__":
    run(measure, __doc__, steps=0, figure=None, **dict.fromkeys((case.key for case in CASES), SEEDS))
