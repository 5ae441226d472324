"""Planning: what to record next, and what a recording can tell.

    plan = make_plan(scenario, sessions, calibration, candidates=32, seed=0)   # ranked candidate episodes

Candidates (`candidates`) are simulated with the calibration and ranked by two measures (`plan`): how new their
transitions are to the recordings (InfoGap; `transitions`), and their expected information gain on the parameters that
are not identified yet (`fisher`). `excitation` says which parameters a recorded session can identify at all,
`wrong_way` which of its channels the scene predicts better the other way round, and `support` which bodies the scene
lets fall. Works in every scenario, with a task or without, with commands or without. May import calibration, policies,
simulators, infogap and what lies below them; knows no reality.
"""

from rsr.common.facade import lazy

__getattr__, __dir__, __all__ = lazy(__name__, __file__)
