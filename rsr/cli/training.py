"""Command: train a policy in a simulator, outside the loop."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import arg

from rsr import progress
from rsr.cli.screen import say
from rsr.config import RetrainConfig, StartConfig


def train(
    scenario: Annotated[str, arg(metavar="S")],
    out: Annotated[Path, arg(metavar="DIR")],
    algorithm: Literal["ppo", "sac"] = StartConfig().algorithm,
    calibration: Annotated[Path | None, arg(metavar="DIR", help_behavior_hint="")] = None,
    randomise: Literal["none", "posterior"] = RetrainConfig().randomise,
    steps: Annotated[int | None, arg(metavar="N", help_behavior_hint="")] = None,
    seed: Annotated[int, arg(metavar="N")] = 0,
) -> int:
    """Train a policy from scratch with PPO or SAC in the simulator, for the task alone.

    Args:
        scenario: push_cube or push_t; the other scenarios have no task to learn.
        out: folder for the policy.
        algorithm: ppo takes more steps, sac more time for each.
        calibration: folder of a calibration, in whose simulator to train; by default the nominal one.
        randomise: posterior gives each copy of the simulator parameters of its own, drawn as the calibration leaves
            them open; without a calibration, as the scenario's prior does.
        steps: environment steps, over all copies; by default what the algorithm was measured to need.
        seed: of everything random.
    """
    from rsr.calibration import load_calibration, start_calibration
    from rsr.config import parse_config
    from rsr.policies.recipes import settings_from_scratch
    from rsr.policies.training import train as learn
    from rsr.scenarios import load_scenario, structured
    from rsr.steps.retrain import simulators

    start = {"algorithm": algorithm, "train_steps": steps}
    given = {"seed": seed, "start": start, "retrain": {"randomise": randomise}}
    config = parse_config(given, where="command line")
    loaded = load_scenario(scenario)
    settings = settings_from_scratch(config.start.algorithm, loaded, config.start.train_steps)
    believed = start_calibration(loaded) if calibration is None else load_calibration(calibration)
    loaded = structured(loaded, believed.structure)
    params = simulators(loaded, believed, config.retrain, settings.copies, config.seed)
    with progress.bar("train") as advance:
        trained = learn(loaded, params, settings, config.seed, advance)
    trained.save(out)
    last = f", {trained.curve[-1]['success']:.0%} success in simulation while exploring" if trained.curve else ""
    say(f"{out}{last}")
    return 0
