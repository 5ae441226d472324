"""Planning: what to record next, and what a recording was worth.

    plan = make_plan(scenario, sessions, calibration, candidates=32, seed=0)   # ranked candidate episodes
    fisher_information(scenario, session, params)                              # [P, P]: what a recording tells

Candidates (`candidates`, `driving`) are simulated with the calibration and judged by two measures (`plan`): how new
their transitions are to the recordings (InfoGap; `transitions`), and how much they would tell of the parameters that
are not known well (`fisher`). Works in every scenario, with a task or without, with commands or without. May import
calibration, policies, simulators, infogap and what lies below them; knows no reality.
"""

from rsr.planning.candidates import Candidate, make_candidates
from rsr.planning.fisher import expected_nats, fisher_information, log_determinant
from rsr.planning.plan import Plan, Scored, make_plan
from rsr.planning.transitions import Pairs, Watched

__all__ = [
    "Candidate",
    "Pairs",
    "Plan",
    "Scored",
    "Watched",
    "expected_nats",
    "fisher_information",
    "log_determinant",
    "make_candidates",
    "make_plan",
]
