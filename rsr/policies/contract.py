"""What an exported policy promises and demands: `policy_contract.json`, which lies beside `policy.onnx`.

It says what the network wants to see (terms in order, columns, units, frames, and from which channels), what its
numbers mean (joint displacements: scale, limits, rate, joints in order), and where it comes from (hashes). Whoever runs
the policy checks the contract first: a permuted joint or a wrong rate is refused with the reason, not discovered by
the arm.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rsr.errors import PolicyError
from rsr.files import DAMAGED, read_json, sha256, write_json
from rsr.sessions import Channel

ONNX_FILE = "policy.onnx"
CONTRACT_FILE = "policy_contract.json"
_FORMAT = "rsr-policy-contract-1"
_RATE_TOLERANCE = 1e-6


@dataclass(frozen=True)
class Term:
    """A part of the observation: what it is, and the channels that it is computed from."""

    name: str
    columns: tuple[str, ...]
    unit: str
    frame: str
    channels: tuple[str, ...]


@dataclass(frozen=True)
class Action:
    """What the output means: `setpoint + scale * clip(output, -limit, limit)`, joint by joint.

    Args:
        scale: displacement that an output of 1 asks for, in `unit`.
        lead: a setpoint never leads the measured joint by more, in `unit`.
        lower, upper: limits of the setpoint, one a joint, in `unit`.
    """

    type: str
    unit: str
    scale: float
    limit: float
    lead: float
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
    observation: tuple[Term, ...]
    channels: tuple[Channel, ...]
    action: Action
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
class Body:
    """What is to be controlled, in the words that a contract is held against: a scenario, or a robot as mapped to one.

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
        contract = _decode(read_json(path))
        found = sha256(path.parent / contract.onnx["file"])
        expected = contract.onnx["sha256"]
    except (*DAMAGED, AttributeError) as error:
        raise PolicyError(
            got=f"{type(error).__name__}: {error}",
            expected=f"{CONTRACT_FILE} and {ONNX_FILE} of one export",
            where=str(folder),
            next_step="Export the policy again: `rsr export --help`.",
        ) from error
    if found != expected:
        raise PolicyError(
            got=f"an ONNX file with sha256 {found[:12]}...",
            expected=f"{expected[:12]}..., as when it was exported",
            where=str(path.parent / contract.onnx["file"]),
            next_step="One of the two files was changed or replaced: export the policy again.",
        )
    return contract


def check_contract(contract: PolicyContract, body: Body) -> None:
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


def _check_channel(body: Body, wanted: Channel, found: Channel | None) -> None:
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


def _refused(body: Body, got: str, expected: str, remedy: str) -> PolicyError:
    next_step = f"{remedy} The policy was not run."
    return PolicyError(got=got, expected=expected, where=f"{body.name}, against {CONTRACT_FILE}", next_step=next_step)


def _decode(document: dict[str, Any]) -> PolicyContract:
    if document.pop("format") != _FORMAT:
        raise ValueError(f"not of the format {_FORMAT}")
    terms = [Term(**_tuples(term)) for term in document.pop("observation")]
    channels = [Channel(**_tuples(channel)) for channel in document.pop("channels")]
    action = Action(**_tuples(document.pop("action")))
    return PolicyContract(
        observation=tuple(terms), channels=tuple(channels), action=action, **_tuples(document, "joints")
    )


def _tuples(document: dict[str, Any], *names: str) -> dict[str, Any]:
    """JSON has lists where our data have tuples."""
    return {
        key: tuple(value) if isinstance(value, list) and (not names or key in names) else value
        for key, value in document.items()
    }
