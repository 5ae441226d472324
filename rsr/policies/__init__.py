"""Policies: environments, training, the stored policy, and rolling one out in a simulator.

May import sessions, scenarios, simulators and infogap. `training` (which loads torch) is imported by those who train.
"""

from rsr.policies.policy import Normaliser, Policy
from rsr.policies.world import World

__all__ = ["Normaliser", "Policy", "World"]
