from rsr.calibration.uncertainty.bootstrap import UNSTABLE as UNSTABLE
from rsr.calibration.uncertainty.correlated import (
    CORRELATED as CORRELATED,
    correlation_warnings as correlation_warnings,
)
from rsr.calibration.uncertainty.identifiability import (
    CONFIDENCE as CONFIDENCE,
    IDENTIFIED_SHRINKAGE as IDENTIFIED_SHRINKAGE,
    IDENTIFIED_STD as IDENTIFIED_STD,
    PRIOR_INFLATION as PRIOR_INFLATION,
    STD_INFLATION as STD_INFLATION,
    WEAK_SHRINKAGE as WEAK_SHRINKAGE,
    Posterior as Posterior,
    by_episode as by_episode,
    estimates as estimates,
    half_widths as half_widths,
    posterior as posterior,
    prior_only as prior_only,
    widened as widened,
)
from rsr.calibration.uncertainty.information_matrices import (
    information as information,
    posterior_covariance as posterior_covariance,
    regressed_information as regressed_information,
)
from rsr.calibration.uncertainty.shared_error import SURPRISING as SURPRISING
