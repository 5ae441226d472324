"""Two cubes on a table, one pushed towards the other; the scene for any number of convex blocks."""

from rsr.common.facade import lazy

__getattr__, __dir__, __all__ = lazy(__name__, __file__)
