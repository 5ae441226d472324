"""Simulators behind one contract: states and commands in, states out, batched. May import sessions and scenarios."""

from rsr.common.facade import lazy
from rsr.simulators.unstable import count_warnings

count_warnings()  # before anything is simulated

__getattr__, __dir__, __all__ = lazy(__name__, __file__)
