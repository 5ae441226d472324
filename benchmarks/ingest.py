"""Ingesting a bag of 20 topics and 60 minutes: memory and speed beside the bare reader.

    gigabytes                        size of the bag: MCAP, uncompressed, with checksums; made for this run
    messages                         in it: 20 topics of sensor_msgs/JointState, 6 joints (position, velocity, effort)
    peak_memory_mb                   largest resident memory of the process that ingests, MB
    ingest_seconds                   from the file to the stored session: guess, hash, copy the file, resample, write
    bare_reader_seconds              `rosbags` yields every message as bytes; nothing is decoded
    speed_ratio_over_bare_reader     bare_reader_seconds / ingest_seconds
    speed_ratio_over_decoding_reader the same where `rosbags` also deserialises each message (timed on its first part)

Every topic becomes a channel, its positions; no topic is there to be skipped. Each runs in a process of its own, on the
same file, after it was read once. The session is on a grid of 50 ms. --quick: 50 MB.
"""

from __future__ import annotations

import json
import resource
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from _common import Figure, run
from mcap.writer import CompressionType, Writer
from rosbags.rosbag2 import Reader
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

TOPICS, JOINTS, RATE_HZ, MINUTES = 20, 6, 100, 60
CONTROL_DT_S = 0.05
QUICK_SHARE = 0.025
EPOCH_NS = 1_760_000_000_000_000_000
DECODED_MESSAGES = 200_000
TYPE = "sensor_msgs/msg/JointState"
DEFINITION = """std_msgs/Header header
string[] name
float64[] position
float64[] velocity
float64[] effort
================================================================================
MSG: std_msgs/Header
builtin_interfaces/Time stamp
string frame_id
"""


def measure(quick: bool) -> dict[str, Figure]:
    """Write the bag, then time each reader in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="rsr-benchmark-") as name:
        folder = Path(name)
        bag = folder / "bag.mcap"
        messages = write_bag(bag, MINUTES * 60 * (QUICK_SHARE if quick else 1.0))
        child("bare", bag, folder)  # warms the file's pages, for both alike
        bare = child("bare", bag, folder)
        decoding = child("decode", bag, folder)
        ingested = child("ingest", bag, folder)
        size = bag.stat().st_size
    return {
        "gigabytes": size / 1e9,
        "messages": messages,
        "peak_memory_mb": ingested["peak_bytes"] / 1e6,
        "ingest_seconds": ingested["seconds"],
        "bare_reader_seconds": bare["seconds"],
        "speed_ratio_over_bare_reader": bare["seconds"] / ingested["seconds"],
        "speed_ratio_over_decoding_reader": decoding["seconds"] * messages / decoding["messages"] / ingested["seconds"],
        "rows_stored": ingested["rows"],
        "largest_error_rad": ingested["error"],
    }


def write_bag(path: Path, seconds: float) -> int:
    """Write joint states at a steady rate: the message is laid out once, then only its numbers change."""
    names = [f"joint{number}" for number in range(1, JOINTS + 1)]
    template, stamp_at, numbers_at = template_of(names)
    count = round(seconds * RATE_HZ)
    with path.open("wb") as stream:
        writer = Writer(stream, compression=CompressionType.NONE)
        writer.start("ros2")
        schema = writer.register_schema(TYPE, "ros2msg", DEFINITION.encode())
        topics = [writer.register_channel(f"/arm{index:02d}/joint_states", "cdr", schema) for index in range(TOPICS)]
        for row in range(count):
            stamp_ns = EPOCH_NS + row * 10**9 // RATE_HZ
            struct.pack_into("<iI", template, stamp_at, *divmod(stamp_ns, 10**9))
            for index, topic in enumerate(topics):
                struct.pack_into(f"<{JOINTS}d", template, numbers_at, *position(index, row / RATE_HZ).tolist())
                writer.add_message(topic, stamp_ns, bytes(template), stamp_ns)
        writer.finish()
    return count * TOPICS


def position(topic: int, time_s: float) -> np.ndarray:
    """Where the joints of a topic are: a straight line back and forth, so that resampling is exact on its grid."""
    return (time_s % 10.0) * 0.1 + 0.01 * topic + 0.001 * np.arange(JOINTS)


def template_of(names: list[str]) -> tuple[bytearray, int, int]:
    """One serialised message, and where in it the stamp and the positions are."""
    store = get_typestore(Stores.ROS2_HUMBLE)
    kinds = {name.split("/")[-1]: kind for name, kind in store.types.items()}
    marks = np.linspace(1234.5, 1239.5, len(names))
    header = kinds["Header"](kinds["Time"](0x12345678, 0x0BCDEF01), "base")
    message = kinds["JointState"](header, names, marks, np.zeros(len(names)), np.zeros(len(names)))
    content = bytes(store.serialize_cdr(message, TYPE))
    return bytearray(content), content.index(struct.pack("<i", 0x12345678)), content.index(marks.tobytes())


def child(role: str, bag: Path, folder: Path) -> dict[str, float]:
    """Do one part in a process of its own."""
    done = subprocess.run(
        [sys.executable, __file__, "--child", role, str(bag), str(folder)], check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def read_bare(bag: Path) -> dict[str, float]:
    begin, count = time.perf_counter(), 0
    with Reader(bag) as reader:
        for _ in reader.messages():
            count += 1
    return {"seconds": time.perf_counter() - begin, "messages": count}


def read_decoding(bag: Path) -> dict[str, float]:
    store = get_typestore(Stores.EMPTY)
    store.register(get_types_from_msg(DEFINITION, TYPE) | time_type())
    begin, count = time.perf_counter(), 0
    with Reader(bag) as reader:
        for _, _, content in reader.messages():
            store.deserialize_cdr(content, TYPE)
            count += 1
            if count >= DECODED_MESSAGES:
                break
    return {"seconds": time.perf_counter() - begin, "messages": count}


def time_type() -> dict:
    return get_types_from_msg("int32 sec\nuint32 nanosec\n", "builtin_interfaces/msg/Time")


def ingest(bag: Path, folder: Path) -> dict[str, float]:
    from rsr.sessions import Channel, Target, read_session
    from rsr.sessions.ingest import ingest as run_ingest

    joints = tuple(f"joint{number}" for number in range(1, JOINTS + 1))
    channels = tuple(Channel(f"arm{index:02d}_position", joints, "rad", "joint") for index in range(TOPICS))
    begin = time.perf_counter()
    found = run_ingest([bag], Target("arms", CONTROL_DT_S, channels), folder / "data")
    seconds = time.perf_counter() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    episode = read_session(found.folder).episodes[0]
    error = max(
        float(np.abs(episode[channel.name][row] - position(index, episode.time_s[row])).max())
        for index, channel in enumerate(channels)
        for row in range(0, len(episode), 97)
    )
    return {"seconds": seconds, "peak_bytes": peak, "rows": len(episode), "error": error}


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        work, source = sys.argv[2], Path(sys.argv[3])
        figures = {"bare": read_bare, "decode": read_decoding}[work](source) if work != "ingest" else None
        print(json.dumps(figures or ingest(source, Path(sys.argv[4]))))
    else:
        run(measure, __doc__)
