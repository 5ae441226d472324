"""InfoGap: what to explore while simulator and reality differ (Eq. 3 of the paper).

    features = transitions(states, actions, next_states)             # x = (s, a, s' - s)
    reward = fit_infogap(real, simulated_before, simulated_after, noise, task_reward_std, rng=rng)
    reward.bonus(features)                                           # added to the task reward
    reward.save(folder)

`features` builds and scales transitions; `densities` and `estimators` measure KL(real || simulated), and `choice` says
which estimator fits the data at hand; `transport` gives W1 or W2 of one added sample in closed form, and of a batch;
`fitting` puts them together into a `reward`. Numpy and scipy alone: from rsr it imports only `errors` and `files`.
"""

from rsr.infogap.choice import EstimatorChoice, diagnose
from rsr.infogap.densities import kl_axis, kl_conditional_gaussian
from rsr.infogap.estimators import ESTIMATORS, divergence
from rsr.infogap.features import Scaler, transition_noise, transitions
from rsr.infogap.fitting import RewardSettings, fit_infogap
from rsr.infogap.reward import InfoGapReward, open_share
from rsr.infogap.transport import METRICS, GroundMetric, Transport, saturating, w_of_added_batch

__all__ = [
    "ESTIMATORS",
    "METRICS",
    "EstimatorChoice",
    "GroundMetric",
    "InfoGapReward",
    "RewardSettings",
    "Scaler",
    "Transport",
    "diagnose",
    "divergence",
    "fit_infogap",
    "kl_axis",
    "kl_conditional_gaussian",
    "open_share",
    "saturating",
    "transition_noise",
    "transitions",
    "w_of_added_batch",
]
