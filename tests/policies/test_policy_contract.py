"""Every way in which policy and robot can misunderstand each other has its own words."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hand_made import pushing_policy

from rsr.common.errors import PolicyError
from rsr.policies.export import export_policy
from rsr.policies.policy import OnnxPolicy
from rsr.policies.policy_contract import (
    PolicyContract,
    RobotInterface,
    check_contract,
    check_task,
    load_contract,
    scenario_body,
    task_contract,
)
from rsr.scenarios import load_scenario


@pytest.fixture(scope="module")
def exported(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("exported")
    pushing_policy().save(folder / "policy")
    export_policy(load_scenario("push_cube"), folder / "policy", folder)
    return folder


def body(**changes) -> RobotInterface:
    return replace(scenario_body(load_scenario("push_cube")), **changes)


def with_channel(name: str, **changes) -> RobotInterface:
    channels = tuple(replace(c, **changes) if c.name == name else c for c in body().channels)
    return body(channels=channels)


def without_channel(name: str) -> RobotInterface:
    return body(channels=tuple(c for c in body().channels if c.name != name))


def test_what_fits_is_let_through(exported):
    check_contract(load_contract(exported), body())
    check_contract(task_contract(load_scenario("push_t")), scenario_body(load_scenario("push_t")))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (body(rate_hz=25.0), "got a rate of 25 Hz; expected 20 Hz. Set the rate it needs."),
        (
            body(joints=("joint2", "joint1", "joint3", "joint4", "joint5", "joint6")),
            "got joints joint2, joint1, joint3, joint4, joint5, joint6; expected joint1, joint2, joint3, joint4, "
            "joint5, joint6, in this order. Put the joints in this order; a permuted joint moves another one.",
        ),
        (body(command_unit="deg"), "got commands in deg; expected commands in rad. Convert the commands."),
        (
            with_channel("joint_position", unit="deg"),
            "got unit 'deg' of channel 'joint_position'; expected 'rad'. Convert the channel to this unit.",
        ),
        (
            with_channel("block_position", frame="camera"),
            "got frame 'camera' of channel 'block_position'; expected 'world'. Express the channel in this frame.",
        ),
        (
            with_channel("block_position", columns=("y", "x", "z")),
            "got columns y, x, z of channel 'block_position'; expected x, y, z. Put the columns in this order.",
        ),
        (
            without_channel("block_position"),
            "got channels joint_position, block_orientation, joint_setpoint, action, tip_position, target_position, "
            "clipped; expected channel 'block_position' (x, y, z; m; frame world). Measure it, or map what holds it to "
            "this name.",
        ),
    ],
)
def test_what_does_not_fit_is_refused_with_the_reason(exported, wrong, message):
    with pytest.raises(PolicyError) as caught:
        check_contract(load_contract(exported), wrong)
    where = "scenario push_cube, against policy_contract.json"
    assert str(caught.value) == f"{where}: {message} The policy was not run."


def with_term(contract: PolicyContract, number: int, **changes) -> PolicyContract:
    terms = list(contract.observation)
    terms[number] = replace(terms[number], **changes)
    return replace(contract, observation=tuple(terms))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda c: replace(c, observation=(c.observation[1], c.observation[0], *c.observation[2:])),
            "got observation term 1: 'fingertip' (x, y, z; m; frame world); expected 'joints' (joint1, joint2, joint3, "
            "joint4, joint5, joint6; rad; frame joint), as scenario push_cube has it now.",
        ),
        (
            lambda c: with_term(c, 3, unit="mm"),
            "got observation term 4: 'block' (x, y, z; mm; frame world); expected 'block' (x, y, z; m; frame world), "
            "as scenario push_cube has it now.",
        ),
        (
            lambda c: with_term(c, 4, frame="camera"),
            "got observation term 5: 'target - block' (x, y, z; m; frame camera); expected 'target - block' (x, y, z; "
            "m; frame world), as scenario push_cube has it now.",
        ),
        (
            lambda c: replace(c, observation=c.observation[:-1]),
            "got observation term 15: nothing; expected 'last action from fingertip' (x, y; m; frame way), as scenario "
            "push_cube has it now.",
        ),
        (
            lambda c: replace(c, action=replace(c.action, scale=(0.1,) * 6)),
            "got action with scale (0.1, 0.1, 0.1, 0.1, 0.1, 0.1); expected (0.08, 0.08, 0.08, 0.08, 0.08, 0.08), as "
            "scenario push_cube has it now.",
        ),
    ],
)
def test_what_meant_something_else_when_it_was_exported_is_refused(exported, change, message):
    scenario = load_scenario("push_cube")
    check_task(load_contract(exported), scenario)
    with pytest.raises(PolicyError) as caught:
        check_task(change(load_contract(exported)), scenario)
    assert str(caught.value) == (
        f"policy_contract.json: {message} Export the policy with this version, or run it with the one it was exported "
        "with. The policy was not run."
    )


def copied(exported: Path, to: Path) -> Path:
    for name in ("policy.onnx", "policy_contract.json"):
        (to / name).write_bytes((exported / name).read_bytes())
    return to


def test_a_changed_onnx_file_is_refused(exported, tmp_path):
    file = copied(exported, tmp_path) / "policy.onnx"
    expected = json.loads((tmp_path / "policy_contract.json").read_text())["onnx"]["sha256"]
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(bytes(content))
    with pytest.raises(PolicyError) as caught:
        OnnxPolicy.load(tmp_path)
    assert caught.value.expected == f"{expected[:12]}..., as when it was exported"
    assert caught.value.where == str(file)
    assert caught.value.next_step == "One of the two files was changed or replaced: export the policy again."


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": "rsr-policy-contract-0"}', '{"format": '])
def test_contracts_that_are_none(exported, tmp_path, text):
    (copied(exported, tmp_path) / "policy_contract.json").write_text(text)
    with pytest.raises(PolicyError) as caught:
        load_contract(tmp_path)
    assert caught.value.next_step == "Export the policy again: `rsr export --help`."


@pytest.mark.parametrize("missing", ["policy.onnx", "policy_contract.json"])
def test_missing_files(exported, tmp_path, missing):
    (copied(exported, tmp_path) / missing).unlink()
    with pytest.raises(PolicyError, match="expected policy_contract.json and policy.onnx of one export"):
        load_contract(tmp_path)


def test_a_contract_survives_its_file(exported, tmp_path):
    contract = load_contract(exported)
    contract.save(tmp_path)
    copied_onnx = tmp_path / "policy.onnx"
    copied_onnx.write_bytes((exported / "policy.onnx").read_bytes())
    assert load_contract(tmp_path) == contract
