"""Policies: training, the stored policy, and rolling one out in a simulator.

May import sessions, scenarios, simulators, infogap and environments. `training` (which loads torch) is imported by
those who train.
"""

from rsr.common.facade import lazy

__getattr__, __dir__, __all__ = lazy(__name__, __file__)
