"""InfoGap: what to explore while simulator and reality differ (Eq. 3 of the paper).

    features = transitions(states, actions, next_states)             # x = (s, a, s' - s)
    reward = fit_infogap(real, simulated_before, simulated_after, noise, task_reward_std, rng=rng)
    reward.bonus(features)                                           # added to the task reward
    reward.save(folder)

`features` builds and scales transitions, `divergence` measures KL(real || simulated), `transport` gives W1 of one added
sample in closed form, `reward` puts them together. Pure numpy: from rsr it imports only `errors` and `files`.
"""

from rsr.infogap.divergence import kl_axis, kl_conditional_gaussian, kl_kde
from rsr.infogap.features import Scaler, transition_noise, transitions
from rsr.infogap.reward import InfoGapReward, fit_infogap, open_share
from rsr.infogap.transport import METRICS, Metric, Transport, clipped, euclidean, saturating, w1_of_added_sample

__all__ = [
    "METRICS",
    "InfoGapReward",
    "Metric",
    "Scaler",
    "Transport",
    "clipped",
    "euclidean",
    "fit_infogap",
    "kl_axis",
    "kl_conditional_gaussian",
    "kl_kde",
    "open_share",
    "saturating",
    "transition_noise",
    "transitions",
    "w1_of_added_sample",
]
