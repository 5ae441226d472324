"""Mappings, settings, robots' files and exported policies that nobody should send."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path

from rsr.policies.policy import OnnxPolicy
from rsr.sessions.ingest.mapping import read_lines
from rsr.sessions.ingest.session import ingest
from tests.hostile_trials import Case
from tests.sessions.foreign_files import pendulum, write_csv
from tests.sessions.hostile_sessions import DEEP, MB, sparse


def document(name: str, read: Callable[[Path], object], content: str | bytes) -> Case:
    def make(folder: Path, outside: Path) -> Callable[[], object]:
        path = folder / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return lambda: read(path)

    return make


def mapping(content: str | bytes) -> Case:
    """A mapping file, used for a good recording."""

    def make(folder: Path, outside: Path) -> Callable[[], object]:
        path = folder / "map.yaml"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        good = write_csv(folder)
        return lambda: ingest([good], pendulum(), folder / "out", given=read_lines(path))

    return make


def read_pipe(read: Callable[[Path], object]) -> Case:
    return lambda folder, outside: lambda: read(outside / "pipe")


LAUGHS = "a: &a [1,1,1,1,1,1,1,1,1]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [{','.join(['*' + chr(97 + i)] * 9)}]\n" for i in range(12)
)
YAMLS: dict[str, str | bytes] = {
    "aliases of aliases": LAUGHS,
    "an alias of itself": "format: &x [*x]",
    "deep brackets": "format: " + DEEP,
    "a number base 60": "format: 1" + ":59" * 200_000,
    "2 MB": "#" * (2 * MB),
    "a Python object": "!!python/object/apply:os.system [exit]",
    "no text": bytes(range(256)),
    "a list as key": "? [a]\n: b",
    "a date that is none": "format: 2001-99-99",
    "many keys": "".join(f"k{index}: 1\n" for index in range(40_000)),
}
"""What stands for more than it says, or for nothing, to any loader of YAML."""


def export(change: Callable[[dict, Path, Path], object]) -> Case:
    """An exported policy whose contract was changed."""

    def make(folder: Path, outside: Path) -> Callable[[], object]:
        (folder / "policy.onnx").write_bytes(b"no network")
        sha = hashlib.sha256(b"no network").hexdigest()
        document = {
            "format": "rsr-policy-contract-1", "scenario": "push_cube", "rate_hz": 20.0, "joints": ["a"],
            "observation": [], "channels": [],
            "onnx": {"file": "policy.onnx", "sha256": sha, "input": "observation", "output": "action"},
            "action": {"type": "t", "unit": "rad", "scale": 1, "limit": 1, "lead": 1, "lower": [0], "upper": [1]},
        }  # fmt: skip
        text = change(document, folder, outside)
        (folder / "policy_contract.json").write_text(text if isinstance(text, str) else json.dumps(document))
        return lambda: OnnxPolicy.load(folder)

    return make


def network(name: str | Callable[[Path, Path], str]) -> Case:
    def change(document: dict, folder: Path, outside: Path) -> None:
        document["onnx"]["file"] = name(folder, outside) if callable(name) else name

    return export(change)


def piped(folder: Path, outside: Path) -> str:
    os.mkfifo(folder / "p.onnx")
    return "p.onnx"


def linked(folder: Path, outside: Path) -> str:
    (folder / "l.onnx").symlink_to(outside / "secret.bin")
    return "l.onnx"


def large(folder: Path, outside: Path) -> str:
    sparse(3 << 30)(folder / "s.onnx", outside)
    return "s.onnx"
