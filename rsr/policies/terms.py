"""The contract of a scenario's task before there is a policy, and what a scenario itself offers to one."""

from __future__ import annotations

from dataclasses import asdict
from itertools import zip_longest

from rsr.errors import PolicyError
from rsr.policies.contract import CONTRACT_FILE, Action, Body, PolicyContract, Term
from rsr.scenarios import Scenario, task_of
from rsr.scenarios.pushing import Term as Part
from rsr.scenarios.pushing import arm, kinematics
from rsr.sessions import Channel


def scenario_body(scenario: Scenario) -> Body:
    """What a scenario offers to a policy; `check_contract` compares."""
    name, command = f"scenario {scenario.name}", command_channel(scenario)
    return Body(name, 1.0 / scenario.control_dt_s, command.columns, command.unit, scenario.channels)


def task_contract(scenario: Scenario) -> PolicyContract:
    """What every policy for this task demands and promises; nothing yet of one policy's file and origin."""
    command = command_channel(scenario)
    terms = tuple(_described(scenario, part) for part in task_of(scenario).terms)
    used = {name for term in terms for name in term.channels}
    return PolicyContract(
        scenario=scenario.name,
        rate_hz=1.0 / scenario.control_dt_s,
        joints=command.columns,
        observation=terms,
        channels=tuple(channel for channel in scenario.channels if channel.name in used),
        action=Action(
            type="joint_displacement",
            unit=command.unit,
            scale=arm.STEP_RAD,
            limit=1.0,
            lead=arm.LEAD_RAD,
            lower=tuple(kinematics.JOINT_LOWER_RAD.tolist()),
            upper=tuple(kinematics.JOINT_UPPER_RAD.tolist()),
        ),
    )


def check_task(contract: PolicyContract, scenario: Scenario) -> None:
    """Refuse a policy that was exported when observation or action meant something else.

    Raises:
        PolicyError: for the first term, or the first word on the action, that differs.
    """
    today = task_contract(scenario)
    for number, (found, wanted) in enumerate(zip_longest(contract.observation, today.observation), start=1):
        if found != wanted:
            raise _outdated(scenario, f"observation term {number}: {_told(found)}", _told(wanted))
    for aspect, found in asdict(contract.action).items():
        wanted = getattr(today.action, aspect)
        if found != wanted:
            raise _outdated(scenario, f"action with {aspect} {found}", f"{wanted}")


def _told(term: Term | None) -> str:
    if term is None:
        return "nothing"
    return f"'{term.name}' ({', '.join(term.columns)}; {term.unit}; frame {term.frame})"


def _outdated(scenario: Scenario, got: str, expected: str) -> PolicyError:
    return PolicyError(
        got=got,
        expected=f"{expected}, as scenario {scenario.name} has it now",
        where=CONTRACT_FILE,
        next_step="Export the policy with this version, or run it with the one it was exported with. "
        "The policy was not run.",
    )


def command_channel(scenario: Scenario) -> Channel:
    """The channel that holds what was sent to the joints."""
    return next(channel for channel in scenario.channels if channel.name == scenario.command)


def _described(scenario: Scenario, part: Part) -> Term:
    """Name the columns: as the channel does where the term is one channel."""
    by_name = {channel.name: channel for channel in scenario.channels}
    if len(part.channels) == 1 and by_name[part.channels[0]].width == part.size:
        columns = by_name[part.channels[0]].columns
    elif part.unit == "m":
        columns = ("x", "y", "z")[: part.size]
    else:
        columns = tuple(str(number) for number in range(part.size))
    return Term(part.name, columns, part.unit, part.frame, part.channels)
