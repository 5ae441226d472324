"""Whether the exported policy, run by onnxruntime, does on a robot what the stored one does on the stand-in.

    success_stored      share of episodes on the stand-in that the stored policy ends within 3 cm of the target
    success_exported    the same starts, noise and world with the exported policy
    same_outcome        share of episodes in which both succeed or both fail
    success_robot       the exported policy on the stand-in behind LeRobot's interface: same starts, other noise
    noise_of_difference standard error of success_robot - success_exported, were both equally good
    parity_max_error    of the actions, on 1,000 observations
    microseconds_per_action   one observation at a time

A policy is trained in the nominal simulator (`--steps`, 0 for as many as the recipe says), then judged on three
stand-ins, to none of which anything was tuned. All of this is simulated.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from _common import Figure, median_seconds, run

from rsr.common import bar, ignore
from rsr.policies import OnnxPolicy, Policy, export_policy, settings_from_scratch, train
from rsr.realities import CollectionPlan, RobotReality, SimulatedClock, StandIn, StandInRobot, Wiring, load_robot_file
from rsr.scenarios import load_scenario, task_of
from rsr.sessions import Session

STAND_INS = (1, 2, 3)
ROBOT_FILE = Path(__file__).parents[1] / "examples" / "robots" / "stand_in.yaml"
SCENARIO = load_scenario("push_cube")
QUICK_STEPS, QUICK_EPISODES = 20_000, 3


def measure(quick: bool, steps: int, episodes: int) -> dict[str, Figure]:
    """Train, export, and run both on every stand-in."""
    if quick:
        steps, episodes = min(steps or QUICK_STEPS, QUICK_STEPS), min(episodes, QUICK_EPISODES)
    with tempfile.TemporaryDirectory() as folder:
        return compare(Path(folder), train_policy(steps), episodes)


def train_policy(steps: int) -> Policy:
    settings = settings_from_scratch("ppo", SCENARIO, steps or None)
    with bar("train") as advance:
        return train(SCENARIO, SCENARIO.space.nominal, settings, 0, advance).policy


def compare(folder: Path, stored: Policy, episodes: int) -> dict[str, Figure]:
    """The figures of one policy."""
    stored.save(folder / "policy")
    contract = export_policy(SCENARIO, folder / "policy", folder / "exported")
    exported = OnnxPolicy.load(folder / "exported")
    plan = CollectionPlan("session-001", episodes, seed=0)
    outcomes = {
        "stored": [succeeded(StandIn(SCENARIO, seed).collect(stored, plan, ignore)) for seed in STAND_INS],
        "exported": [succeeded(StandIn(SCENARIO, seed).collect(exported, plan, ignore)) for seed in STAND_INS],
        "robot": [succeeded(on_robot(folder / str(seed), seed, exported, plan)) for seed in STAND_INS],
    }
    success = {name: np.concatenate(each) for name, each in outcomes.items()}
    share = np.concatenate([success["robot"], success["exported"]]).mean()
    one = np.zeros((1, contract.observation_size), np.float32)
    return {
        **{f"success_{name}": each.mean() for name, each in success.items()},
        "same_outcome": (success["stored"] == success["exported"]).mean(),
        "noise_of_difference": np.sqrt(2 * share * (1 - share) / len(success["robot"])),
        "episodes": len(success["robot"]),
        "parity_max_error": contract.parity["max_error"],
        "microseconds_per_action": 1e6 * median_seconds(lambda: exported.act(one), 200),
    }


def on_robot(root: Path, seed: int, policy: OnnxPolicy, plan: CollectionPlan) -> Session:
    robot, wiring = StandInRobot("push_cube", seed), Wiring(load_robot_file(ROBOT_FILE), SCENARIO)
    return RobotReality(SCENARIO, robot, wiring, robot.place, SimulatedClock(), root).collect(policy, plan, ignore)


def succeeded(session: Session) -> np.ndarray:
    """Where the block ends at its target [episodes]."""
    task = task_of(SCENARIO)
    ends = [{name: rows[-1:] for name, rows in episode.values.items()} for episode in session.episodes]
    return np.concatenate([task.succeeded(task.completed(end)) for end in ends])


if __name__ == "__main__":
    run(measure, __doc__ or "", steps=0, episodes=96)
