"""Virtual environments that see the packages of the tests, but not the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

_PIP = ("-m", "pip", "--quiet", "install", "--no-deps", "--no-index", "--no-build-isolation")


def fresh_venv(folder: Path) -> Path:
    """Make one; returns its Python.

    The folders that its .pth file names are not searched for more such files: an editable rsr stays unseen.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    seen = [path for path in sys.path if Path(path).name == "site-packages"]
    (site_packages(folder) / "of_the_tests.pth").write_text("\n".join(seen) + "\n")
    return folder / "bin" / "python"


def site_packages(venv: Path) -> Path:
    return venv / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"


def install(python: Path, *what: str | Path, cwd: Path | None = None) -> None:
    """Install without dependencies and without network."""
    subprocess.run([python, *_PIP, *what], check=True, cwd=cwd, env=surroundings(python))


def surroundings(python: Path) -> dict[str, str]:
    """The environment of somebody who works in that virtual environment."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PREFECT_API_URL")}
    return {**kept, "PATH": f"{python.parent}:{os.environ['PATH']}"}
