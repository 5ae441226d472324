"""A first scenario for a robot of Menagerie, which has a model and nothing else: to be edited, above all its noise."""

from __future__ import annotations

import re

import mujoco
import yaml

from rsr.common import ScenarioError
from rsr.scenarios.channels.declared_channels import (
    Measured,
    actuators,
    free_joint_position,
    free_joint_quaternion,
    is_servo,
    joints,
)
from rsr.scenarios.models.menagerie import PREFIX, menagerie_file
from rsr.scenarios.models.mjcf import compiled
from rsr.scenarios.parameters.bindings import free_joint_name
from rsr.scenarios.parameters.declared_parameters import TunedParameter, delay, scale
from rsr.scenarios.saving import document_of
from rsr.scenarios.scenario import Scenario

_CONTROL_S = 0.02
_ENCODER_NOISE_RAD, _SLIDE_NOISE_M, _TRACKER_NOISE_M, _TRACKER_NOISE_RAD = 0.002, 0.0005, 0.001, 0.005
_LONGEST_DELAY_S = 0.1
_HINGE, _SLIDE, _FREE = mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE, mujoco.mjtJoint.mjJNT_FREE


def draft_scenario(reference: str) -> str:
    """Write scenario.yaml of a robot such as `menagerie:trs_so_arm100`.

    Measured are its joints and free bodies, commanded all actuators; tuned what a robot of its kind is usually unsure
    of: friction, damping, gains, masses of free bodies, delay.

    Raises:
        ConfigError: there is no such robot, or it cannot be downloaded.
        ScenarioError: its joints or actuators have no names.
    """
    mjcf = menagerie_file(reference)
    model = compiled(mjcf, reference)
    names = tuple(model.actuator(index).name for index in range(model.nu))
    measured = _measured(model)
    if not measured or not all(names):
        raise ScenarioError(
            got="joints or actuators without names",
            expected="names to measure and command",
            where=reference,
            next_step=f"Write scenario.yaml yourself, with `mjcf: {reference}`; docs/own-robot.md shows how.",
        )
    robot = re.sub(r"[^A-Za-z0-9_-]+", "_", reference.removeprefix(PREFIX))
    scenario = Scenario.from_mjcf(
        mjcf,
        dt=model.opt.timestep * max(1, round(_CONTROL_S / model.opt.timestep)),
        measured=measured,
        tune=_tuned(model),
        command={"command": actuators(*names)} if names else None,
        name=robot,
        title=f"{robot} of MuJoCo Menagerie, as drafted: edit it",
    )
    return yaml.safe_dump(document_of(scenario, reference), sort_keys=False, width=120)


def _measured(model: mujoco.MjModel) -> dict[str, Measured]:
    found: dict[str, Measured] = {}
    for kind, channel, noise in (
        (_HINGE, "joint_position", _ENCODER_NOISE_RAD),
        (_SLIDE, "slide_position", _SLIDE_NOISE_M),
    ):
        if named := _joints(model, kind):
            found[channel] = joints(*named, noise=noise)
    for joint in range(model.njnt):
        if model.jnt_type[joint] == _FREE:
            body = free_joint_name(model, joint)
            found[f"{body}_position"] = free_joint_position(body, noise=_TRACKER_NOISE_M)
            found[f"{body}_orientation"] = free_joint_quaternion(body, noise=_TRACKER_NOISE_RAD)
    return found


def _joints(model: mujoco.MjModel, kind: mujoco.mjtJoint) -> list[str]:
    names = [model.joint(index).name for index in range(model.njnt) if model.jnt_type[index] == kind]
    return [name for name in names if name]


def _tuned(model: mujoco.MjModel) -> dict[str, TunedParameter]:
    """Parameters for what the robot has a value of."""
    tuned: dict[str, TunedParameter] = {}
    moving = [*_joints(model, _HINGE), *_joints(model, _SLIDE)]
    for name, field, values in (
        ("friction", "friction_loss", model.dof_frictionloss),
        ("damping", "damping", model.dof_damping),
    ):
        if named := [joint for joint in moving if values[model.jnt_dofadr[model.joint(joint).id]] > 0]:
            tuned[name] = scale(f"joint.{field}", *named)
    if servos := [model.actuator(index).name for index in range(model.nu) if is_servo(model, index)]:
        tuned["gain"] = scale("actuator.position_gain", *servos)
    if free := [
        model.body(model.jnt_bodyid[index]).name for index in range(model.njnt) if model.jnt_type[index] == _FREE
    ]:
        tuned["mass"] = scale("body.mass", *free)
    return tuned | ({"delay": delay(upper=_LONGEST_DELAY_S)} if model.nu else {})
