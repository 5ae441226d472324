"""MJCF to a compiled model and back: to the last bit, meshes beside it, read again before it is called done."""

from __future__ import annotations

import ctypes
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from rsr.common import ScenarioError, write_bytes, write_text

AGREE = 1e-9
"""How far the states of two rollouts may differ, relative where they are larger than 1."""
_ROLLOUT_S, _KICK, _STROKE = 2.0, 0.1, 0.1
"""Conditions of the comparison: two seconds, from velocities of up to 0.1, with commands in a tenth of their range."""
_LONG_NUMBER = re.compile(r"-?\d+\.\d{12,}(?:e[+-]?\d+)?")
_DIGITS = 17
COMPILE_ERRORS = (ValueError, RuntimeError, MemoryError, OSError, mujoco.FatalError)
"""Errors that MuJoCo raises over a scene that it cannot compile; a UnicodeDecodeError is a ValueError."""


def compiled(mjcf: Path, where: str) -> mujoco.MjModel:
    """Compile an MJCF or URDF; where it does not compile, say what MuJoCo says."""
    try:
        return mujoco.MjModel.from_xml_path(str(mjcf))
    except COMPILE_ERRORS as error:  # MuJoCo's own message names the element, or the file that is not there
        raise ScenarioError(
            got=str(error).strip() or type(error).__name__,
            expected="an MJCF that MuJoCo compiles",
            where=f"{where}, mjcf: {mjcf.name}",
            next_step="Correct the MJCF.",
        ) from error


def write_mjcf(spec: mujoco.MjSpec, model: mujoco.MjModel, path: Path, read_from: Path | None = None) -> Path:
    """Write a model that was compiled from a spec, and changed since, as an MJCF that compiles to it.

    Defaults, names and comments on elements stay as the spec has them. Meshes, textures and height fields are copied
    into a folder `<name>_files` beside the MJCF.

    Args:
        spec: is changed to what the model says.
        read_from: the file that the spec was read from, if any: its attached models say where their meshes are.

    Raises:
        ScenarioError: MJCF cannot say what was changed, a mesh is not to be found, or the file, loaded again, does not
            simulate as the model does.
    """
    _freeze_derived(spec, model)
    _take_over(spec, model, path)
    files = dict(_bring_files(spec, path, read_from))
    spec.assets = {**spec.assets, **files}  # saving reads them, before they lie where they are said to
    # As the user wrote it: default classes, frames, degrees and <position> stay, rather than what they compile to.
    spec.compiler.savecompiled = spec.compiler.savecanonical = False
    with _all_digits():
        text = _LONG_NUMBER.sub(lambda number: repr(float(number[0])), spec.to_xml())
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.stem}.") as folder:
        trial = Path(folder) / path.name
        _write(trial, text, files)
        _check_reloads(model, trial, path)
    _write(path, text, files)
    return path


def _freeze_derived(spec: mujoco.MjSpec, model: mujoco.MjModel) -> None:
    """Say outright what compilation would derive from numbers that were changed: inertia and damping of servos."""
    base = spec.compile()
    changed = base.body_mass != model.body_mass
    for name in ("body_inertia", "body_ipos", "body_iquat"):
        changed |= (getattr(base, name) != getattr(model, name)).any(axis=1)
    changed[base.geom_bodyid[(base.geom_size != model.geom_size).any(axis=1)]] = True
    if changed[1:].any():
        everywhere = spec.compiler.inertiafromgeom == mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_TRUE
        for body in spec.bodies[1:]:
            if changed[body.id] or everywhere:
                _say_inertia(body, base)
        spec.compiler.inertiafromgeom = mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_AUTO
    for actuator in spec.actuators:
        if actuator.biasprm[2] > 0:  # a damping ratio, of the inertia that the actuator moves
            actuator.biasprm[2] = base.actuator_biasprm[actuator.id, 2]
    spec.compile()


def _say_inertia(body: Any, base: mujoco.MjModel) -> None:
    """Give a body of the spec the inertia that it compiled to, as a user would who knows it."""
    body.explicitinertial = True
    body.fullinertia[:] = np.nan
    body.ialt.type = mujoco.mjtOrientation.mjORIENTATION_QUAT
    body.mass, body.inertia = base.body_mass[body.id], base.body_inertia[body.id]
    body.ipos, body.iquat = base.body_ipos[body.id], base.body_iquat[body.id]


def _take_over(spec: mujoco.MjSpec, model: mujoco.MjModel, path: Path) -> None:
    """Write into the spec what was changed in the model since it was compiled; `copy_back` leaves `condim` out."""
    try:
        spec.copy_back(model)
    except ValueError as error:
        raise ScenarioError(
            got=" ".join(str(error).split()),
            expected="changes that an MJCF can say",
            where=str(path),
            next_step="Nothing was written. Keep the scenario's folder (`scenario.save`) and the parameters instead.",
        ) from error
    for elements, dimensions in ((spec.pairs, model.pair_dim), (spec.geoms, model.geom_condim)):
        for element in elements:
            element.condim = int(dimensions[element.id])


def _bring_files(spec: mujoco.MjSpec, path: Path, read_from: Path | None) -> Iterator[tuple[str, bytes]]:
    """Let the spec name its files in the folder beside the MJCF; yields their names there and their contents."""
    folder = f"{path.stem}_files"
    taken: dict[str, bytes] = {}
    for element, kind in _with_files(spec):
        content = _content(spec, element, kind, read_from, path)
        name = Path(element.file).name
        while taken.get(name, content) != content:  # two folders may hold files of one name
            name = f"_{name}"
        taken[name] = content
        element.name = element.name or Path(element.file).stem  # what MuJoCo would call it, and others refer to
        element.file = name
    for compiler in (spec.compiler, *(element.compiler for element, _ in _with_files(spec))):
        compiler.meshdir = compiler.texturedir = folder if taken else ""
    return ((f"{folder}/{name}", content) for name, content in taken.items())


def _with_files(spec: mujoco.MjSpec) -> list[tuple[Any, str]]:
    """Elements that a file belongs to, and which of the compiler's folders it lies in."""
    kinds = (
        (spec.meshes, "meshdir"),
        (spec.hfields, "meshdir"),
        (spec.skins, "meshdir"),
        (spec.textures, "texturedir"),
    )
    return [(element, kind) for elements, kind in kinds for element in elements if element.file]


def _content(spec: mujoco.MjSpec, element: Any, kind: str, read_from: Path | None, path: Path) -> bytes:
    """Find a file as MuJoCo does: among the spec's own assets, then on disk."""
    places = [str(Path(getattr(compiler, kind) or "") / element.file) for compiler in (element.compiler, spec.compiler)]
    for place in (*places, element.file):
        if place in spec.assets:
            content = spec.assets[place]
            return content.encode() if isinstance(content, str) else content
        if (Path(spec.modelfiledir) / place).is_file():
            return (Path(spec.modelfiledir) / place).read_bytes()
    for dependency in mujoco.mju_getXMLDependencies(str(read_from)) if read_from else ():
        if Path(dependency).as_posix().endswith(f"/{element.file}"):
            return Path(dependency).read_bytes()
    raise ScenarioError(
        got=f"no file {places[0]}",
        expected="the meshes and textures of the MJCF",
        where=str(path),
        next_step="Put the file where the MJCF says it is; nothing was written.",
    )


@contextmanager
def _all_digits() -> Iterator[None]:
    """Let MuJoCo write all digits of a number. There is no public way; `write_mjcf` checks what came of it."""
    library = next(Path(mujoco.__file__).parent.glob("*mujoco*.[sd][oy]*"), None)
    precision = getattr(ctypes.CDLL(str(library)), "_mjPRIVATE__set_xml_precision", None) if library else None
    if precision is None:
        yield
        return
    precision(_DIGITS)
    try:
        yield
    finally:
        precision(6)


def _write(path: Path, text: str, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        write_bytes(path.parent / name, content)
    write_text(path, text)  # last, so that it never names a file that is not there


def _check_reloads(model: mujoco.MjModel, trial: Path, path: Path) -> None:
    loaded = mujoco.MjModel.from_xml_path(str(trial))
    apart = rollout_difference(model, loaded)
    if not apart <= AGREE:
        raise ScenarioError(
            got=f"an MJCF whose rollout differs by {apart:.1e} ({', '.join(_differing(model, loaded)) or 'options'})",
            expected=f"the scenario's own rollout to {AGREE:.0e}",
            where=str(path),
            next_step="Nothing was written. Report this with the MJCF: something in it does not survive being saved.",
        )


def rollout_difference(one: mujoco.MjModel, other: mujoco.MjModel) -> float:
    """How far the states of two models come apart in two seconds; relative where they are larger than 1.

    Sites and cameras move nothing, so their poses are compared themselves.
    """
    if (one.nq, one.nv, one.nu, one.na) != (other.nq, other.nv, other.nu, other.na):
        return np.inf
    first, second = _rollout(one), _rollout(other)
    apart = np.abs(first - second) / np.maximum(1.0, np.abs(first))
    rollout = np.where(np.isnan(first) & np.isnan(second), 0.0, apart).max(initial=0.0)
    return float(max(rollout, *(_pose_difference(one, other, name) for name in _SENSED_POSES)))


_SENSED_POSES = ("site_pos", "site_quat", "cam_pos", "cam_quat")


def _pose_difference(one: mujoco.MjModel, other: mujoco.MjModel, name: str) -> float:
    first, second = getattr(one, name), getattr(other, name)
    return float(np.abs(first - second).max(initial=0.0)) if first.shape == second.shape else np.inf


def _rollout(model: mujoco.MjModel) -> np.ndarray:
    """States [T, nq + nv] under pseudo-random commands, the same for models of equal sizes and ranges."""
    rng = np.random.default_rng(0)
    data = mujoco.MjData(model)
    if model.nkey:
        mujoco.mj_resetDataKeyframe(model, data, 0)
    data.qvel[:] += _KICK * rng.uniform(-1, 1, model.nv)
    limited = model.actuator_ctrllimited.astype(bool)
    middle = np.where(limited, model.actuator_ctrlrange.mean(axis=1), 0.0)
    reach = _STROKE * np.where(limited, np.ptp(model.actuator_ctrlrange, axis=1) / 2, 1.0)
    states = []
    for _ in range(max(1, round(_ROLLOUT_S / model.opt.timestep))):
        data.ctrl[:] = middle + reach * rng.uniform(-1, 1, model.nu)
        mujoco.mj_step(model, data)
        states.append(np.concatenate([data.qpos, data.qvel]))
    return np.array(states)


def _differing(one: mujoco.MjModel, other: mujoco.MjModel) -> list[str]:
    """Names of the arrays in which two models differ."""
    names = []
    for name in dir(one):
        value = None if name.startswith("_") else getattr(one, name, None)
        if isinstance(value, np.ndarray) and value.dtype.kind in "fiu":
            same = np.shape(value) == np.shape(getattr(other, name))
            if not same or not np.allclose(value, getattr(other, name), rtol=1e-12, atol=1e-15):
                names.append(name)
    return names
