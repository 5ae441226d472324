"""Checks of a recording: what may be wrong with it, and what to do about it."""
