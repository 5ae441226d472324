from rsr.simulators.mjx._flags import cache_folder as cache_folder, prepare_jax as prepare_jax
from rsr.simulators.mjx.health import GradientHealth as GradientHealth, check_gradients as check_gradients
from rsr.simulators.mjx.implicit import converged as converged
from rsr.simulators.mjx.parity import Parity as Parity, check_parity as check_parity
from rsr.simulators.mjx.simulator import MjxSimulator as MjxSimulator
