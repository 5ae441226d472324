"""Settings to make before JAX starts: XLA's flags, float64, and the folder of compiled programs."""

from __future__ import annotations

import io
import logging
import os
from contextlib import redirect_stdout
from pathlib import Path

CACHE_VARIABLE = "RSR_CACHE_DIR"
"""Environment variable: the folder of compiled programs and of dumps, instead of the user's cache folder."""

_XLA_FLAGS = {
    # On a CPU the fusion emitters turn a physics step into code that runs up to 100 times slower and compiles twice
    # as long (six-joint arm, jaxlib 0.10.2).
    "--xla_cpu_use_fusion_emitters": "false",
    # Without the emitters, programs were seen to hang in YNN fusion; empty means: fuse nothing through YNN.
    "--xla_cpu_experimental_ynn_fusion_type": "",
}
_log = logging.getLogger(__name__)


def cache_folder() -> Path:
    """The folder that compiled programs and dumps go to."""
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen:
        return Path(chosen).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "rsr"


def with_fast_flags(given: str) -> str:
    """Add our XLA flags to the user's; one that the user set keeps the user's value."""
    named = {word.split("=")[0] for word in given.split()}
    added = [f"{flag}={value}" for flag, value in _XLA_FLAGS.items() if flag not in named]
    return " ".join([*given.split(), *added])


def prepare_jax() -> None:
    """Set XLA's flags, float64 and the compilation cache. XLA reads its flags once, when it first computes."""
    before = os.environ.get("XLA_FLAGS", "")
    os.environ["XLA_FLAGS"] = with_fast_flags(before)
    import jax
    from jax._src import xla_bridge

    if before != os.environ["XLA_FLAGS"] and xla_bridge.backends_are_initialized():
        _log.warning(
            "JAX was in use before rsr.simulators.mjx was imported, too late for its XLA flags: simulations may run "
            "100 times slower. Import rsr.simulators.mjx first, or start with XLA_FLAGS='%s'.",
            os.environ["XLA_FLAGS"],
        )
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_compilation_cache_dir", str(cache_folder() / "jax"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)
    with redirect_stdout(io.StringIO()):  # its first import prints that an optional GPU package is absent
        import mujoco.mjx  # noqa: F401
