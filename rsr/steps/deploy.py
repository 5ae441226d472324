"""Run an exported policy on a robot and record a session: onnxruntime alone, no torch. Not a stage of the loop."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from rsr.policies.contract import check_contract
from rsr.policies.onnx_policy import OnnxPolicy
from rsr.policies.terms import check_task, scenario_body
from rsr.progress import Advance
from rsr.realities import CollectionPlan
from rsr.realities.making import make_robot_reality
from rsr.scenarios import load_scenario
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
) -> Session:
    """Check the policy's contract against scenario and robot, then record `root/<scenario>/<session>`.

    Args:
        exported: folder that `rsr export` wrote.
        robot: the robot's file.
        seed: of starts and targets.
        real_time: False lets a stand-in run as fast as it can.
    """
    policy = OnnxPolicy.load(exported)
    scenario = load_scenario(policy.contract.scenario)
    check_task(policy.contract, scenario)
    check_contract(policy.contract, scenario_body(scenario))
    began = datetime.now().astimezone().isoformat(timespec="seconds") if real_time else None
    reality = make_robot_reality(scenario, robot, root, real_time, began)
    check_contract(policy.contract, reality.body)
    plan = CollectionPlan(session, episodes, seed, policy.contract.sources.get("policy"))
    return reality.collect(policy, plan, advance)
