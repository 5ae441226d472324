"""Realities: where sessions come from. Everything that moves passes the safety envelope.

May import policies, simulators, scenarios and sessions. Nothing that fits or trains may import this room.
"""

from rsr.realities.contract import Actor, CollectionPlan, Reality
from rsr.realities.envelope import SafetyEnvelope
from rsr.realities.inbox import Inbox
from rsr.realities.robot import RobotReality
from rsr.realities.twin import Twin

__all__ = ["Actor", "CollectionPlan", "Inbox", "Reality", "RobotReality", "SafetyEnvelope", "Twin"]
