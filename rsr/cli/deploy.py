"""Commands on the way to a robot: export a policy, run it there, finish what a crash interrupted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

import rsr
from rsr.cli.command import Count, Folder, Name, OptionalCount, OptionalFile, OptionalFolder, OptionalName, Switch, say
from rsr.common import ConfigError, progress
from rsr.config import RetrainConfig, StartConfig


def export(
    calibration: Folder,
    policy: OptionalFolder = None,
    out: OptionalFolder = None,
    model: OptionalFile = None,
    session: Annotated[tuple[Path, ...], arg(metavar="DIR [DIR ...]", help_behavior_hint="")] = (),
    scenario: OptionalName = None,
) -> int:
    """Write a policy as one ONNX file with its contract, or a tuned model as an MJCF for plain MuJoCo.

    Args:
        calibration: folder of the calibration that the policy was trained in (its hash goes into the contract), or
            whose model is written.
        policy: folder of the stored policy; with --out.
        out: folder for policy.onnx and policy_contract.json.
        model: the tuned MJCF to write, reloaded and compared before it is done. Beside it go what an MJCF cannot say,
            the posterior for domain randomisation, and a page on what this proves and what it does not.
        session: folders of the sessions that the calibration was made from; their hashes go into the contract.
        scenario: path of the scenario's YAML file, where it is not a built-in one.
    """
    if model is not None and policy is None:
        return _export_model(calibration, model, scenario)
    if policy is None or out is None or model is not None:
        raise ConfigError(
            got="--model and --policy" if model is not None else "neither --model, nor --policy and --out",
            expected="--model FILE, or --policy DIR --out DIR",
            where="command line",
            next_step="Say which of the two is to be written.",
        )

    given = None if scenario is None else rsr.scenarios.load_scenario(scenario)
    trained_for = given or rsr.scenarios.scenario_of(policy, rsr.policies.Policy.load(policy).scenario)
    loaded = rsr.calibration.load_calibration(calibration)
    if loaded.scenario != trained_for.name:
        raise rsr.common.PolicyError(
            got=f"a calibration of scenario {loaded.scenario}",
            expected=f"one of {trained_for.name}, for which the policy was trained",
            where=str(calibration),
            next_step="Name the calibration in whose simulator the policy was trained.",
        )
    contract = rsr.policies.export_policy(trained_for, policy, out, loaded.vector(), calibration, session)
    error, count = contract.parity["max_error"], contract.parity["observations"]
    say(f"{out}: actions differ from the stored policy's by at most {error:.1e} on {count} observations")
    return 0


def _export_model(calibration: Path, model: Path, scenario: str | None) -> int:
    loaded = rsr.calibration.load_calibration(calibration)
    described = (
        rsr.scenarios.scenario_of(calibration, loaded.scenario)
        if scenario is None
        else rsr.scenarios.load_scenario(scenario)
    )
    say(str(rsr.calibration.hand_over(described, loaded, model)))
    say(f"{model.with_suffix('.md')}: what this proves and what it does not")
    return 0


def deploy(
    policy: Folder,
    robot: Annotated[Path, arg(metavar="FILE")],
    out: Folder,
    session: Annotated[str, arg(metavar="NAME")],
    episodes: Count = 12,
    seed: Count = 0,
    fast: Switch = False,
    scenario: OptionalName = None,
) -> int:
    """Run an exported policy on a robot at its rate, inside the safety envelope, and record a session.

    Args:
        policy: folder that `rsr export` wrote.
        robot: the robot's YAML file; see docs/robot.md.
        out: folder of recordings; the session goes to DIR/<scenario>/NAME.
        session: its name. After a crash the same command goes on with the episode that was interrupted.
        episodes: how many to record.
        seed: of starts and goals.
        fast: do not wait for real time to pass; for stand-ins alone.
        scenario: path of the scenario's YAML file, where it is not a built-in one.
    """
    with progress.bar("deploy") as advance:
        recorded = rsr.pipelines.deploy(
            policy, robot, out, session, episodes, seed, advance, real_time=not fast, scenario=scenario
        )
    for note in filter(None, (recorded.card.notes,)):
        say(note)
    say(str(out / recorded.card.scenario / session))
    return 0


def recover(recording: Positional[Folder], /) -> int:
    """Finish what a crash interrupted: make a session of the episodes that were whole by then.

    Args:
        recording: hidden folder of a recording (.NAME.recording) or of a half-written session (.NAME.*.part).
    """
    if recording.suffix == rsr.sessions.RECORDING:
        session = rsr.sessions.Journal(recording).close()
        say(f"{recording.parent / session.card.session}: {len(session.episodes)} episodes")
    else:
        say(str(rsr.sessions.recover_session(recording)))
    return 0


# Command: train a policy in a simulator, outside the loop.


def train(
    scenario: Name,
    out: Folder,
    algorithm: Literal["ppo", "sac"] = StartConfig().algorithm,
    calibration: OptionalFolder = None,
    randomise: Literal["none", "posterior"] = RetrainConfig().randomise,
    steps: OptionalCount = None,
    seed: Count = 0,
) -> int:
    """Train a policy from scratch with PPO or SAC in the simulator, for the task alone.

    Args:
        scenario: a built-in scenario with a task such as push_cube, or the path of a scenario of one's own, with a
            task.py or a section `task`.
        out: folder for the policy.
        algorithm: ppo takes more steps, sac more time for each.
        calibration: folder of a calibration, in whose simulator to train; by default the nominal one.
        randomise: posterior gives each copy of the simulator parameters of its own, drawn as the calibration leaves
            them open; without a calibration, as the scenario's prior does.
        steps: environment steps at most, over all copies; by default what the task's `training` says, else 1,000,000
            of ppo and 400,000 of sac. Training ends earlier where success has levelled off.
        seed: of everything random.
    """
    start = {"algorithm": algorithm, "train_steps": steps}
    given = {"seed": seed, "start": start, "retrain": {"randomise": randomise}}
    config = rsr.config.parse_config(given, where="command line")
    loaded = rsr.scenarios.load_scenario(scenario)
    settings = rsr.policies.settings_from_scratch(config.start.algorithm, loaded, config.start.train_steps)
    start = (
        rsr.calibration.start_calibration(loaded)
        if calibration is None
        else rsr.calibration.load_calibration(calibration)
    )
    loaded = rsr.scenarios.structured(loaded, start.structure)
    params = rsr.pipelines.simulators(loaded, start, config.retrain, settings.copies, config.seed)
    with progress.bar("train") as advance:
        trained = rsr.policies.train(loaded, params, settings, config.seed, advance)
    trained.save(out)
    say(f"{out}, {_while_exploring(trained.curve)}")
    if trained.ended:
        say(f"Training ended after {trained.ended}.")
    return 0


def _while_exploring(curve: Sequence[Mapping[str, float]]) -> str:
    if not curve:
        return "of which nothing is known: no episode had ended yet. Raise --steps"
    return f"{curve[-1]['success']:.0%} success in simulation while exploring"
