"""Simulators that are learnt: `clash` for collisions, `gnn` for contact between free bodies."""

from rsr.common.facade import lazy

__getattr__, __dir__, __all__ = lazy(__name__, __file__)
