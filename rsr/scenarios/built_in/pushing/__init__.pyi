from rsr.scenarios.built_in.pushing.arm import ACTION as ACTION, CENTRE_M as CENTRE_M, TIP_HEIGHT_M as TIP_HEIGHT_M
from rsr.scenarios.built_in.pushing.blocks import (
    PLACE_FIGURES as PLACE_FIGURES,
    PLANE as PLANE,
    SUCCESS_M as SUCCESS_M,
    away_from as away_from,
    derived as derived,
    distance as distance,
    instruction as instruction,
    motions as motions,
    states as states,
    way_around as way_around,
)
from rsr.scenarios.built_in.pushing.limits import ArmLimits as ArmLimits
from rsr.scenarios.built_in.pushing.probes import PROBES as PROBES
