"""Hostile files are tried out in one child process with limits; what each cost, opened and said comes back as JSON.

`python -m tests.hostile_trials MODULE FOLDER` runs every case of `MODULE.CASES`: name -> function of (folder, outside),
which makes the file and returns what reads it. `outside` has a pipe that never ends and a secret; nothing in it may be
opened.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

Case = Callable[[Path, Path], Callable[[], object]]
MEMORY_MB, TIME_S = 2048, 20
_SAFETY_BYTES = 4 << 30
_PATIENCE_S = 600


def tried(module: str, folder: Path) -> dict[str, dict[str, Any]]:
    """Run all cases of a module in a child; name -> its record. A case that the child died over has none."""
    command = [sys.executable, "-m", "tests.hostile_trials", module, str(folder)]
    root = Path(__file__).parents[1]
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache")}
    done = subprocess.run(
        command, cwd=root, env=environment, capture_output=True, text=True, timeout=_PATIENCE_S, check=False
    )
    records = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {record["name"]: record for record in records} | {"": {"code": done.returncode, "said": done.stderr[-3000:]}}


def assert_harmless(records: dict[str, dict[str, Any]], name: str) -> None:
    """Within 2 GB and 20 CPU-seconds, refused in a sentence, and nothing opened that lies outside."""
    assert name in records, f"the process ended over it: {records['']}"
    record = records[name]
    assert record["refused"], f"{record['error']}: {record['words']}"
    assert record["opened"] == []
    assert record["memory_mb"] < MEMORY_MB
    assert record["cpu_s"] < TIME_S
    assert 0 < len(record["words"]) < 10_000
    assert "Traceback" not in record["words"]


class _Late(BaseException):
    """Took too long; no Exception, so that nothing mistakes it for damage of the file."""


def _main(module: str, root: Path) -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (_SAFETY_BYTES, _SAFETY_BYTES))
    cases: dict[str, Case] = importlib.import_module(module).CASES
    opened: list[str] = []
    outside = root / "outside"
    outside.mkdir()
    (outside / "secret.bin").write_bytes(b"secret" * 100)
    os.mkfifo(outside / "pipe")

    def watch(event: str, arguments: tuple) -> None:
        if event == "open" and isinstance(arguments[0], str | bytes | os.PathLike):
            path = os.fsdecode(arguments[0])
            if os.path.realpath(path).startswith((str(outside), "/etc/passwd", "/dev/zero", "/dev/random")):
                opened.append(path)

    signal.signal(signal.SIGALRM, _alarm)
    watching = False
    for number, (name, make) in enumerate(cases.items()):
        folder = root / f"case-{number}" / "in"
        folder.mkdir(parents=True)
        read = make(folder, outside)
        if not watching:
            sys.addaudithook(watch)
            watching = True
        opened.clear()
        sys.stdout.write(json.dumps({"name": name, **_record(read), "opened": list(opened)}) + "\n")
        sys.stdout.flush()


def _record(read: Callable[[], object]) -> dict[str, Any]:
    from rsr.common.errors import RsrError

    Path("/proc/self/clear_refs").write_text("5")  # the peak of memory begins anew
    began_s, began_cpu_s = time.monotonic(), time.process_time()
    signal.alarm(2 * TIME_S)  # a machine that is busy is slow; what waits for a pipe waits for ever
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found: BaseException | None = None
            words = f"was taken in: {read()}"[:300]
    except BaseException as error:
        found, words = error, str(error)
    signal.alarm(0)
    return {
        "refused": isinstance(found, RsrError),
        "error": type(found).__name__,
        "words": words[:20_000],
        "time_s": time.monotonic() - began_s,
        "cpu_s": time.process_time() - began_cpu_s,
        "memory_mb": _peak_mb(),
    }


def _alarm(*_: object) -> None:
    raise _Late


def _peak_mb() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) // 1024


if __name__ == "__main__":
    _main(sys.argv[1], Path(sys.argv[2]))
