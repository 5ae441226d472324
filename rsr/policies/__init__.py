"""Policies: training, the stored policy, and rolling one out in a simulator.

May import sessions, scenarios, simulators, infogap and environments. `training` (which loads torch) is imported by
those who train.
"""

from rsr.policies.policy import Normaliser, Policy

__all__ = ["Normaliser", "Policy"]
