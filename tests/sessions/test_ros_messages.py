"""ROS 2 messages are decoded to what was sent, thousands at a time, whatever their lengths and names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from mcap.writer import Writer as McapWriter
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

from rsr.sessions.importers._cdr import layout_of
from rsr.sessions.importers._decoders import CdrDecoder, JsonDecoder
from rsr.sessions.importers.formats import open_recording

STORE = get_typestore(Stores.ROS2_HUMBLE)
TYPES = {name: STORE.types[name] for name in STORE.types}
EPOCH_S = 1_760_000_000
names = st.lists(st.text("abc_/éß", min_size=1, max_size=9), unique=True, max_size=5)
numbers = st.floats(-1e300, 1e300)


def header(stamp_ns: int, frame: str = "base") -> object:
    stamp = TYPES["builtin_interfaces/msg/Time"](EPOCH_S + stamp_ns // 10**9, stamp_ns % 10**9)
    return TYPES["std_msgs/msg/Header"](stamp, frame)


def joint_state(joints: list[str], values: np.ndarray, stamp_ns: int) -> bytes:
    message = TYPES["sensor_msgs/msg/JointState"](header(stamp_ns), joints, values, values * 2, np.zeros(0))
    return bytes(STORE.serialize_cdr(message, message.__msgtype__))


@settings(deadline=None, max_examples=60)
@given(
    st.lists(
        st.tuples(
            names.flatmap(
                lambda found: st.tuples(st.just(found), st.lists(numbers, min_size=len(found), max_size=len(found)))
            ),
            st.integers(0, 10**12),
        ),
        min_size=1,
        max_size=12,
    )
)
def test_joint_states_come_back_as_they_were_sent(sent: list) -> None:
    payloads = [joint_state(joints, np.array(values, float), stamp) for (joints, values), stamp in sent]
    decoder = CdrDecoder("sensor_msgs/msg/JointState", STORE.fielddefs)
    columns = decoder.columns(payloads)
    rows = decoder.rows(payloads, columns)
    assert rows.good.all()
    for row, ((joints, values), stamp) in enumerate(sent):
        found = dict(zip(columns, rows.values[row], strict=True))
        assert {key: value for key, value in found.items() if key.startswith("position.") and not np.isnan(value)} == {
            f"position.{joint}": value for joint, value in zip(joints, values, strict=True)
        }
        assert rows.stamps_ns[row] == EPOCH_S * 10**9 + stamp


def test_a_message_that_does_not_fit_its_definition_is_not_good() -> None:
    whole = joint_state(["a", "b"], np.array([1.0, 2.0]), 0)
    decoder = CdrDecoder("sensor_msgs/msg/JointState", STORE.fielddefs)
    rows = decoder.rows([whole, whole[:-9], whole + bytes(16), b"", whole], ["position.a"])
    np.testing.assert_array_equal(rows.good, [True, False, False, False, True])
    with pytest.raises(ValueError, match="no definition"):
        layout_of(whole, "my_msgs/msg/Unknown", STORE.fielddefs)


def test_poses_frames_arrays_and_images_in_one_bag(tmp_path: Path) -> None:
    point, turn = (
        TYPES["geometry_msgs/msg/Point"](1.0, 2.0, 3.0),
        TYPES["geometry_msgs/msg/Quaternion"](0.0, 0.0, 0.6, 0.8),
    )
    pose = TYPES["geometry_msgs/msg/PoseStamped"](header(0), TYPES["geometry_msgs/msg/Pose"](point, turn))
    shift = TYPES["geometry_msgs/msg/Transform"](TYPES["geometry_msgs/msg/Vector3"](4.0, 5.0, 6.0), turn)
    stamped = [TYPES["geometry_msgs/msg/TransformStamped"](header(0), child, shift) for child in ("cube", "tip")]
    frames = TYPES["tf2_msgs/msg/TFMessage"](stamped)
    layout = TYPES["std_msgs/msg/MultiArrayLayout"]([], 0)
    array = TYPES["std_msgs/msg/Float64MultiArray"](layout, np.array([7.0, 8.0]))
    image = TYPES["sensor_msgs/msg/Image"](header(0), 2, 400, "rgb8", 0, 1200, np.zeros(2400, np.uint8))
    sent = {"/cube_pose": pose, "/tf": frames, "/command": array, "/camera": image}
    with Writer(tmp_path / "bag", version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        for topic, message in sent.items():
            connection = writer.add_connection(topic, message.__msgtype__, typestore=STORE)
            for row in range(3):
                stamp = EPOCH_S * 10**9 + row * 10**7
                writer.write(connection, stamp, STORE.serialize_cdr(message, message.__msgtype__))
    recording = open_recording(tmp_path / "bag")
    streams = {stream.name: stream for stream in recording.streams}
    assert set(streams) >= {"/cube_pose", "/tf", "/command"}
    wanted = {
        "/cube_pose": ("pose.position.z", "pose.orientation.w"),
        "/tf": ("transforms.tip.transform.translation.y", "transforms.cube.transform.rotation.z"),
        "/command": ("data.1",),
    }
    found = recording.load(recording.parts[0], wanted, "log")
    np.testing.assert_array_equal(found["/cube_pose"].values, [[3.0, 0.8]] * 3)
    np.testing.assert_array_equal(found["/tf"].values, [[5.0, 0.6]] * 3)
    np.testing.assert_array_equal(found["/command"].values, [[8.0]] * 3)
    np.testing.assert_allclose(found["/command"].time_s, [0.0, 0.01, 0.02])
    recording.close()
    assert not streams["/command"].named
    assert streams["/cube_pose"].units["pose.position.z"] == "m"
    assert all("data" not in column for column in streams.get("/camera", streams["/tf"]).columns)


def test_json_names_and_stamps(tmp_path: Path) -> None:
    decoder = JsonDecoder()
    payloads = [
        b'{"name": ["a", "b"], "position": [1, 2.5], "ok": true, "header": {"stamp": {"sec": 3, "nsec": 4}}}',
        b'{"name": ["b", "a"], "position": [2.5, 1], "extra": {"deep": [7]}, "text": "x"}',
        b"{broken",
    ]
    columns = decoder.columns(payloads)
    assert columns == ("position.a", "position.b", "ok", "extra.deep.0")
    rows = decoder.rows(payloads, columns)
    np.testing.assert_array_equal(rows.good, [True, True, False])
    np.testing.assert_array_equal(rows.values[:2, :2], [[1.0, 2.5]] * 2)
    assert rows.stamps_ns.tolist() == [3_000_000_004, 0, 0]


def test_two_publishers_of_one_topic_are_one_stream(tmp_path: Path) -> None:
    path = tmp_path / "two.mcap"
    with path.open("wb") as stream:
        writer = McapWriter(stream)
        writer.start()
        schema = writer.register_schema("reading", "jsonschema", b"{}")
        channels = [writer.register_channel("/a", "json", schema) for _ in range(2)]
        for row in range(6):
            writer.add_message(channels[row % 2], row * 10**9, b'{"value": %d}' % row, row * 10**9)
        writer.finish()
    recording = open_recording(path)
    samples = recording.load(recording.parts[0], {"/a": ("value",)}, "log")["/a"]
    recording.close()
    np.testing.assert_array_equal(samples.values[:, 0], range(6))
    np.testing.assert_allclose(samples.time_s, range(6))
