"""Realities: where sessions come from. Everything that moves passes the safety envelope.

May import policies, simulators, scenarios and sessions. Nothing that fits or trains may import this room.
"""

from rsr.realities.contract import CollectionPlan, Reality
from rsr.realities.envelope import SafetyEnvelope
from rsr.realities.twin import Twin

__all__ = ["CollectionPlan", "Reality", "SafetyEnvelope", "Twin"]
