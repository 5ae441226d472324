"""An MJCF from outside: the files that it reads are found and bounded, and it is compiled where it can do no harm.

Built-in scenes are simply compiled. Of any other one, nothing is opened that lies outside the scenario's folder.
"""

from __future__ import annotations

import hashlib
import math
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from xml.parsers import expat

import mujoco
import numpy as np

from rsr.common import ScenarioError, WorkspaceError, hash_bounded, inside, read_bounded, short, write_bytes
from rsr.scenarios.models._compile_alone import CPU_S
from rsr.scenarios.models.mjcf import COMPILE_ERRORS, compiled
from rsr.scenarios.scenario import Scenario

_LARGEST_XML = 16 << 20
_LARGEST_FILE = 256 << 20
_MOST_FILES = 2000
_MOST_ELEMENTS = 200_000
_DEEPEST = 100
_DIRECTORIES = ("meshdir", "texturedir", "assetdir")
_HANGS_S = 600
"""After which a trial that takes no processor time is ended; a busy machine may give it little for long."""


def compiled_from_outside(folder: Path, name: object, where: str) -> mujoco.MjModel:
    """Compile the scene that a scenario's file names, once a trial in a process of its own did no harm.

    Args:
        folder: of the scenario; nothing outside it is read.

    Raises:
        ScenarioError: a file leads out or is too large, or MuJoCo does not compile the scene within its limits.
    """
    try:
        mjcf = inside(folder, name)
        digest = _digest(folder, files_of(folder, mjcf))
        if not _tried(digest).is_file():
            _try(mjcf)
            _remember(digest)
    except (OSError, ValueError) as error:
        raise outside_error(error, name, where) from error
    return compiled(mjcf, where)


def compiled_text(folder: Path, mjcf: Path, text: str, where: str) -> mujoco.MjSpec:
    """Parse an MJCF that was made from a scenario's file and additions, once a trial did no harm."""
    try:
        files = _digest(folder, files_of(folder, mjcf.resolve()))
        digest = hashlib.sha256(f"{files} {text}".encode()).hexdigest()
        if not _tried(digest).is_file():
            with tempfile.TemporaryDirectory(prefix="rsr-compile-") as apart:
                trial = Path(apart) / mjcf.with_suffix(".xml").name
                trial.write_text(text)
                _try(trial)
            _remember(digest)
        return mujoco.MjSpec.from_string(text)
    except COMPILE_ERRORS as error:
        raise outside_error(error, f"{mjcf.name} with `adds`", where) from error


def outside_error(error: Exception, name: object, where: str) -> ScenarioError:
    """What MuJoCo, or the reading of files, says of a scene."""
    return ScenarioError(
        got=" ".join(str(error).split())[:400],
        expected="an MJCF that MuJoCo compiles, with all its files in the scenario's folder",
        where=f"{where}, mjcf: {Path(name).name if isinstance(name, str) else short(name)}",
        next_step="Correct `adds`, or the MJCF." if str(name).endswith("`adds`") else "Correct the MJCF.",
    )


def is_finite(scenario: Scenario) -> bool:
    """Whether the nominal parameters give a model that can be simulated: no inertia that is scaled from a mass of 0."""
    with np.errstate(all="ignore"):
        model = scenario.model(scenario.space.nominal)
        numbers = np.concatenate([model.body_mass, model.body_inertia.ravel(), model.opt.gravity, model.dof_damping])
    return bool(np.isfinite(numbers).all())


def files_of(folder: Path, mjcf: Path) -> tuple[Path, ...]:
    """Every file in the folder that the MJCF may read, itself first.

    Raises:
        ValueError: one leads out of the folder, is no regular file, or is too large.
    """
    found: dict[Path, None] = {mjcf: None}
    documents, directories = [mjcf], {""}
    read: list[tuple[Path, _Names]] = []
    while documents:
        document = documents.pop()
        names = _names(document)
        read.append((document, names))
        directories |= names.directories
        for name in names.documents:
            for path in _candidates(folder, mjcf, document, {""}, name):
                if path not in found:
                    found[path] = None
                    documents.append(path)
        if len(found) > _MOST_FILES:
            raise ValueError(f"more than {_MOST_FILES} files")
    for document, names in read:
        for name in names.assets:
            found |= dict.fromkeys(_candidates(folder, mjcf, document, directories, name))
    return tuple(found)


@dataclass
class _Names:
    """Files that one XML file names: further XML, meshes and pictures, and the directories where it looks for those."""

    documents: set[str] = field(default_factory=set)
    assets: set[str] = field(default_factory=set)
    directories: set[str] = field(default_factory=set)


def _names(path: Path) -> _Names:
    """Read an XML file without building anything of it; entities and endless nesting end the reading."""
    names, count = _Names(), 0
    copies = [1]  # of each element that is open, as <replicate> makes them

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal count
        copies.append(copies[-1] * _repeats(tag, attributes))
        count += copies[-1]
        if len(copies) > _DEEPEST or count > _MOST_ELEMENTS:
            raise ValueError(
                f"{path.name} with more than {_DEEPEST} levels or {_MOST_ELEMENTS} elements, copies counted"
            )
        for key, value in attributes.items():
            if key in _DIRECTORIES:
                names.directories.add(value)
            elif key.startswith("file") and value:
                (names.documents if tag in ("include", "model") else names.assets).add(value)

    def end(tag: str) -> None:
        copies.pop()

    def declared(*_: object) -> None:
        raise ValueError(f"{path.name} with a DOCTYPE, which MJCF has no use for")

    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler, parser.StartDoctypeDeclHandler = start, end, declared
    try:
        parser.Parse(read_bounded(path, _LARGEST_XML), True)
    except expat.ExpatError as error:
        raise ValueError(f"XML Error in {path.name}: {error}") from error
    return names


def _repeats(tag: str, attributes: dict[str, str]) -> int:
    """How many copies an element makes of what is in it, or how many bodies of itself."""
    if tag not in ("replicate", "flexcomp", "composite"):
        return 1
    counts = [int(float(word)) for word in attributes.get("count", "1").split()]
    return math.prod(max(1, number) for number in counts)


def _candidates(folder: Path, mjcf: Path, document: Path, directories: set[str], name: str) -> Iterator[Path]:
    """Wherever MuJoCo might look for a file: from the scene, from the file that names it, in the stated directories."""
    name = name.replace("\\", "/")
    for start in {mjcf.parent, document.parent}:
        for directory in directories:
            for each in {name, PurePosixPath(name).name}:  # the second with `strippath`
                wanted = os.path.join(directory.replace("\\", "/"), each)  # noqa: PTH118 - the second may be absolute
                try:
                    path = inside(folder, wanted, start)
                    if path.stat().st_size > _LARGEST_FILE:
                        raise ValueError(f"{short(name)} of {path.stat().st_size} bytes")
                    yield path
                except FileNotFoundError:
                    continue
                except ValueError:
                    if Path(wanted).is_absolute() or os.path.lexists(start / wanted):
                        raise


def _digest(folder: Path, files: tuple[Path, ...]) -> str:
    """Of all that the compiled scene depends on."""
    digest = hashlib.sha256(mujoco.__version__.encode())
    for path in files:
        digest.update(f"{path.relative_to(folder.resolve())} {hash_bounded(path, _LARGEST_FILE)}\n".encode())
    return digest.hexdigest()


def _tried(digest: str) -> Path:
    """Where it is noted that a scene was compiled without harm; other processes of a campaign need not try it again."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "rsr" / "compiled" / digest


def _remember(digest: str) -> None:
    with suppress(WorkspaceError):  # a home that cannot be written: then the next process tries again
        write_bytes(_tried(digest), b"")


def _try(mjcf: Path) -> None:
    """Compile in a process of its own; raises ValueError with what went wrong there."""
    command = [sys.executable, "-P", str(Path(__file__).with_name("_compile_alone.py")), str(mjcf), str(CPU_S)]
    with tempfile.TemporaryDirectory(prefix="rsr-compile-") as apart:  # MuJoCo writes its log where it runs
        try:
            done = subprocess.run(
                command, cwd=apart, stdin=subprocess.DEVNULL, capture_output=True, timeout=_HANGS_S, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise ValueError(f"a scene that is not compiled after {_HANGS_S} s") from error
    if done.returncode == -signal.SIGXCPU:
        raise ValueError(f"a scene that takes more than {CPU_S} s of processor time to compile")
    if done.returncode < 0:
        name = signal.Signals(-done.returncode).name
        raise ValueError(f"a scene over which MuJoCo ends or runs out of its limit of memory ({name})")
    if done.returncode:
        words = done.stderr.decode(errors="replace").strip().splitlines()
        raise ValueError(words[-1] if words else "a scene that cannot be compiled")
