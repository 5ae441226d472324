"""A copy of the project as a fresh clone has it, with what is not committed yet."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]


def copy_project(root: Path) -> None:
    """Copy every file that git knows or would add."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=PROJECT, check=True, capture_output=True, text=True).stdout.splitlines()
    for name in (name for name in names if (PROJECT / name).is_file()):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(PROJECT / name, root / name)
