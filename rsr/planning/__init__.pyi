from rsr.planning.candidates import Candidate as Candidate, make_candidates as make_candidates
from rsr.planning.excitation import (
    Excitation as Excitation,
    find_excitation as find_excitation,
    judge_excitation as judge_excitation,
)
from rsr.planning.fisher import STEP as STEP, information_by_window as information_by_window
from rsr.planning.plan import RecordingPlan as RecordingPlan, Scored as Scored, make_plan as make_plan
from rsr.planning.support import judge_support as judge_support
from rsr.planning.transitions import (
    ObservedTransitions as ObservedTransitions,
    TransitionPairs as TransitionPairs,
    novelty_map as novelty_map,
)
from rsr.planning.wrong_way import judge_directions as judge_directions
