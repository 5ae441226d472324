"""CLASH: models of collisions, adapted to a few real strikes, with or without a surrogate distilled from MuJoCo.

    model = adapt(StruckBlock(shape), read_strikes("strikes.csv", shape))  # ten real ones
    velocities = model(strikes)

    pairs = load_pairs(generate_pairs(shape, folder))  # simulated strikes
    model = adapt(distil(shape, pairs).surrogate, read_strikes("strikes.csv", shape))

The commands are `rsr clash data`, `train`, `adapt` and `push`. May import policies, environments, simulators, scenarios
and sessions; what hides in a stand-in for reality is closed to it. Plans of single strikes are in `planning`; pushing
along routes is in `segment` (the task), `pushing` (the policy) and `push_training`, which loads Stable-Baselines3.
"""

from rsr.common.facade import lazy

__getattr__, __dir__, __all__ = lazy(__name__, __file__)
