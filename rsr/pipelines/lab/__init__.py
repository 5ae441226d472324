"""Between iterations: approval, arrivals, deployment, and whether the robot has changed."""

from rsr.common.facade import lazy

__getattr__, __dir__, __all__ = lazy(__name__, __file__)
