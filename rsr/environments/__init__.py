"""Many closed-loop copies of a scenario advancing together, for Gymnasium, Stable-Baselines3 and realities alike.

May import sessions, scenarios, simulators and infogap. Importing this room registers a Gymnasium environment
`rsr/<scenario>-v0` for each built-in scenario with a task.
"""

import gymnasium

from rsr.environments.world import World
from rsr.scenarios import built_in_tasks

__all__ = ["World"]

for _name in built_in_tasks():
    gymnasium.register(f"rsr/{_name}-v0", entry_point="rsr.environments.gymnasium:TaskEnv", kwargs={"scenario": _name})
