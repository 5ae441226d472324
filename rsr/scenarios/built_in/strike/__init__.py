"""Strike: a block lies on a table and another one hits it. Shapes, the scene, and what a strike is.

What a strike and its outcome mean is part of this scenario (`Definition`): simulated and recorded ones are compared.
"""

from rsr.common.facade import lazy

__getattr__, __dir__, __all__ = lazy(__name__, __file__)
