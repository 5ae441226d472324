"""`python -m toy.kills NEW_FOLDER ITERATIONS POINT ...`: kill a loop before its POINT-th change to the disk, go on.

What the second start comes to must be what a loop that nobody disturbed comes to.
A POINT may be written 3/16: the third of sixteen points spread evenly over the loop. Every state in which a kill can
leave the disk lies between two changes, so the points cover all of them but files torn in the middle of a write.
Each loop runs in a fork of this process, which has imported everything and started no thread.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from forks import in_fork, say

from toy.bare import find_faults, fingerprint, run_bare_loop

_CHANGES = {
    "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.chmod", "os.truncate",
    "subprocess.Popen", "sqlite3.connect",
}  # fmt: skip
_ITERATIONS = int(sys.argv[2])


def _changes_disk(event: str, arguments: tuple) -> bool:
    if event == "open":
        return bool(arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)) and "__pycache__" not in str(arguments[0])
    return event in _CHANGES


def _killed_at(point: int, root: Path) -> None:
    count = 0

    def watch(event: str, arguments: tuple) -> None:
        nonlocal count
        if _changes_disk(event, arguments):
            count += 1
            if count == point:
                say(f"killed before {event} {arguments[0]}")
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)
    run_bare_loop(root, _ITERATIONS)


def _count_changes(root: Path, note: Path) -> None:
    count = 0

    def watch(event: str, arguments: tuple) -> None:
        nonlocal count
        count += _changes_disk(event, arguments)

    sys.addaudithook(watch)
    run_bare_loop(root, _ITERATIONS)
    note.write_text(str(count))


def _check(root: Path, expected: dict[str, str]) -> None:
    problems = find_faults(root, _ITERATIONS)
    found = fingerprint(root)
    problems += [f"differs: {name}" for name in expected.keys() | found.keys() if expected.get(name) != found.get(name)]
    if problems:
        raise AssertionError("; ".join(problems))


def main() -> int:
    folder = Path(sys.argv[1]).resolve()
    reference = folder / "reference"
    if code := in_fork(lambda: _count_changes(reference, folder / "count")):
        return code
    total, expected, failures = int((folder / "count").read_text()), fingerprint(reference), 0
    say(f"{total} changes to the disk")
    for word in sys.argv[3:]:
        part, _, parts = word.partition("/")
        point = round(total * int(part) / (int(parts) + 1)) if parts else int(part)
        root = folder / f"killed-{point}"
        killed = in_fork(lambda: _killed_at(point, root))  # noqa: B023
        good = killed == -signal.SIGKILL and in_fork(lambda: run_bare_loop(root, _ITERATIONS)) == 0  # noqa: B023
        good = good and in_fork(lambda: _check(root, expected)) == 0  # noqa: B023
        failures += not good
        say(f"point {point}: {'same result' if good else f'FAILED (first run ended with {killed})'}")
    return int(failures > 0)


if __name__ == "__main__":
    raise SystemExit(main())
