"""A hundred recordings, documents and exports that nobody should send; each made by a few lines."""

from __future__ import annotations

import json
import os

import h5py
import pyarrow as pa
import pyarrow.parquet as pq

from rsr.config import load_config
from rsr.realities.robot_file import load_robot_file
from rsr.sessions.ingest.mapping import read_lines
from tests.hostile_trials import Case
from tests.sessions.hostile_documents import YAMLS, document, export, large, linked, mapping, network, piped, read_pipe
from tests.sessions.hostile_recordings import (
    MESSAGES,
    NESTED,
    TOPIC,
    TOPICS,
    bytes_of_zeros,
    chunked,
    circle,
    database,
    dropped,
    endless_records,
    fan,
    folder,
    hdf5,
    ingested,
    lerobot,
    lying_record,
    many,
    mcap,
    member,
    messages,
    npz,
    pace,
    torch,
    tosses,
    view,
    virtual,
    zip_of_folders,
)
from tests.sessions.hostile_sessions import (
    CARD,
    DATA,
    DEEP,
    INFO,
    MB,
    SUMS,
    bound_socket,
    card,
    listing,
    placed,
    replaced,
    sparse,
    summed,
    text,
    zeros,
)

CASES: dict[str, Case] = {
    "listed: /etc/passwd": listing("/etc/passwd"),
    "listed: /dev/zero": listing("/dev/zero"),
    "listed: /dev/random": listing("/dev/random"),
    "listed: a pipe outside": listing(lambda s, o: str(o / "pipe")),
    "listed: a secret outside": listing(lambda s, o: str(o / "secret.bin")),
    "listed: a secret, by ..": listing(lambda s, o: os.path.relpath(o / "secret.bin", s)),
    "listed: a pipe inside": listing(placed("p", lambda path, o: os.mkfifo(path))),
    "listed: a socket": listing(placed("s", bound_socket)),
    "listed: a link out": listing(placed("l", lambda path, o: path.symlink_to(o / "secret.bin"))),
    "listed: a link to a pipe": listing(placed("l", lambda path, o: path.symlink_to(o / "pipe"))),
    "listed: below a link out": listing(lambda s, o: (s / "d").symlink_to(o) or "d/secret.bin"),
    "listed: links in a circle": listing(placed("l", lambda path, o: path.symlink_to(path))),
    "listed: a folder": listing("meta"),
    "listed: nothing": listing(""),
    "listed: a dot": listing("."),
    "listed: NUL": listing("a\0b"),
    "listed: a name of 5,000": listing("x" * 5000),
    "listed: one file twice": listing("meta/../" + INFO),
    "listed: a sum that is none": listing(INFO, {"a": 1}),
    "listed: a sparse file of 3 GB": listing(placed("s", sparse(3 << 30))),
    "sums: a list": replaced(SUMS, text('{"files": [1]}')),
    "sums: deep": replaced(SUMS, text(DEEP)),
    "sums: no text": replaced(SUMS, text(b"\xff\xfe\x00")),
    "sums: 100 MB": replaced(SUMS, sparse(100 * MB)),
    "sums: a pipe": replaced(SUMS, lambda path, o: os.mkfifo(path)),
    "sums: a link to a pipe": replaced(SUMS, lambda path, o: path.symlink_to(o / "pipe")),
    "card: a pipe": replaced(CARD, lambda path, o: os.mkfifo(path)),
    "card: a link out": replaced(CARD, lambda path, o: path.symlink_to(o / "secret.bin")),
    "card: deep": summed(CARD, text('{"format": ' + DEEP)),
    "card: a scenario by path": card(lambda d: d["card"].update(scenario="/etc/passwd")),
    "card: a scenario by ..": card(lambda d: d["card"].update(scenario="../../outside/pipe")),
    "card: a session by ..": card(lambda d: d["card"].update(session="../x")),
    "card: a time step in words": card(lambda d: d["card"].update(control_dt_s="soon")),
    "card: a time step below 0": card(lambda d: d["card"].update(control_dt_s=-1)),
    "card: columns of numbers": card(lambda d: d["channels"][0].update(columns=[1, 2])),
    "card: columns of a number": card(lambda d: d["channels"][0].update(columns=5)),
    "card: a channel by path": card(lambda d: d["channels"][0].update(name="../x")),
    "card: gains in a list": card(lambda d: d["card"].update(gains=[1])),
    "card: limits in words": card(lambda d: d["card"].update(limits={"a": "b"})),
    "card: no channels": card(lambda d: d.pop("channels")),
    "card: a robot of lists": card(lambda d: d["card"].update(robot=[[1]])),
    "card: a format of 1 MB": card(lambda d: d.update(format="x" * MB)),
    "data: a pipe": replaced(DATA, lambda path, o: os.mkfifo(path)),
    "data: sparse 3 GB": replaced(DATA, sparse(3 << 30)),
    "data: packed zeros": summed(DATA, lambda path, o: zeros(path, 64 * MB, 8)),
    "data: no parquet": summed(DATA, text(b"PAR1" + bytes(1000) + b"PAR1")),
    "hdf5: links in a circle": hdf5(circle),
    "hdf5: a fan of links": hdf5(fan),
    "hdf5: 80,000 links to one array": hdf5(many),
    "hdf5: `data` is a link to a pipe": hdf5(lambda f, o: f.update({"data": h5py.ExternalLink(str(o / "pipe"), "/")})),
    "hdf5: links to a secret": hdf5(lambda f, o: f.update({"x": h5py.ExternalLink(str(o / "secret.bin"), "/")})),
    "hdf5: storage outside": hdf5(
        lambda f, o: f.create_dataset("x", (9,), "f8", external=[(str(o / "secret.bin"), 0, h5py.h5f.UNLIMITED)])
    ),
    "hdf5: a chunk of 2 GB": hdf5(chunked),
    "hdf5: 1e12 rows": hdf5(lambda f, o: f.create_dataset("x", (10**12,), "f8", chunks=(1000,))),
    "hdf5: a million columns": hdf5(lambda f, o: f.create_dataset("x", (10, 10**6), "i1", chunks=(1, 1000))),
    "hdf5: nothing of it": ingested("run.h5", text(b"\x89HDF\r\n\x1a\n" + b"\xff" * 4000)),
    "hdf5: a virtual array of a secret": hdf5(virtual),
    "ros1: a header of 4 GB": ingested("run.bag", text(b"#ROSBAG V2.0\n" + b"\xf0\xff\xff\xff" + bytes(100))),
    "ros1: nothing of it": ingested("run.bag", text(b"#ROSBAG V2.0\n")),
    "mcap: chunks of zeros": mcap(endless_records, chunk_size=20 * MB),
    "mcap: a record of 2**62 bytes": ingested("run.mcap", lying_record),
    "mcap: empty messages in arrays of arrays": mcap(
        lambda w: messages(w, b"\0\1\0\0" + bytes(64), kind="p/msg/X", text=NESTED, encoding="cdr", schema="ros2msg")
    ),
    "mcap: a definition of 2 MB": mcap(
        lambda w: messages(w, b"\0\1\0\0", kind="p/msg/X", text=b"#" * 2 * MB, encoding="cdr", schema="ros2msg")
    ),
    "mcap: deep JSON": mcap(lambda w: messages(w, DEEP.encode())),
    "mcap: JSON of a million keys": mcap(
        lambda w: messages(w, json.dumps({f"k{i}": i for i in range(10**5)}).encode())
    ),
    "mcap: JSON of words": mcap(lambda w: messages(w, b'{"a": "b"}')),
    "mcap: unknown encoding": mcap(lambda w: messages(w, b"x", encoding="protobuf")),
    "db3: messages without end": database(
        TOPICS, TOPIC, view("messages", topic_id="1", timestamp="x", data="zeroblob(9000000)")
    ),
    "db3: topics without end": database(MESSAGES, view("topics", id="x", name="x", type="x", serialization_format="x")),
    "db3: definitions without end": database(
        TOPICS,
        TOPIC,
        MESSAGES,
        view("message_definitions", topic_type="x", encoding="x", encoded_message_definition="x"),
    ),
    "db3: computed messages": database(
        TOPICS,
        TOPIC,
        "CREATE TABLE messages(topic_id, timestamp, data BLOB GENERATED ALWAYS AS (zeroblob(200000000)) VIRTUAL)",
    ),
    "db3: a virtual table": database(
        TOPICS, TOPIC, "CREATE VIRTUAL TABLE messages USING fts5(topic_id, timestamp, data)"
    ),
    "db3: no database": ingested("run.db3", text(b"SQLite format 3\0" + b"\xff" * 4000)),
    "npz: bytes that become floats": npz(bytes_of_zeros),
    "npz: 20,000 arrays": npz(
        lambda a: [a.writestr(f"x{i}.npy", member((2,), content=bytes(16))) for i in range(20_000)]
    ),
    "npz: a shape below 0": npz(lambda a: a.writestr("x.npy", member((-5, 3)))),
    "npz: more than the file has": npz(lambda a: a.writestr("x.npy", member((10**6, 4), content=bytes(100)))),
    "npz: a header of code": npz(
        lambda a: a.writestr("x.npy", b"\x93NUMPY\1\0\x20\0" + b"__import__('os')._exit(7)      \n")
    ),
    "parquet: zeros without number": ingested("run.parquet", lambda path, o: zeros(path, 4 * MB, 40)),
    "parquet: names twice": ingested(
        "run.parquet", lambda path, o: pq.write_table(pa.Table.from_arrays([pa.array([1.0])] * 2, ["a", "a"]), path)
    ),
    "parquet: words": ingested("run.parquet", lambda path, o: pq.write_table(pa.table({"a": ["x", "y"]}), path)),
    "csv: a million columns": ingested("run.csv", text("a," * 10**6 + "\n" + "1," * 10**6 + "\n")),
    "csv: 300 MB without a line": ingested("run.csv", sparse(300 * MB)),
    "csv: nothing": ingested("run.csv", text("")),
    "csv: a quote that never closes": ingested("run.csv", text('a,b\n"' + "1,2\n" * 3_000_000)),
    "text: 900 MB without a line": ingested(
        "run", lambda path, o: path.mkdir() or sparse(900 * MB)(path / "real_obs.txt", o)
    ),
    "text: words": ingested("run", folder(real_obs__txt="nan,inf\n")),
    "sage: deep brackets": ingested(
        "run",
        folder(
            control__csv='type,timestamp,positions\nCONTROL,0,"' + "[" * 50_000 + '"\n',
            state_motor__csv="a\n",
            joint_list__txt="a",
        ),
    ),
    "sage: a million joints": ingested(
        "run", folder(control__csv="a\n", state_motor__csv="a\n", joint_list__txt="\n".join(map(str, range(10**6))))
    ),
    "pace: a tensor of stride 0": ingested("run.pt", torch(lambda t: pace(t, dof_pos=t.zeros(1, 1).expand(10**9, 6)))),
    "pace: words": ingested("run.pt", torch(lambda t: pace(t, time="now"))),
    "pace: a sparse tensor": ingested("run.pt", torch(lambda t: pace(t, dof_pos=t.zeros(9, 2).to_sparse()))),
    "tosses: a tensor of stride 0": tosses(torch(lambda t: t.zeros(1).expand(19 * 10**8))),
    "lerobot: a list that names a pipe": ingested("run", lerobot(sums=lambda o: "data/../../../../outside/pipe")),
    "lerobot: a list that names a secret": ingested(
        "run", lerobot(sums=lambda o: "data/../../../../outside/secret.bin")
    ),
    "lerobot: a feature of 10**12": ingested(
        "run", lerobot({"features": {"a": {"dtype": "float32", "shape": [10**12]}}})
    ),
    "lerobot: a shape in words": ingested("run", lerobot({"features": {"a": {"dtype": "float32", "shape": ["x"]}}})),
    "lerobot: features in a list": ingested("run", lerobot({"features": [1]})),
    "lerobot: no fps": ingested("run", lerobot({"fps": "x"})),
    "lerobot: deep": ingested("run", lerobot(DEEP)),
    "archive: 100,000 empty folders": dropped(lambda path, o: zip_of_folders(path), "a.zip"),
    "archive: a drop that is a pipe": dropped(lambda path, o: os.mkfifo(path), "session-001"),
    "archive: a drop that is a link to a folder with a pipe": dropped(
        lambda path, o: path.symlink_to(o), "session-001"
    ),
    "export: a network by ..": network("../../outside/secret.bin"),
    "export: /etc/passwd": network("/etc/passwd"),
    "export: /dev/zero": network("/dev/zero"),
    "export: a pipe": network(piped),
    "export: a link out": network(linked),
    "export: 3 GB": network(large),
    "export: no network": network("policy.onnx"),
    "export: a name that is a list": export(lambda d, f, o: d["onnx"].update(file=["policy.onnx"])),
    "export: a scenario by path": export(lambda d, f, o: d.update(scenario=str(o / "pipe"))),
    "export: deep": export(lambda d, f, o: DEEP),
    "export: a list": export(lambda d, f, o: "[1]"),
    **{f"mapping: {name}": mapping(content) for name, content in YAMLS.items() if name != "2 MB"},
    "mapping: a format in a list": mapping("format: [x]"),
    "mapping: channels in a list": mapping("channels: [1]"),
    "mapping: a pipe": read_pipe(read_lines),
    "mapping: 2 MB": mapping(YAMLS["2 MB"]),
    **{f"settings: {name}": document("params.yaml", load_config, content) for name, content in YAMLS.items()},
    "settings: a pipe": read_pipe(load_config),
    **{f"robot: {name}": document("robot.yaml", load_robot_file, content) for name, content in YAMLS.items()},
    "robot: a pipe": read_pipe(load_robot_file),
}
