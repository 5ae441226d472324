"""Pushing a block over a table with the 6-DoF arm: what `push_cube` and `push_t` share.

`kinematics` and `arm` are the arm, `limits` what it may never do, `pose` the block's position and orientation, and
`task` what a scenario states if a policy is to learn in it. Which scenario has which task: `rsr.scenarios.task_of`.
"""

from rsr.scenarios.pushing.limits import Limits
from rsr.scenarios.pushing.task import Starts, Task, Term

__all__ = ["Limits", "Starts", "Task", "Term"]
