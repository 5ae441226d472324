"""Formats that an installed package adds: entry points of the group `rsr.formats`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = """
import numpy as np
from rsr.sessions.importers import Format, Samples, Stream, held_recording, unreadable

def open_dots(path):
    rows = [line.split(";") for line in path.read_text().splitlines()]
    if not rows or any(len(row) != 5 for row in rows):
        raise unreadable(path, "other rows", "five numbers a row")
    table = np.array(rows, float)
    columns = ("shoulder", "elbow", "shoulder_vel", "elbow_vel")
    units = dict(zip(columns, ("rad", "rad", "rad/s", "rad/s")))
    stream = Stream("table", columns, Samples(table[:, 0], table[:, 1:]), True, units, ("time",))
    return held_recording("dots", path, path.stem, [stream])

FORMAT = Format("dots", "rows of our own rig", lambda path: path.suffix == ".dots", open_dots)
CLASH = Format("csv", "called like another", lambda path: False, open_dots)
"""
INSIDE = """
import sys
from rsr.sessions.importers.formats import open_recording
recording = open_recording(__import__("pathlib").Path(sys.argv[1]))
print(recording.format, recording.streams[0].columns)
"""


def installed(folder: Path, entry: str) -> dict[str, str]:
    """An environment in which the package is installed, as far as Python can tell."""
    (folder / "our_rig.py").write_text(PACKAGE)
    card = folder / "our_rig-1.0.dist-info"
    card.mkdir()
    (card / "METADATA").write_text("Metadata-Version: 2.1\nName: our_rig\nVersion: 1.0\n")
    (card / "entry_points.txt").write_text(f"[rsr.formats]\n{entry}\n")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])}


def run(*words: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, env=env)


def test_a_packages_format_opens_its_files(tmp_path: Path) -> None:
    env = installed(tmp_path, "dots = our_rig:FORMAT")
    (tmp_path / "run.dots").write_text("".join(f"{0.01 * row};0;1;2;3\n" for row in range(50)))
    done = run("-c", INSIDE, str(tmp_path / "run.dots"), env=env)
    assert done.stdout.strip() == "dots ('shoulder', 'elbow', 'shoulder_vel', 'elbow_vel')", done.stderr
    (tmp_path / "bad.dots").write_text("1;2\n")
    assert (
        "got other rows; expected five numbers a row" in run("-c", INSIDE, str(tmp_path / "bad.dots"), env=env).stderr
    )


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("dots = our_rig:MISSING", "AttributeError"),
        ("dots = our_rig:open_dots", "got a function; expected a Format"),
        ("dots = our_rig:CLASH", "got a format called 'csv'"),
    ],
)
def test_a_package_that_is_wrong_is_named(tmp_path: Path, entry: str, words: str) -> None:
    env = installed(tmp_path, entry)
    (tmp_path / "run.csv").write_text("time_s,a\n0,1\n")
    said = run("-c", INSIDE, str(tmp_path / "run.csv"), env=env).stderr
    assert words in said
    assert "entry point 'dots' of rsr.formats" in said
