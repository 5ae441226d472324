"""Uncertainty of estimates: information, covariance and verdicts, correlated parameters, bootstrap."""
