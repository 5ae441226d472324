"""Realities: where sessions come from. Everything that moves passes the safety envelope.

May import policies, simulators, scenarios and sessions. Nothing that fits or trains may import this room.
"""

from rsr.realities.envelope import SafetyEnvelope
from rsr.realities.inbox import Inbox
from rsr.realities.reality import CollectionPlan, Reality
from rsr.realities.stand_in import StandIn

__all__ = ["CollectionPlan", "Inbox", "Reality", "SafetyEnvelope", "StandIn"]
