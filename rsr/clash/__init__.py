"""CLASH: a surrogate of collisions, distilled from MuJoCo and adapted to a few real strikes.

    pairs = load_pairs(generate_pairs(shape, folder))           # simulated strikes
    surrogate = distil(shape, pairs, preset("default")).surrogate
    model = adapt(surrogate, read_strikes("strikes.csv", shape))  # ten real ones
    velocities = model(strikes)

The commands are `rsr clash data`, `train`, `adapt` and `push`. May import policies, simulators, scenarios and
sessions; what hides in a stand-in for reality is closed to it. Pushing along routes is in `routes`, `segment` (the
task), `segment_env`, `sequence_training`, `strike_policy` and `sequence`, which load Stable-Baselines3.
"""

from rsr.clash.adaptation import Adapted, adapt
from rsr.clash.comparison import Comparison, compare, learning_curve
from rsr.clash.extraction import Extracted, Trajectory, extract_strikes
from rsr.clash.generate import PAIRS, Pairs, generate_pairs, load_pairs
from rsr.clash.learning import Distilled, distil, judge
from rsr.clash.metric import Accuracy, accuracy, relative_errors
from rsr.clash.presets import PRESETS, Preset, preset
from rsr.clash.sliding import SlidingModel, fit_sliding
from rsr.clash.storage import load_adapted, load_surrogate, save_adapted, save_surrogate
from rsr.clash.surrogate import Surrogate
from rsr.clash.tables import read_strikes, write_strikes

__all__ = [
    "PAIRS",
    "PRESETS",
    "Accuracy",
    "Adapted",
    "Comparison",
    "Distilled",
    "Extracted",
    "Pairs",
    "Preset",
    "SlidingModel",
    "Surrogate",
    "Trajectory",
    "accuracy",
    "adapt",
    "compare",
    "distil",
    "extract_strikes",
    "fit_sliding",
    "generate_pairs",
    "judge",
    "learning_curve",
    "load_adapted",
    "load_pairs",
    "load_surrogate",
    "preset",
    "read_strikes",
    "relative_errors",
    "save_adapted",
    "save_surrogate",
    "write_strikes",
]
