"""Compile an MJCF and step it once, in a process of its own with limits of memory and time; run as a script.

A few lines of MJCF can ask for more memory than there is, or for hours, and MuJoCo's C code can end the process: better
this one than the caller's. Says what is wrong on stderr, in one line, and ends with code 1.
"""

from __future__ import annotations

import os
import resource
import sys

MEMORY_BYTES = 2 << 30
CPU_S = 12
_TOO_LARGE = f"a scene that takes more than {MEMORY_BYTES >> 20} MB to compile"
_OF_ALLOCATION = "Caught an unknown exception"
"""How MuJoCo names what is no error of its own: an allocation that failed."""
LARGEST_BYTES = 512 << 20
"""Of the compiled model and the data of one simulation; a training holds hundreds of them."""


def compile_alone(path: str) -> str:
    """Say what is wrong with the scene at a path; nothing where it can be simulated."""
    import mujoco
    import numpy as np

    model = mujoco.MjModel.from_xml_path(path)
    size = mujoco.mj_sizeModel(model) + model.nbuffer + model.narena
    if size > LARGEST_BYTES:
        return f"a scene of {size >> 20:,} MB; at most {LARGEST_BYTES >> 20} MB are allowed"
    data = mujoco.MjData(model)
    mujoco.mj_setConst(model, data)
    mujoco.mj_forward(model, data)
    mujoco.mj_step(model, data)
    unstable = data.warning[mujoco.mjtWarning.mjWARN_BADQACC].number or not np.isfinite(data.qacc).all()
    return "a scene that is unstable in its first step: check gravity, masses and stiffness" if unstable else ""


def _limited(cpu_s: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s + 1))  # ends by SIGXCPU, which says why
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")  # each thread would reserve memory of its own
    _limited(int(sys.argv[2]))
    try:
        wrong = compile_alone(sys.argv[1])
    except MemoryError:
        wrong = _TOO_LARGE
    except Exception as error:  # MuJoCo's FatalError and ValueError, UnicodeDecodeError of a name in it, ...
        wrong = _TOO_LARGE if _OF_ALLOCATION in str(error) else str(error) or type(error).__name__
    sys.stderr.write(" ".join(wrong.split()))
    sys.exit(1 if wrong else 0)
