from rsr.calibration.checks.drift import MARGIN as MARGIN
from rsr.calibration.checks.expressiveness import described as described, expressed as expressed, misfits as misfits
from rsr.calibration.checks.fit_checks import FittedProblem as FittedProblem, check as check
from rsr.calibration.checks.observability import USUAL_WINDOWS as USUAL_WINDOWS
from rsr.calibration.checks.survival import doubt_warnings as doubt_warnings
from rsr.calibration.checks.unknown import at_prior_where_unknown as at_prior_where_unknown
