"""Uncertainty of estimates: information, covariance and verdicts, correlated parameters, bootstrap."""

from rsr.common.facade import lazy

__getattr__, __dir__, __all__ = lazy(__name__, __file__)
