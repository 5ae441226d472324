from rsr.calibration.checks.drift import Drift as Drift, find_drift as find_drift
from rsr.calibration.checks.observability import (
    NOT_OBSERVED as NOT_OBSERVED,
    expected_covariance as expected_covariance,
)
from rsr.calibration.fitting import Effort as Effort
from rsr.calibration.interface import (
    Calibration as Calibration,
    Calibrator as Calibrator,
    Checks as Checks,
    Estimate as Estimate,
    Evidence as Evidence,
    Knowledge as Knowledge,
    Misfit as Misfit,
    Prior as Prior,
    Replays as Replays,
    Status as Status,
    Verdict as Verdict,
)
from rsr.calibration.methods import METHODS as METHODS, calibrator as calibrator
from rsr.calibration.model_export import (
    SavedModel as SavedModel,
    hand_over as hand_over,
    save_tuned_model as save_tuned_model,
)
from rsr.calibration.priors import (
    draw_parameters as draw_parameters,
    forgetful as forgetful,
    next_prior as next_prior,
    start_calibration as start_calibration,
    start_prior as start_prior,
)
from rsr.calibration.problem.division import Division as Division
from rsr.calibration.problem.held_out import channel_rms as channel_rms, replay as replay, split as split
from rsr.calibration.problem.loss import Loss as Loss
from rsr.calibration.problem.model_error import assumed_scales as assumed_scales
from rsr.calibration.problem.sensitivity import choose_jacobian as choose_jacobian, mjx_simulator as mjx_simulator
from rsr.calibration.problem.windows import (
    MOVED_NOISES as MOVED_NOISES,
    Windows as Windows,
    choose as choose,
    cut as cut,
    motion as motion,
)
from rsr.calibration.search.descent import Search as Search, SearchResult as SearchResult
from rsr.calibration.search.evolution import search_cmaes as search_cmaes
from rsr.calibration.search.kept import FOLDER as FOLDER
from rsr.calibration.search.mjx import search_mjx as search_mjx
from rsr.calibration.search.sysid import search_sysid as search_sysid
from rsr.calibration.storage import (
    load_calibration as load_calibration,
    load_replays as load_replays,
    save_calibration as save_calibration,
)
from rsr.calibration.uncertainty.correlated import CORRELATED as CORRELATED
from rsr.calibration.uncertainty.identifiability import (
    IDENTIFIED_SHRINKAGE as IDENTIFIED_SHRINKAGE,
    STD_INFLATION as STD_INFLATION,
)
from rsr.calibration.uncertainty.information_matrices import (
    expected_nats as expected_nats,
    information_by_window as information_by_window,
    posterior_covariance as posterior_covariance,
)
