"""From what `mjcf:` of a scenario's YAML file says to a compiled model: a file, a robot of Menagerie, or a function."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import mujoco

from rsr.common import ScenarioError, inside, short
from rsr.scenarios.models.additions import SECTIONS, lengthen_keyframes, with_additions
from rsr.scenarios.models.guarded_mjcf import compiled_from_outside, compiled_text, outside_error
from rsr.scenarios.models.menagerie import PREFIX, menagerie_file
from rsr.scenarios.models.mjcf import compiled
from rsr.scenarios.models.urdf import check_urdf
from rsr.scenarios.python_beside import blamed, load_function


def is_python(mjcf: object) -> bool:
    """Whether the model is made by a function, such as `model.py:build`."""
    return isinstance(mjcf, str) and ".py:" in mjcf


def read_model(
    folder: Path, mjcf: Any, adds: Mapping[str, object], trusted: bool, where: str
) -> tuple[mujoco.MjModel, Path, mujoco.MjSpec | None]:
    """Compile a scenario's model.

    Args:
        folder: of the scenario.
        trusted: a built-in one, which is compiled without a trial in a process of its own.

    Returns:
        The model, the file that it came from, and what it was compiled from where that was no file.
    """
    if is_python(mjcf):
        return _made(folder, mjcf, adds, where)
    if isinstance(mjcf, str) and mjcf.startswith(PREFIX):
        path = menagerie_file(mjcf)
        folder, mjcf = path.parent, path.name
    path = folder / str(mjcf)
    if path.suffix == ".py":
        place = f"{where}, mjcf: {mjcf}"
        next_step = f"Write `mjcf: {mjcf}:FUNCTION` in the scenario's YAML file."
        raise ScenarioError(got="a file of Python", expected="a function in it", where=place, next_step=next_step)
    if trusted and not adds:
        return compiled(path, where), path, None
    try:
        inside(folder, mjcf)
        if path.suffix == ".urdf":
            check_urdf(path, "<actuator" in str(adds.get(SECTIONS, "")), where)
    except (OSError, ValueError, ElementTree.ParseError) as error:
        raise outside_error(error, mjcf, where) from error
    model = compiled_from_outside(folder, mjcf, where)
    return _with_additions(model, folder, path, adds, where) if adds else (model, path, None)


def _with_additions(
    plain: mujoco.MjModel, folder: Path, path: Path, adds: Mapping[str, object], where: str
) -> tuple[mujoco.MjModel, Path, mujoco.MjSpec]:
    try:
        spec = compiled_text(folder, path, with_additions(path, adds, where), where)
        lengthen_keyframes(spec, plain, where)
        return spec.compile(), path, spec
    except ValueError as error:
        raise outside_error(error, f"{path.name} with `adds`", where) from error


def _made(
    folder: Path, mjcf: str, adds: Mapping[str, object], where: str
) -> tuple[mujoco.MjModel, Path, mujoco.MjSpec]:
    place = f"{where}, mjcf: {mjcf}"
    spec = blamed(load_function(folder, mjcf, place), folder, place)()
    if not isinstance(spec, mujoco.MjSpec):
        raise _refused(f"{type(spec).__name__} {short(spec)}", "a function that returns an mujoco.MjSpec", place)
    if adds:
        raise _refused("`adds`", "additions made by the function itself", place)
    try:
        return spec.compile(), folder / mjcf.partition(":")[0], spec
    except ValueError as error:
        raise _refused(" ".join(str(error).split()), "an MjSpec that MuJoCo compiles", place) from error


def _refused(got: str, expected: str, where: str) -> ScenarioError:
    return ScenarioError(got=got, expected=expected, where=where, next_step="Correct the function there.")
