"""Run an exported policy on a robot and record a session: onnxruntime alone, no torch. Not a stage of the loop."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from rsr.common import Advance, PolicyError
from rsr.policies import OnnxPolicy, check_contract, check_task, scenario_body
from rsr.realities import CollectionPlan, make_robot_reality
from rsr.scenarios import load_scenario, scenario_of
from rsr.sessions import Session


def deploy(
    exported: Path,
    robot: Path,
    root: Path,
    session: str,
    episodes: int,
    seed: int,
    advance: Advance,
    real_time: bool = True,
    scenario: str | None = None,
) -> Session:
    """Check the policy's contract against scenario and robot, then record `root/<scenario>/<session>`.

    Args:
        exported: folder that `rsr export` wrote.
        robot: the robot's file.
        seed: of starts and goals.
        real_time: False lets a stand-in run as fast as it can.
        scenario: path of the YAML file of the scenario that the policy was trained for; by default the built-in one of
            the name that its contract states.
    """
    policy = OnnxPolicy.load(exported)
    named = policy.contract.scenario
    loaded = scenario_of(exported, named) if scenario is None else load_scenario(scenario)
    if loaded.name != policy.contract.scenario:
        raise PolicyError(
            got=f"a policy for scenario {policy.contract.scenario}",
            expected=f"one for {loaded.name}",
            where=str(exported),
            next_step="Name the scenario that it was trained for. The policy was not run.",
        )
    check_task(policy.contract, loaded)
    check_contract(policy.contract, scenario_body(loaded))
    began = datetime.now().astimezone().isoformat(timespec="seconds") if real_time else None
    reality = make_robot_reality(loaded, robot, root, real_time, began)
    check_contract(policy.contract, reality.body)
    plan = CollectionPlan(session, episodes, seed, policy.contract.sources.get("policy"))
    return reality.collect(policy, plan, advance)
