"""Realities: where sessions come from. Everything that moves passes the safety envelope.

May import policies, simulators, scenarios and sessions. Nothing that fits or trains may import this room.
"""

from rsr.common.facade import lazy

__getattr__, __dir__, __all__ = lazy(__name__, __file__)
