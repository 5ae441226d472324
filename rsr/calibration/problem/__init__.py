"""The problem of every method: windows, residuals, their Jacobians, nuisances, held-out evidence."""

from rsr.common.facade import lazy

__getattr__, __dir__, __all__ = lazy(__name__, __file__)
