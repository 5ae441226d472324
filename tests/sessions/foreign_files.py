"""One short run of a double pendulum, written as others write it: a function for each format."""

from __future__ import annotations

import csv
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import cache
from pathlib import Path

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from mcap.writer import CompressionType, Writer as McapWriter
from rosbags.rosbag1 import Writer as Writer1
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from rsr.scenarios import load_scenario
from rsr.scenarios.channels.recorded import target_of
from rsr.sessions import Card, Channel, Episode, Session, write_session
from rsr.sessions.ingest.mapping import Target

JOINTS = ("shoulder", "elbow")
DT_S = 0.002
ROWS = 400
EPOCH_NS = 1_760_000_000_000_000_000
NAMES = ("joint_position", "joint_velocity", "measured_torque", "commanded_torque")


@cache
def pendulum() -> Target:
    return target_of(load_scenario("double_pendulum"))


@cache
def truth() -> dict[str, np.ndarray]:
    """Channel -> [ROWS, 2], and time_s [ROWS]; smooth, aperiodic, velocities the exact change of positions."""
    time_s = DT_S * np.arange(ROWS)
    phase = np.stack([9 * time_s + 3 * np.sin(7 * time_s), 6 * time_s + 2 * np.sin(11 * time_s) + 1], axis=1)
    speed = np.stack([9 + 21 * np.cos(7 * time_s), 6 + 22 * np.cos(11 * time_s)], axis=1)
    torque = 0.4 * np.cos(phase + 0.5)
    return {
        "time_s": time_s,
        "joint_position": 0.5 * np.sin(phase),
        "joint_velocity": 0.5 * speed * np.cos(phase),
        "measured_torque": torque,
        "commanded_torque": np.repeat(torque[::5], 5, axis=0),
    }


def rows() -> dict[str, np.ndarray]:
    """Column -> [ROWS], as a table would have it, elbow first."""
    run = truth()
    short = dict(zip(NAMES, ("pos_rad", "vel_rad_s", "torque_Nm", "torque_cmd_Nm"), strict=True))
    table = {"time_s": run["time_s"]}
    for name, suffix in short.items():
        table |= {f"elbow_{suffix}": run[name][:, 1], f"shoulder_{suffix}": run[name][:, 0]}
    return table


def write_csv(folder: Path) -> Path:
    path = folder / "run.csv"
    table = rows()
    values = np.stack(list(table.values()), axis=1)
    np.savetxt(path, values, fmt="%.9f", delimiter=",", header=",".join(table), comments="")
    return path


def write_parquet(folder: Path) -> Path:
    path = folder / "run.parquet"
    pq.write_table(pa.table(rows()), path, write_page_checksum=True)
    return path


def write_npz(folder: Path) -> Path:
    path = folder / "run.npz"
    run = truth()
    arrays = {"dof_pos": "joint_position", "dof_vel": "joint_velocity", "dof_torque": "measured_torque"}
    np.savez(
        path,
        time=run["time_s"],
        **{name: run[channel] for name, channel in arrays.items()},
        torque_cmd=run["commanded_torque"],
    )
    return path


def write_robomimic(folder: Path) -> Path:
    path = folder / "demos.hdf5"
    run = truth()
    with h5py.File(path, "w") as file:
        data = file.create_group("data")
        data.attrs["env_args"] = json.dumps({"env_name": "Lift", "env_kwargs": {"control_freq": 500}})
        for index in range(3):
            demo = data.create_group(f"demo_{index}")
            demo.create_dataset("actions", data=run["commanded_torque"], fletcher32=True)
            for name, channel in (("pos", NAMES[0]), ("vel", NAMES[1]), ("torque", NAMES[2])):
                demo.create_dataset(f"obs/robot0_joint_{name}", data=run[channel], fletcher32=True)
    return path


def write_isaac(folder: Path) -> Path:
    path = folder / "isaac.hdf5"
    run = truth()
    with h5py.File(path, "w") as file:
        data = file.create_group("data")
        data.attrs["env_args"] = json.dumps(
            {"env_name": "Swing", "type": 2, "sim_args": {"dt": 0.001, "decimation": 2}}
        )
        robot = "data/demo_0/states/articulation/robot"
        for name, channel in (("joint_position", NAMES[0]), ("joint_velocity", NAMES[1]), ("joint_torque", NAMES[2])):
            file.create_dataset(f"{robot}/{name}", data=run[channel].astype(np.float32))
        file.create_dataset("data/demo_0/actions", data=run["commanded_torque"].astype(np.float32))
    return path


def write_lerobot_v3(folder: Path) -> Path:
    run = truth()
    units = ("rad", "rad/s", "N m", "N m")
    channels = tuple(
        Channel(name, JOINTS, unit, "joint", stamp="held_until_next" if name.startswith("comm") else "at_sample")
        for name, unit in zip(NAMES, units, strict=True)
    )
    values = {name: run[name] for name in NAMES}
    episodes = tuple(Episode(index, run["time_s"], values) for index in range(2))
    card = Card("set", "double_pendulum", "lab", simulated=False, control_dt_s=DT_S)
    return write_session(folder, Session(card, channels, episodes))


def write_lerobot_v2(folder: Path) -> Path:
    path = folder / "set_v2"
    run = truth()
    (path / "data" / "chunk-000").mkdir(parents=True)
    (path / "meta").mkdir()
    names = [f"{joint}.{kind}" for kind in ("pos", "vel", "torque") for joint in JOINTS]
    features = {
        "observation.state": {"dtype": "float32", "shape": [6], "names": {"motors": names}},
        "action": {"dtype": "float32", "shape": [2], "names": [f"{joint}.torque" for joint in JOINTS]},
        "observation.images.top": {"dtype": "video", "shape": [480, 640, 3], "names": None},
    }
    info = {"codebase_version": "v2.1", "fps": 500, "total_episodes": 2, "features": features}
    (path / "meta" / "info.json").write_text(json.dumps(info))
    for index in range(2):
        state = np.concatenate([run[name] for name in NAMES[:3]], axis=1).astype(np.float32)
        table = {
            "observation.state": list(state),
            "action": list(run["commanded_torque"].astype(np.float32)),
            "timestamp": run["time_s"].astype(np.float32),
            "frame_index": np.arange(ROWS),
            "episode_index": np.full(ROWS, index),
        }
        pq.write_table(pa.table(table), path / "data" / "chunk-000" / f"episode_{index:06d}.parquet")
    return path


def _bag(folder: Path, plugin: StoragePlugin) -> Path:
    """Joint states of both joints, elbow first; commands at a fifth of the rate; a text topic that holds no numbers."""
    path = folder / f"bag_{plugin.name.lower()}"
    store = get_typestore(Stores.ROS2_HUMBLE)
    types = {
        name.split("/")[-1]: found for name, found in store.types.items() if name.startswith(("sensor", "std", "bu"))
    }
    run = truth()
    with Writer(path, version=9, storage_plugin=plugin) as writer:
        states = writer.add_connection("/joint_states", types["JointState"].__msgtype__, typestore=store)
        commands = writer.add_connection("/joint_command", types["JointState"].__msgtype__, typestore=store)
        texts = writer.add_connection("/rosout", types["String"].__msgtype__, typestore=store)
        for row in range(ROWS):
            stamp = EPOCH_NS + round(1e9 * run["time_s"][row])
            header = types["Header"](types["Time"](stamp // 10**9, stamp % 10**9), "base")
            one = [np.ascontiguousarray(run[name][row, ::-1]) for name in NAMES]
            message = types["JointState"](header, ["elbow", "shoulder"], *one[:3])
            writer.write(states, stamp + 300_000, store.serialize_cdr(message, message.__msgtype__))
            if row % 5 == 0:
                empty = np.zeros(0)
                message = types["JointState"](header, ["elbow", "shoulder"], empty, empty, one[3])
                writer.write(commands, stamp + 300_000, store.serialize_cdr(message, message.__msgtype__))
                text = types["String"](f"row {row}")
                writer.write(texts, stamp, store.serialize_cdr(text, text.__msgtype__))
    return path


def write_bag_sqlite(folder: Path) -> Path:
    return _bag(folder, StoragePlugin.SQLITE3)


def write_bag_mcap(folder: Path) -> Path:
    return _bag(folder, StoragePlugin.MCAP)


def write_bag_of_ros_1(folder: Path, compression: Writer1.CompressionFormat | None = None) -> Path:
    """The same in ROS 1, in chunks of some ten messages."""
    path = folder / "run.bag"
    store = get_typestore(Stores.ROS1_NOETIC)
    kinds = {name.split("/")[-1]: name for name in ("sensor_msgs/msg/JointState", "std_msgs/msg/String")}
    types = {kind: store.types[name] for kind, name in kinds.items()}
    run = truth()
    writer = Writer1(path)
    writer.chunk_threshold = 4096
    if compression is not None:
        writer.set_compression(compression)
    with writer:
        joints, words = kinds["JointState"], kinds["String"]
        states, commands, texts = (
            writer.add_connection(topic, kind, typestore=store)
            for topic, kind in (("/joint_states", joints), ("/joint_command", joints), ("/rosout", words))
        )
        for row in range(ROWS):
            stamp = EPOCH_NS + round(1e9 * run["time_s"][row])
            time = store.types["builtin_interfaces/msg/Time"](stamp // 10**9, stamp % 10**9)
            header = store.types["std_msgs/msg/Header"](row, time, "base")
            one = [np.ascontiguousarray(run[name][row, ::-1]) for name in NAMES]
            message = types["JointState"](header, ["elbow", "shoulder"], *one[:3])
            writer.write(states, stamp + 300_000, store.serialize_ros1(message, joints))
            if row % 5 == 0:
                message = types["JointState"](header, ["elbow", "shoulder"], np.zeros(0), np.zeros(0), one[3])
                writer.write(commands, stamp + 300_000, store.serialize_ros1(message, joints))
                writer.write(texts, stamp, store.serialize_ros1(types["String"](f"row {row}"), words))
    return path


HUMBLE = """std_msgs/Header header
string[] joint_names
trajectory_msgs/JointTrajectoryPoint reference
trajectory_msgs/JointTrajectoryPoint feedback
trajectory_msgs/JointTrajectoryPoint error
trajectory_msgs/JointTrajectoryPoint output
trajectory_msgs/JointTrajectoryPoint desired
trajectory_msgs/JointTrajectoryPoint actual
string[] multi_dof_joint_names
trajectory_msgs/MultiDOFJointTrajectoryPoint multi_dof_reference
trajectory_msgs/MultiDOFJointTrajectoryPoint multi_dof_feedback
trajectory_msgs/MultiDOFJointTrajectoryPoint multi_dof_error
trajectory_msgs/MultiDOFJointTrajectoryPoint multi_dof_output
trajectory_msgs/MultiDOFJointTrajectoryPoint multi_dof_desired
trajectory_msgs/MultiDOFJointTrajectoryPoint multi_dof_actual
"""
CONTROLLER = "control_msgs/msg/JointTrajectoryControllerState"


def write_controller_states(folder: Path, definition: str = HUMBLE) -> Path:
    """What a trajectory controller says of itself, in a bag that does not say what its messages are made of."""
    path = folder / "bag_of_states"
    store = get_typestore(Stores.ROS2_HUMBLE)
    store.register(get_types_from_msg(definition, CONTROLLER))
    fields = [line.split() for line in definition.splitlines()]
    types, run = store.types, truth()
    empty, lasting = np.zeros(0), types["builtin_interfaces/msg/Duration"](0, 0)
    several = types["trajectory_msgs/msg/MultiDOFJointTrajectoryPoint"]([], [], [], lasting)
    felt = ("feedback", "actual")

    def point(name: str, row: int) -> object:
        own = [np.ascontiguousarray(run[each][row, ::-1]) for each in NAMES]
        numbers = (own[0], own[1], empty, own[2]) if name in felt else (empty, empty, empty, own[3])
        return types["trajectory_msgs/msg/JointTrajectoryPoint"](*numbers, lasting)

    with Writer(path, version=8, storage_plugin=StoragePlugin.SQLITE3) as writer:
        states = writer.add_connection("/arm_controller/state", CONTROLLER, typestore=store)
        for row in range(ROWS):
            stamp = EPOCH_NS + round(1e9 * run["time_s"][row])
            time = types["builtin_interfaces/msg/Time"](stamp // 10**9, stamp % 10**9)
            given = {"header": types["std_msgs/msg/Header"](time, ""), "joint_names": ["elbow", "shoulder"]}
            given |= {name: point(name, row) for kind, name in fields if kind.endswith("/JointTrajectoryPoint")}
            given |= {name: several for kind, name in fields if kind.endswith("/MultiDOFJointTrajectoryPoint")}
            given |= {"multi_dof_joint_names": [], "speed_scaling_factor": 1.0}
            message = types[CONTROLLER](**{name: given[name] for _, name in fields})
            writer.write(states, stamp + 300_000, store.serialize_cdr(message, CONTROLLER))
    with closing(sqlite3.connect(next(path.glob("*.db3")))) as bag:
        bag.execute("DROP TABLE IF EXISTS message_definitions")
        bag.commit()
    return path


def write_mcap_json(folder: Path) -> Path:
    path = folder / "run.mcap"
    run = truth()
    with path.open("wb") as stream:
        writer = McapWriter(stream, compression=CompressionType.ZSTD, chunk_size=20_000)
        writer.start()
        schema = writer.register_schema("joints", "jsonschema", b"{}")
        channel = writer.register_channel("/joints", "json", schema)
        for row in range(ROWS):
            message = {"name": list(JOINTS)} | {
                key: run[name][row].tolist()
                for key, name in zip(("position", "velocity", "effort", "effort_cmd"), NAMES, strict=True)
            }
            stamp = EPOCH_NS + round(1e9 * run["time_s"][row])
            writer.add_message(channel, stamp, json.dumps(message).encode(), stamp)
        writer.finish()
    return path


def write_sage(folder: Path) -> Path:
    path = folder / "motion"
    path.mkdir()
    run = truth()
    (path / "joint_list.txt").write_text("\n".join(reversed(JOINTS)) + "\n")
    tables = {"state_motor": ("StateMotor", NAMES[:3]), "control": ("Control", NAMES[3:])}
    for name, (kind, channels) in tables.items():
        with (path / f"{name}.csv").open("w", newline="") as stream:
            writer = csv.writer(stream)
            heads = ["positions", "velocities", "torques"] if name == "state_motor" else ["torques"]
            writer.writerow(["type", "timestamp", *heads])
            for row in range(ROWS):
                stamp = EPOCH_NS // 1000 + round(1e6 * run["time_s"][row])
                writer.writerow([kind, stamp, *(str(run[channel][row, ::-1].tolist()) for channel in channels)])
    return path


def write_pace(folder: Path) -> Path:
    path = folder / "chirp_data.pt"
    run = truth()
    tensors = {"time": run["time_s"], "dof_pos": run["joint_position"], "des_dof_pos": run["commanded_torque"]}
    torch.save({name: torch.tensor(values, dtype=torch.float32) for name, values in tensors.items()}, path)
    return path


def write_rsr_text(folder: Path) -> Path:
    """Joints 1 and 2 move as shoulder and elbow do; everything else stands still."""
    path = folder / "text"
    path.mkdir()
    observed = np.full((ROWS, 23), 0.1)
    observed[:, :2] = truth()["joint_position"]
    np.savetxt(path / "real_obs.txt", observed, fmt="%.6f", delimiter=",")
    np.savetxt(path / "real_action.txt", np.full((ROWS, 5), 0.2), fmt="%.6f", delimiter=",")
    return path


def _given(**sources: str) -> dict:
    """The lines for arrays whose columns nobody named: which they are, and that the order is the scenario's."""
    units = dict(zip(NAMES, ("rad", "rad/s", "N m", "N m"), strict=True))
    return {
        "channels": {
            name: {"from": source, "columns": ["0", "1"], "unit": units[name]} for name, source in sources.items()
        }
    }


_LEFT_OUT = {"leave_out": True}
_HDF5 = {name: f"obs/robot0_joint_{kind}" for name, kind in zip(NAMES, ("pos", "vel", "torque"), strict=False)}
_ISAAC = {
    name: f"states/articulation/robot/joint_{kind}"
    for name, kind in zip(NAMES, ("position", "velocity", "torque"), strict=False)
}

_ONLY_POSITIONS = dict.fromkeys(NAMES[1:], _LEFT_OUT)

SAMPLES: dict[str, tuple[Callable[[Path], Path], dict, float]] = {
    "csv": (write_csv, {}, 1e-8),
    "parquet": (write_parquet, {}, 1e-12),
    "npz": (
        write_npz,
        _given(
            joint_position="dof_pos",
            joint_velocity="dof_vel",
            measured_torque="dof_torque",
            commanded_torque="torque_cmd",
        ),
        1e-12,
    ),
    "hdf5_robomimic": (write_robomimic, _given(**_HDF5, commanded_torque="actions"), 1e-12),
    "hdf5_isaac": (write_isaac, _given(**_ISAAC, commanded_torque="actions"), 1e-5),
    "lerobot_v3": (write_lerobot_v3, {}, 1e-12),
    "lerobot_v2": (write_lerobot_v2, {"channels": {"joint_position": {"unit": "rad"}}}, 1e-5),
    "rosbag1": (write_bag_of_ros_1, {}, 1e-6),
    "rosbag2_sqlite": (write_bag_sqlite, {}, 1e-6),
    "rosbag2_mcap": (write_bag_mcap, {}, 1e-6),
    "rosbag2_states": (write_controller_states, {}, 1e-6),
    "mcap_json": (write_mcap_json, {"channels": {"joint_position": {"unit": "rad"}}}, 1e-6),
    "sage": (write_sage, {}, 1e-6),
    "pace": (
        write_pace,
        {
            "channels": {
                "joint_position": {"from": "dof_pos", "columns": ["0", "1"]},
                **_ONLY_POSITIONS,
            }
        },
        1e-5,
    ),
    "rsr_text": (
        write_rsr_text,
        {
            "time": {"rate_hz": 500},
            "channels": {
                "joint_position": {"from": "joint_position", "columns": ["joint1", "joint2"]},
                **_ONLY_POSITIONS,
            },
        },
        1e-6,
    ),
}
"""Format -> how it is written, the lines that only the lab can give, and how exact what comes back must be."""
