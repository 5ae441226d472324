from rsr.calibration.problem.acceptance import (
    SHARES as SHARES,
    Acceptance as Acceptance,
    best_share as best_share,
    gap_warning as gap_warning,
)
from rsr.calibration.problem.division import Division as Division
from rsr.calibration.problem.held_out import (
    FEW as FEW,
    HeldOut as HeldOut,
    Replayed as Replayed,
    channel_rms as channel_rms,
    folds as folds,
    replay as replay,
    split as split,
)
from rsr.calibration.problem.loss import (
    Loss as Loss,
    can_be_spread as can_be_spread,
    losses_of as losses_of,
    parts_of as parts_of,
    tangent_widths as tangent_widths,
)
from rsr.calibration.problem.model_error import (
    ASSUMED_NOISES as ASSUMED_NOISES,
    ROBUST_SCALES as ROBUST_SCALES,
    ModelError as ModelError,
)
from rsr.calibration.problem.nuisances import BiasSlopes as BiasSlopes, InitialStateSlopes as InitialStateSlopes
from rsr.calibration.problem.sensitivity import (
    JacobianFunction as JacobianFunction,
    Linearisation as Linearisation,
    Sensitivity as Sensitivity,
    choose_jacobian as choose_jacobian,
    exact_linearisation as exact_linearisation,
    jacobian as jacobian,
    mjx_simulator as mjx_simulator,
    tangents_by_differences as tangents_by_differences,
    value_slopes as value_slopes,
)
from rsr.calibration.problem.windows import (
    MOVED_NOISES as MOVED_NOISES,
    Windows as Windows,
    choose as choose,
    cut as cut,
    surroundings as surroundings,
    words as words,
)
