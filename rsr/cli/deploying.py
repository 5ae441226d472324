"""Commands on the way to a robot: export a policy, run it there, finish what a crash interrupted."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from rsr import progress
from rsr.cli.screen import say

Folder = Annotated[Path, arg(metavar="DIR")]


def export(
    policy: Folder,
    calibration: Folder,
    out: Folder,
    session: Annotated[tuple[Path, ...], arg(metavar="DIR [DIR ...]", help_behavior_hint="")] = (),
) -> int:
    """Write a policy as one ONNX file, from observation to joint displacements, and its contract beside it.

    Args:
        policy: folder of the stored policy.
        calibration: folder of the calibration it was trained in; its hash goes into the contract.
        out: folder for policy.onnx and policy_contract.json.
        session: folders of the sessions that the calibration was made from; their hashes go into the contract.
    """
    from rsr.calibration import load_calibration
    from rsr.errors import PolicyError
    from rsr.policies import Policy
    from rsr.policies.export import export_policy
    from rsr.scenarios import load_scenario

    loaded, scenario = load_calibration(calibration), load_scenario(Policy.load(policy).scenario)
    if loaded.scenario != scenario.name:
        raise PolicyError(
            got=f"a calibration of scenario {loaded.scenario}",
            expected=f"one of {scenario.name}, for which the policy was trained",
            where=str(calibration),
            next_step="Name the calibration in whose simulator the policy was trained.",
        )
    contract = export_policy(scenario, policy, out, loaded.vector(), calibration, session)
    error, count = contract.parity["max_error"], contract.parity["observations"]
    say(f"{out}: actions differ from the stored policy's by at most {error:.1e} on {count} observations")
    return 0


def deploy(
    policy: Folder,
    robot: Annotated[Path, arg(metavar="FILE")],
    out: Folder,
    session: Annotated[str, arg(metavar="NAME")],
    episodes: Annotated[int, arg(metavar="N")] = 12,
    seed: Annotated[int, arg(metavar="N")] = 0,
    fast: Annotated[bool, arg(help_behavior_hint="")] = False,
) -> int:
    """Run an exported policy on a robot at its rate, inside the safety envelope, and record a session.

    Args:
        policy: folder that `rsr export` wrote.
        robot: the robot's YAML file; see docs/robot.md.
        out: folder of recordings; the session goes to DIR/<scenario>/NAME.
        session: its name. After a crash the same command goes on with the episode that was interrupted.
        episodes: how many to record.
        seed: of starts and targets.
        fast: do not wait for real time to pass; for stand-ins alone.
    """
    from rsr.steps.deploy import deploy as run

    with progress.bar("deploy") as advance:
        recorded = run(policy, robot, out, session, episodes, seed, advance, real_time=not fast)
    for note in filter(None, (recorded.card.notes,)):
        say(note)
    say(str(out / recorded.card.scenario / session))
    return 0


def recover(recording: Positional[Folder], /) -> int:
    """Finish what a crash interrupted: make a session of the episodes that were whole by then.

    Args:
        recording: hidden folder of a recording (.NAME.recording) or of a half-written session (.NAME.*.part).
    """
    from rsr.sessions import recover_session
    from rsr.sessions.journal import RECORDING, Journal

    if recording.suffix == RECORDING:
        session = Journal(recording).close()
        say(f"{recording.parent / session.card.session}: {len(session.episodes)} episodes")
    else:
        say(str(recover_session(recording)))
    return 0
