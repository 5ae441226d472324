"""States of ros2_control's controllers, in bags that do not say what their messages are made of."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from foreign_files import HUMBLE, write_controller_states
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from rsr.sessions.importers._decoders import CdrDecoder, definitions_of
from rsr.sessions.importers.formats import open_recording
from tests.sessions.test_ros_messages import header

LINES = HUMBLE.splitlines()
VERSIONS = {
    "foxy": [*LINES[:2], LINES[6], LINES[7], LINES[4]],
    "rolling of 2021": [*LINES[:2], LINES[6], LINES[7], LINES[4], LINES[8], LINES[13], LINES[14], LINES[11]],
    "humble": LINES,
    "iron": [*LINES[:6], *LINES[8:13]],
    "jazzy": [*LINES[:6], *LINES[8:13], "float64 speed_scaling_factor"],
}


@pytest.mark.parametrize("version", VERSIONS)
def test_each_version_of_a_trajectory_controllers_state_is_told_by_its_length(version: str, tmp_path: Path) -> None:
    definition = "\n".join(VERSIONS[version])
    recording = open_recording(write_controller_states(tmp_path, definition))
    (stream,) = recording.streams
    felt, wanted = ("actual", "desired") if "reference" not in definition else ("feedback", "reference")
    columns = (f"{felt}.positions.shoulder", f"{felt}.velocities.elbow", f"{wanted}.effort.elbow")
    assert set(columns) <= set(stream.columns)
    assert stream.units[columns[0]] == "rad"
    found = recording.load(recording.parts[0], {stream.name: columns}, "header")[stream.name]
    from foreign_files import truth

    run = truth()
    expected = np.stack([run["joint_position"][:, 0], run["joint_velocity"][:, 1], run["commanded_torque"][:, 1]], 1)
    np.testing.assert_array_equal(found.values, expected)
    recording.close()


def test_interfaces_are_named_by_their_joints() -> None:
    store = get_typestore(Stores.ROS2_HUMBLE)
    kind, inner = "control_msgs/msg/DynamicJointState", "control_msgs/msg/InterfaceValue"
    store.register(get_types_from_msg("string[] interface_names\nfloat64[] values", inner))
    text = "std_msgs/Header header\nstring[] joint_names\ncontrol_msgs/InterfaceValue[] interface_values"
    store.register(get_types_from_msg(text, kind))
    values = [
        store.types[inner](["position", "effort"], np.array([1.0, 2.0])),
        store.types[inner](["position"], np.array([3.0])),
    ]
    message = bytes(store.serialize_cdr(store.types[kind](header(0), ["elbow", "tip"], values), kind))
    decoder = CdrDecoder(kind, *definitions_of("", "", kind))
    rows = decoder.rows([message], decoder.columns([message]))
    assert dict(zip(decoder.columns([message]), rows.values[0].tolist(), strict=True)) == {
        "interface_values.elbow.values.position": 1.0,
        "interface_values.elbow.values.effort": 2.0,
        "interface_values.tip.values.position": 3.0,
    }
