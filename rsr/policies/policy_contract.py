"""Contract of an exported policy, its inputs, outputs and limits: `policy_contract.json` beside `policy.onnx`.

It says what the network wants to see (terms in order, columns, units, frames, and from which channels), what its
numbers mean (kind of command, scale, limits, rate, columns in order), and where it comes from (hashes). Whoever runs
the policy checks the contract first: a permuted joint or a wrong rate is refused with the reason, not discovered by
the arm.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any

from rsr.common import DAMAGED, PolicyError, hash_bounded, inside, read_object, short, write_json
from rsr.scenarios import VELOCITY, ObservationTerm, Scenario, task_of
from rsr.sessions import Channel, is_session_name

ONNX_FILE = "policy.onnx"
CONTRACT_FILE = "policy_contract.json"
_FORMAT = "rsr-policy-contract-2"
_RATE_TOLERANCE = 1e-6
LARGEST_NETWORK = 512 << 20
"""Bytes of an ONNX file; ours have about 60,000."""


@dataclass(frozen=True)
class ContractTerm:
    """A part of the observation: what it is, and the channels that it is computed from."""

    name: str
    columns: tuple[str, ...]
    unit: str
    frame: str
    channels: tuple[str, ...]


@dataclass(frozen=True)
class ContractAction:
    """Meaning of the output, column by column, in `unit`; a `limit` of 1 clips it to -1..1 beforehand.

    Args:
        type: `displacement`: the command in force + scale * output; `absolute`: -1 is lower, 1 is upper.
        scale: displacement that an output of 1 asks for.
        lead: a command never leads what is measured by more; nothing where it is not held back.
        lower, upper: limits of the command.
    """

    type: str
    unit: str
    scale: tuple[float, ...]
    limit: float
    lead: tuple[float, ...]
    lower: tuple[float, ...]
    upper: tuple[float, ...]


@dataclass(frozen=True)
class PolicyContract:
    """The whole of `policy_contract.json`.

    Args:
        joints: names in the order of the output's columns.
        channels: every channel that an observation term is computed from, as the policy knows it.
        onnx: file, its sha256, names of input and output, opset.
        sources: sha256 of the stored policy, of the calibration it was trained in, and of each session.
        parity: how far ONNX and the stored policy differed, on how many observations.
    """

    scenario: str
    rate_hz: float
    joints: tuple[str, ...]
    observation: tuple[ContractTerm, ...]
    channels: tuple[Channel, ...]
    action: ContractAction
    onnx: Mapping[str, Any] = field(default_factory=dict)
    sources: Mapping[str, Any] = field(default_factory=dict)
    parity: Mapping[str, float] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def observation_size(self) -> int:
        return sum(len(term.columns) for term in self.observation)

    def save(self, folder: Path) -> None:
        write_json(folder / CONTRACT_FILE, {"format": _FORMAT, **asdict(self)})


@dataclass(frozen=True)
class RobotInterface:
    """The controlled body, in a contract's terms: a scenario, or a robot as mapped to one.

    Args:
        joints: in the order in which commands are sent.
        channels: what can be measured or is given, each with columns, unit and frame.
    """

    name: str
    rate_hz: float
    joints: tuple[str, ...]
    command_unit: str
    channels: tuple[Channel, ...]


def load_contract(folder: Path) -> PolicyContract:
    """Read a contract and make sure that the ONNX file beside it is the one it speaks of.

    Raises:
        PolicyError: the contract or the ONNX file is missing, damaged, or one of them was changed.
    """
    path = Path(folder) / CONTRACT_FILE
    try:
        contract = _decode(read_object(inside(path.parent, CONTRACT_FILE)))
        file = onnx_file(path.parent, contract)
        found, expected = hash_bounded(file, LARGEST_NETWORK), str(contract.onnx["sha256"])
    except (*DAMAGED, AttributeError) as error:
        raise unreadable_export(folder, error) from error
    if found != expected:
        raise PolicyError(
            got=f"an ONNX file with sha256 {found[:12]}...",
            expected=f"{expected[:12]}..., as when it was exported",
            where=str(file),
            next_step="One of the two files was changed or replaced: export the policy again.",
        )
    return contract


def unreadable_export(folder: Path, error: Exception) -> PolicyError:
    """Say that contract and network cannot be read together."""
    return PolicyError(
        got=" ".join(f"{type(error).__name__}: {error}".split())[:300],
        expected=f"{CONTRACT_FILE} and {ONNX_FILE} of one export",
        where=str(folder),
        next_step="Export the policy again: `rsr export --help`.",
    )


def onnx_file(folder: Path, contract: PolicyContract) -> Path:
    """The network that a contract names, in the contract's own folder."""
    return inside(folder, contract.onnx["file"])


def check_contract(contract: PolicyContract, body: RobotInterface) -> None:
    """Refuse to run where policy and body do not mean the same by joints, rate, channels, units or frames.

    Raises:
        PolicyError: for the first thing that differs.
    """
    if abs(body.rate_hz - contract.rate_hz) > _RATE_TOLERANCE * contract.rate_hz:
        raise _refused(body, f"a rate of {body.rate_hz:g} Hz", f"{contract.rate_hz:g} Hz", "Set the rate it needs.")
    if body.joints != contract.joints:
        raise _refused(
            body,
            f"joints {', '.join(body.joints)}",
            f"{', '.join(contract.joints)}, in this order",
            "Put the joints in this order; a permuted joint moves another one.",
        )
    if body.command_unit != contract.action.unit:
        raise _refused(
            body, f"commands in {body.command_unit}", f"commands in {contract.action.unit}", "Convert the commands."
        )
    known = {channel.name: channel for channel in body.channels}
    for wanted in contract.channels:
        _check_channel(body, wanted, known.get(wanted.name))


def _check_channel(body: RobotInterface, wanted: Channel, found: Channel | None) -> None:
    if found is None:
        got = f"channels {', '.join(channel.name for channel in body.channels) or 'none'}"
        expected = f"channel '{wanted.name}' ({', '.join(wanted.columns)}; {wanted.unit}; frame {wanted.frame})"
        raise _refused(body, got, expected, "Measure it, or map what holds it to this name.")
    for aspect, remedy in (
        ("columns", "Put the columns in this order."),
        ("unit", "Convert the channel to this unit."),
        ("frame", "Express the channel in this frame."),
    ):
        got, expected = getattr(found, aspect), getattr(wanted, aspect)
        if got != expected:
            raise _refused(body, f"{aspect} {_words(got)} of channel '{wanted.name}'", _words(expected), remedy)


def _words(value: str | tuple[str, ...]) -> str:
    return f"'{value}'" if isinstance(value, str) else ", ".join(value)


def _refused(body: RobotInterface, got: str, expected: str, remedy: str) -> PolicyError:
    next_step = f"{remedy} The policy was not run."
    return PolicyError(got=got, expected=expected, where=f"{body.name}, against {CONTRACT_FILE}", next_step=next_step)


def _decode(document: dict[str, Any]) -> PolicyContract:
    if document.pop("format") != _FORMAT:
        raise ValueError(f"not of the format {_FORMAT}")
    if not is_session_name(document["scenario"]):  # it is looked up: a path would lead elsewhere
        raise ValueError(f"scenario {short(document['scenario'])}")
    terms = [ContractTerm(**_tuples(term)) for term in document.pop("observation")]
    channels = [Channel(**_tuples(channel)) for channel in document.pop("channels")]
    action = ContractAction(**_tuples(document.pop("action")))
    return PolicyContract(
        observation=tuple(terms), channels=tuple(channels), action=action, **_tuples(document, "joints")
    )


def _tuples(document: dict[str, Any], *names: str) -> dict[str, Any]:
    """JSON has lists where our data have tuples."""
    return {
        key: tuple(value) if isinstance(value, list) and (not names or key in names) else value
        for key, value in document.items()
    }


# The contract of a scenario's task before there is a policy, and what a scenario itself offers to one.


def scenario_body(scenario: Scenario) -> RobotInterface:
    """Describe a scenario as the body that a policy controls; `check_contract` compares."""
    name, command = f"scenario {scenario.name}", command_channel(scenario)
    return RobotInterface(name, 1.0 / scenario.control_dt_s, command.columns, command.unit, scenario.channels)


def task_contract(scenario: Scenario) -> PolicyContract:
    """Contract common to all policies for this task; nothing yet of one policy's file and origin."""
    command = command_channel(scenario)
    task = task_of(scenario)
    terms = tuple(_described(scenario, term) for term in task.terms)
    used = {name.removeprefix(VELOCITY) for term in terms for name in term.channels}
    return PolicyContract(
        scenario=scenario.name,
        rate_hz=1.0 / scenario.control_dt_s,
        joints=command.columns,
        observation=terms,
        channels=tuple(channel for channel in scenario.channels if channel.name in used),
        action=ContractAction(type=task.action.kind, unit=command.unit, limit=1.0, **task.action.stated()),
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


def _told(term: ContractTerm | None) -> str:
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


def _described(scenario: Scenario, term: ObservationTerm) -> ContractTerm:
    """Name the columns: as the channel does where the term is one channel."""
    by_name = {channel.name: channel for channel in scenario.channels}
    first = by_name.get(term.channels[0].removeprefix(VELOCITY)) if len(term.channels) == 1 else None
    if first is not None and first.width == term.size:
        columns = first.columns
    elif term.unit == "m":
        columns = ("x", "y", "z")[: term.size]
    else:
        columns = tuple(str(number) for number in range(term.size))
    return ContractTerm(term.name, columns, term.unit, term.frame, term.channels)
