"""Pushing a block over a table with the 6-DoF arm: what the tasks of `push_cube` and `push_t` share.

`kinematics` and `arm` are the arm, `limits` what it may never do, `tool_plane` the last layer of its policies, `blocks`
what both tasks ask of a block, and `probes` the pushes that a recording plan considers.
"""

from rsr.common.facade import lazy

__getattr__, __dir__, __all__ = lazy(__name__, __file__)
