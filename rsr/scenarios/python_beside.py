"""Python that lies beside a scenario's YAML file: a task, an action head, a function that builds the model.

It runs with the rights of whoever loads it, so only what the YAML names is run, and only out of the scenario's folder.
The folder becomes a package of a private name: `sys.path` stays as it is, a user's `tasks.py` hides nobody else's, and
the files may import each other as `from .helpers import reach`.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from functools import wraps
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

from rsr.common import RsrError, ScenarioError, inside, read_bounded, short

_PREFIX = "_rsr_scenario_"
_LARGEST = 4 << 20
_LOCK = threading.RLock()
"""Of the first import of a folder: two threads that load one task get one module."""


def load_function(folder: Path, reference: str, where: str = "scenario.yaml") -> Any:
    """Load what `FILE.py:NAME` names in a scenario's folder: a function, or an object such as a task.

    A file that was edited since is loaded anew; one that was not is the same module as before.

    Args:
        folder: of the scenario; nothing outside it is imported by its path.
        reference: `task.py:TASK`, or `model/arm.py:build` for a file in a folder below.
        where: what names the reference, for errors.

    Raises:
        ScenarioError: there is no such file or name, or the file raises; with its line.

    Examples:
        >>> load_function(Path("my_arm"), "task.py:TASK")  # doctest: +SKIP
    """
    file, _, name = reference.partition(":")
    if not (file.endswith(".py") and name.isidentifier()):
        raise _refused(short(reference), "FILE.py:NAME, such as task.py:TASK", where)
    try:
        path = inside(folder, file)
    except (OSError, ValueError) as error:
        raise _refused(short(file), f"a file in {folder} ({' '.join(str(error).split())})", where) from error
    module = _module(Path(folder).resolve(), path, where)
    if not hasattr(module, name):
        known = ", ".join(sorted(key for key in vars(module) if not key.startswith("_"))) or "nothing"
        next_step = f"Name it so in {file}, or correct the reference to it."
        raise _refused(f"no '{name}' in {file}", f"one of {known}", where, next_step)
    return getattr(module, name)


def blamed(function: Callable[..., Any], folder: Path, where: str) -> Callable[..., Any]:
    """Wrap a user's function: what it raises becomes a `ScenarioError` with the file and line."""

    @wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        try:
            return function(*arguments, **named)
        except RsrError:
            raise
        except Exception as error:
            raise _raised(error, Path(folder).resolve(), where) from error

    return call


def place_of(error: BaseException, folder: Path) -> str:
    """Say where in the folder's Python an error arose: `task.py, line 12`; empty where it did not arise there."""
    if isinstance(error, SyntaxError) and error.filename and Path(error.filename).is_relative_to(folder):
        return f"{Path(error.filename).relative_to(folder)}, line {error.lineno}"
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename).is_absolute() and Path(frame.filename).is_relative_to(folder)
    ]
    return f"{Path(frames[-1].filename).relative_to(folder)}, line {frames[-1].lineno}" if frames else ""


def _module(folder: Path, path: Path, where: str) -> ModuleType:
    parts = path.relative_to(folder).with_suffix("").parts
    if not all(part.isidentifier() for part in parts):
        raise _refused(short("/".join(parts)), "a file name of letters, digits and '_', as Python imports it", where)
    with _LOCK:
        try:
            package = _package(folder)
            return importlib.import_module(".".join((package, *parts)))
        except RsrError:
            raise
        except Exception as error:
            raise _raised(error, folder, where) from error


def _package(folder: Path) -> str:
    """Name the private package of a folder, with the files that it has now; make it if there is none."""
    digest = hashlib.sha256(str(folder).encode())
    for path in python_files(folder):
        digest.update(f"{path.relative_to(folder)}\n".encode())
        digest.update(read_bounded(path, _LARGEST))
    name = _PREFIX + digest.hexdigest()[:16]
    if name not in sys.modules:
        package = ModuleType(name)
        package.__path__ = [str(folder)]
        sys.modules[name] = package
    return name


def python_files(folder: Path) -> list[Path]:
    """Python in a scenario's folder and below, hidden folders (`.venv`, `.git`) left out."""
    found = sorted(folder.rglob("*.py"))
    return [path for path in found if not any(part.startswith(".") for part in path.relative_to(folder).parts)]


class _Source(SourceFileLoader):
    """A loader that keeps no bytecode: `__pycache__` in the folder would change the scenario that a stage reads."""

    def path_stats(self, path: str) -> Any:
        raise OSError(f"no bytecode is kept of {path}")


class _Beside(MetaPathFinder):
    """Finds the modules of private packages, and nothing else."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith(_PREFIX) or not path:
            return None
        place = Path(path[0]) / fullname.rpartition(".")[2]
        if place.with_suffix(".py").is_file():
            file = str(place.with_suffix(".py"))
            return importlib.util.spec_from_file_location(fullname, file, loader=_Source(fullname, file))
        if place.is_dir():
            spec = ModuleSpec(fullname, None, is_package=True)
            spec.submodule_search_locations = [str(place)]
            return spec
        return None


sys.meta_path.append(_Beside())


def _raised(error: BaseException, folder: Path, where: str) -> ScenarioError:
    words = " ".join(f"{type(error).__name__}: {error}".split())[:300]
    place = place_of(error, folder)
    return ScenarioError(
        got=words,
        expected="Python that runs",
        where=f"{where}: {place}" if place else where,
        next_step="Correct the file there.",
    )


def _refused(
    got: str, expected: str, where: str, next_step: str = "Correct the scenario's YAML file."
) -> ScenarioError:
    return ScenarioError(got=got, expected=expected, where=where, next_step=next_step)
