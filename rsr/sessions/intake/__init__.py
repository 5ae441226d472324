"""The gate for recordings from outside: screened, unpacked within bounds, or set aside with the reason."""

from rsr.common.facade import lazy

__getattr__, __dir__, __all__ = lazy(__name__, __file__)
