"""Damage recordings in many ways and ingest them, in a process of its own with a limit on its memory.

    python tests/sessions/fuzzing.py csv,npz 500 0 FOLDER

prints one JSON line a file: what was done to it, and what came of it; at the end the largest memory.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import sys
import warnings
from pathlib import Path

import numpy as np

# Before anything imports pyarrow: its own allocator reserves more than the limit, and every session would be too large.
os.environ["ARROW_DEFAULT_MEMORY_POOL"] = "system"
MEMORY_BYTES = 2 << 30
SECONDS_A_FILE = 60
HUGE = (b"\xff" * 8, b"\x00" * 8, (2**40).to_bytes(8, "little"), (2**31 - 1).to_bytes(4, "little"), b"\xff" * 4)
WORDS = ("hello", "1e400", "nan", "-inf", "9" * 5000, "", "[1, 2", '"', "\x00\x01", "0x1F", "1;2;3")


def damage(path: Path, random: np.random.Generator) -> str:
    """Spoil one file of a recording; returns how."""
    files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    weights = np.array([max(1, file.stat().st_size) for file in files], float) ** 0.5
    file = files[int(random.choice(len(files), p=weights / weights.sum()))]
    content = bytearray(file.read_bytes())
    kinds = ("cut", "flip", "flip", "huge", "delete", "insert", "word", "other type")
    kind = str(random.choice(kinds))
    at = int(random.integers(0, max(1, len(content))))
    if kind == "cut":
        del content[at:]
    elif kind == "flip":
        for place in random.integers(0, max(1, len(content)), int(random.integers(1, 12))):
            content[place] ^= int(random.integers(1, 256))
    elif kind == "huge":
        at = int(random.integers(0, max(1, min(len(content), 4096 if random.random() < 0.7 else len(content)))))
        word = HUGE[int(random.integers(len(HUGE)))]
        content[at : at + len(word)] = word
    elif kind == "delete":
        del content[at : at + int(random.integers(1, 400))]
    elif kind == "insert":
        content[at:at] = random.bytes(int(random.integers(1, 400)))
    elif kind == "word":
        word = WORDS[int(random.integers(len(WORDS)))].encode()
        content[at : at + int(random.integers(0, 12))] = word
    else:
        content = bytearray(random.bytes(200) if random.random() < 0.5 else b"PK\x03\x04 not what it says\n")
    file.write_bytes(content)
    return f"{kind} {file.name}"


def distance(values: dict[str, np.ndarray], truth: dict[str, np.ndarray]) -> float:
    """How far a stored episode is from the truth, wherever in it the episode began."""
    names = [name for name in values if name in truth]
    length = len(values[names[0]])
    total = len(truth["time_s"])
    if length > total:
        return float("inf")
    return min(
        max(float(np.abs(values[name][:-1] - truth[name][start : start + length - 1]).max()) for name in names)
        for start in range(total - length + 1)
    )


def peak_bytes() -> int:
    """Largest memory of this program. `getrusage` would say that of the process that started it, if that was larger."""
    status = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line.split()[1] for line in status if line.startswith("VmHWM:")))


def run(names: list[str], count: int, seed: int, folder: Path) -> None:
    from foreign_files import SAMPLES, pendulum, truth

    pendulum(), truth()
    wholes = {}
    for name in names:
        (folder / name).mkdir()
        wholes[name] = SAMPLES[name][0](folder / name)
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))
    for name in names:
        for index in range(count):
            random = np.random.default_rng((seed, index, *name.encode()))
            say({"format": name, "index": index, **one(name, wholes[name], folder / "trial", random)})
    say({"peak_bytes": peak_bytes()})


def one(name: str, whole: Path, trial: Path, random: np.random.Generator) -> dict:
    """Spoil a copy of a recording and ingest it; returns what was done and what came of it."""
    from foreign_files import SAMPLES, pendulum, truth

    from rsr.common.errors import RsrError
    from rsr.sessions import read_session
    from rsr.sessions.ingest.session import ingest

    spoilt = trial / whole.name
    trial.mkdir()
    shutil.copytree(whole, spoilt) if whole.is_dir() else shutil.copy(whole, spoilt)
    what = damage(spoilt, random)
    signal.alarm(SECONDS_A_FILE)
    try:
        found = ingest([spoilt], pendulum(), trial / "out", given=SAMPLES[name][1], keep="hash")
        session = read_session(found.folder)
        far = max(distance(dict(episode.values), truth()) for episode in session.episodes)
        outcome = {"outcome": "stored", "said": list(found.damage), "far": far, "episodes": found.episodes}
    except RsrError as error:
        outcome = {"outcome": "refused", "said": [str(error)]}
    signal.alarm(0)
    shutil.rmtree(trial)
    return {"what": what, **outcome}


def say(line: dict) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    warnings.simplefilter("error")
    run(sys.argv[1].split(","), int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
