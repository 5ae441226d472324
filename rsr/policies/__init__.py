"""Policies: environments, training, the stored policy, and rolling one out in a simulator.

May import sessions, scenarios, simulators and infogap. `training` (which loads torch) is imported by those who train.
Importing this room registers the Gymnasium environments `rsr/PushCube-v0` and `rsr/PushT-v0`.
"""

import gymnasium

from rsr.policies.policy import Normaliser, Policy
from rsr.policies.world import World

__all__ = ["Normaliser", "Policy", "World"]

gymnasium.register("rsr/PushCube-v0", entry_point="rsr.policies.env:PushEnv", kwargs={"scenario": "push_cube"})
gymnasium.register("rsr/PushT-v0", entry_point="rsr.policies.env:PushEnv", kwargs={"scenario": "push_t"})
