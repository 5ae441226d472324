"""Command: train a policy in a simulator, outside the loop."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from tyro.conf import arg

from rsr import progress
from rsr.cli.screen import say
from rsr.config import StartConfig


def train(
    scenario: Annotated[str, arg(metavar="S")],
    out: Annotated[Path, arg(metavar="DIR")],
    calibration: Annotated[Path | None, arg(metavar="DIR", help_behavior_hint="")] = None,
    steps: Annotated[int, arg(metavar="N")] = StartConfig().train_steps,
    seed: Annotated[int, arg(metavar="N")] = 0,
) -> int:
    """Train a policy from scratch with PPO in the simulator, for the task alone.

    Args:
        scenario: push_cube; the other scenarios have no task to learn yet.
        out: folder for the policy.
        calibration: folder of a calibration, in whose simulator to train; by default the nominal one.
        steps: environment steps, over all copies.
        seed: of everything random.
    """
    from rsr.calibration import load_calibration
    from rsr.config import parse_config
    from rsr.policies.training import PPOSettings
    from rsr.policies.training import train as learn
    from rsr.scenarios import load_scenario

    settings = parse_config({"seed": seed, "start": {"train_steps": steps}}, where="command line")
    loaded = load_scenario(scenario)
    params = loaded.space.nominal if calibration is None else load_calibration(calibration).vector()
    with progress.bar("train") as advance:
        trained = learn(loaded, params, PPOSettings(settings.start.train_steps), settings.seed, advance)
    trained.save(out)
    last = f", {trained.curve[-1]['success']:.0%} success in simulation while exploring" if trained.curve else ""
    say(f"{out}{last}")
    return 0
