"""Checks of a recording: what may be wrong with it, and what to do about it."""

from rsr.common.facade import lazy

__getattr__, __dir__, __all__ = lazy(__name__, __file__)
