"""What every room uses: errors, files written whole, data from outside, progress, randomness, rotations, spread jobs.

Imports nothing else of `rsr`.
"""

from rsr.common.facade import lazy

__getattr__, __dir__, __all__ = lazy(__name__, __file__)
