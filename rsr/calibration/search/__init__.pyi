from rsr.calibration.search.adam import search_adam as search_adam
from rsr.calibration.search.descent import Search as Search, SearchResult as SearchResult
from rsr.calibration.search.evolution import search_cmaes as search_cmaes
from rsr.calibration.search.halving import (
    StructureSelection as StructureSelection,
    select_structure as select_structure,
)
from rsr.calibration.search.marginalise import (
    InitialStateMarginal as InitialStateMarginal,
    around_biases as around_biases,
    marginalise_initial_states as marginalise_initial_states,
    reweighted as reweighted,
    with_biases as with_biases,
)
from rsr.calibration.search.mjx import search_mjx as search_mjx
from rsr.calibration.search.refinement import (
    FIRST_SPREAD as FIRST_SPREAD,
    POINTS as POINTS,
    POINTS_PER_PARAMETER as POINTS_PER_PARAMETER,
    linearise as linearise,
    refine as refine,
)
from rsr.calibration.search.right_model import (
    longest_right as longest_right,
    promising as promising,
    settled as settled,
)
from rsr.calibration.search.second import SAID as SAID, checked_end as checked_end
from rsr.calibration.search.sysid import search_sysid as search_sysid
