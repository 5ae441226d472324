"""Checks of a fit: gradients, clock offsets, and later drift of the robot."""

from rsr.common.facade import lazy

__getattr__, __dir__, __all__ = lazy(__name__, __file__)
