"""CLASH: models of collisions, adapted to a few real strikes, with or without a surrogate distilled from MuJoCo.

    model = adapt(StruckBlock(shape), read_strikes("strikes.csv", shape))  # ten real ones
    velocities = model(strikes)

    pairs = load_pairs(generate_pairs(shape, folder))  # simulated strikes
    model = adapt(distil(shape, pairs).surrogate, read_strikes("strikes.csv", shape))

The commands are `rsr clash data`, `train`, `adapt` and `push`. May import policies, environments, simulators, scenarios
and sessions; what hides in a stand-in for reality is closed to it. Plans of single strikes are in `planning`; pushing
along routes is in `segment` (the task), `pushing` (the policy) and `push_training`, which loads Stable-Baselines3.
"""

from rsr.learned.clash.adaptation import Adapted, KnownBlock, StruckBlock, adapt
from rsr.learned.clash.comparison import Comparison, compare, learning_curve, write_comparison
from rsr.learned.clash.extraction import Extracted, StrikeTrajectory, extract_strikes
from rsr.learned.clash.frame import Accuracy, accuracy, relative_errors
from rsr.learned.clash.generate import PAIRS, StrikePairs, generate_pairs, load_definition_of, load_pairs, load_shape_of
from rsr.learned.clash.sliding import SlidingModel, fit_sliding, velocities_known
from rsr.learned.clash.storage import load_adapted, load_surrogate, save_adapted, save_surrogate
from rsr.learned.clash.strike_recordings import Recordings, strikes_of
from rsr.learned.clash.surrogate import Distilled, Surrogate, distil, reproducible
from rsr.learned.clash.tables import read_strikes, write_strikes

__all__ = [
    "PAIRS",
    "Accuracy",
    "Adapted",
    "Comparison",
    "Distilled",
    "Extracted",
    "KnownBlock",
    "Recordings",
    "SlidingModel",
    "StrikePairs",
    "StrikeTrajectory",
    "StruckBlock",
    "Surrogate",
    "accuracy",
    "adapt",
    "compare",
    "distil",
    "extract_strikes",
    "fit_sliding",
    "generate_pairs",
    "learning_curve",
    "load_adapted",
    "load_definition_of",
    "load_pairs",
    "load_shape_of",
    "load_surrogate",
    "read_strikes",
    "relative_errors",
    "reproducible",
    "save_adapted",
    "save_surrogate",
    "strikes_of",
    "velocities_known",
    "write_comparison",
    "write_strikes",
]
