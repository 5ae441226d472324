"""Compiled programs that outlive the process: the traced program is kept on disk, XLA's compilation of it too.

Tracing the Jacobian of a six-joint arm takes 7 CPU-seconds and compiling it 20, the first time. From then on both are
read from the cache folder, within a second, as long as scenario, code and versions are the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
from jax import export

from rsr.common import write_bytes
from rsr.scenarios import Scenario
from rsr.scenarios.effects import applied, command_laws, effect_laws
from rsr.scenarios.parameters import fields, inertias, named_numbers, turned_frames
from rsr.simulators.mjx._flags import cache_folder

_PACKAGES = ("jax", "jaxlib", "mujoco", "mujoco-mjx")
_TRACED = tuple(Path(__file__).parent / f"{name}.py" for name in ("corrections", "implicit", "parameters", "simulator"))
_TRACED += tuple(
    Path(str(each.__file__))
    for each in (applied, effect_laws, command_laws, fields, inertias, named_numbers, turned_frames)
)
"""Files whose code becomes part of a program; a change of the others leaves programs valid."""


def program(name: str, function: Callable, shapes: tuple[tuple[int, ...], ...], fingerprint: str) -> Callable:
    """Compile a function of float64 arrays of these shapes, or read it from the cache folder.

    Args:
        fingerprint: of everything that the function depends on beside its arguments.
    """
    arguments = [jax.ShapeDtypeStruct(shape, jnp.float64) for shape in shapes]
    path = cache_folder() / "programs" / f"{name}-{fingerprint}.bin"
    if path.is_file():
        exported = export.deserialize(bytearray(path.read_bytes()))
    else:
        # Shapes are fixed: XLA compiles for one batch size, and callers pad to it.
        exported = export.export(jax.jit(function))(*arguments)
        write_bytes(path, bytes(exported.serialize()))
    return jax.jit(exported.call).lower(*arguments).compile()


def fingerprint(scenario: Scenario, *more: object) -> str:
    """Hash what a scenario's programs depend on: its model, its parameters, our code, and the versions of others'."""
    # The compiled model as bytes: any change of the MJCF or its meshes changes the hash.
    model = np.zeros(mujoco.mj_sizeModel(scenario.base_model), np.uint8)
    mujoco.mj_saveModel(scenario.base_model, None, model)
    transforms = [(parameter.scale, parameter.unit_step) for parameter in scenario.space]
    clock = (scenario.control_dt_s, scenario.substeps, scenario.history_steps, scenario.delay_parameter)
    clock += (len(scenario.per_episode),)
    versions = [version(package) for package in _PACKAGES]
    digest = hashlib.sha256(model.tobytes())
    digest.update(repr((scenario.bindings, transforms, clock, versions, jax.default_backend(), more)).encode())
    if scenario.effects is not None:
        # Python beside a scenario is a module of a name that hashes its text (`python_beside`).
        laws = [(law.__module__, law.__qualname__) for law in scenario.effects.laws]
        digest.update(repr((scenario.effects.each, scenario.effects.on_commands, laws)).encode())
    for path in _TRACED:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:32]
