from rsr.sessions.checks.problems import check_shapes as check_shapes, find_problems as find_problems
from rsr.sessions.checks.rotation import rank_conventions as rank_conventions, turning_signal as turning_signal
from rsr.sessions.checks.rules import (
    LIMIT_SLACK as LIMIT_SLACK,
    find_spikes as find_spikes,
    find_still as find_still,
    share_outside as share_outside,
)
from rsr.sessions.checks.turns import refuse_wraps as refuse_wraps
