"""Offsets and drift between the clocks of a recording, and signals put onto another time grid."""

from rsr.common.facade import lazy

__getattr__, __dir__, __all__ = lazy(__name__, __file__)
