"""MuJoCo MJX behind the `Simulator` contract, with exact sensitivities of trajectories to parameters.

C (`rsr.simulators.MujocoSimulator`) stays the faster simulator on a CPU; this one knows derivatives. Importing it sets
XLA's flags and float64 for the process, so import it before anything else computes with JAX. May import scenarios
and `rsr.simulators`' other modules.
"""

from rsr.simulators.mjx._flags import cache_folder, prepare_jax

prepare_jax()

from rsr.simulators.mjx.health import GradientHealth, check_gradients  # noqa: E402
from rsr.simulators.mjx.implicit import converged  # noqa: E402
from rsr.simulators.mjx.parity import Parity, check_parity  # noqa: E402
from rsr.simulators.mjx.simulator import MjxSimulator  # noqa: E402

__all__ = [
    "GradientHealth",
    "MjxSimulator",
    "Parity",
    "cache_folder",
    "check_gradients",
    "check_parity",
    "converged",
]
