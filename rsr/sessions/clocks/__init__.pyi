from rsr.sessions.clocks.alignment import Kind as Kind, forward_only as forward_only, resample as resample
from rsr.sessions.clocks.estimate import (
    ClockEstimate as ClockEstimate,
    Relation as Relation,
    Signal as Signal,
    estimate_clock as estimate_clock,
)
