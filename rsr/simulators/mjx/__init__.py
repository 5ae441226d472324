"""MuJoCo MJX behind the `Simulator` contract, with exact sensitivities of trajectories to parameters.

C (`rsr.simulators.MujocoSimulator`) stays the faster simulator on a CPU; this one knows derivatives. Importing it sets
XLA's flags and float64 for the process, so import it before anything else computes with JAX. May import scenarios
and `rsr.simulators`' other modules.
"""

from rsr.common.facade import lazy
from rsr.simulators.mjx._flags import prepare_jax

prepare_jax()

__getattr__, __dir__, __all__ = lazy(__name__, __file__)
