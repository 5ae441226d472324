"""Many closed-loop copies of a scenario advancing together, for Gymnasium, Stable-Baselines3 and realities alike.

May import sessions, scenarios, simulators and infogap. Importing this room registers a Gymnasium environment
`rsr/<scenario>-v0` for each built-in scenario with a task.
"""

import gymnasium

from rsr.common.facade import lazy
from rsr.scenarios import built_in_tasks

for _name in built_in_tasks():
    gymnasium.register(f"rsr/{_name}-v0", entry_point="rsr.environments.gymnasium:TaskEnv", kwargs={"scenario": _name})

__getattr__, __dir__, __all__ = lazy(__name__, __file__)
