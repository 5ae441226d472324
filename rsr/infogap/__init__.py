"""InfoGap: what to explore while simulator and reality differ (Eq. 3 of the paper).

    features = transitions(states, actions, next_states)             # x = (s, a, s' - s)
    reward = fit_infogap(real, simulated_before, simulated_after, noise, task_reward_std, rng=rng)
    reward.bonus(features)                                           # added to the task reward
    reward.save(folder)

`features` builds and scales transitions; `densities` and `estimators` measure KL(real || simulated), and `choice` says
which estimator fits the data at hand; `transport` gives W1 or W2 of one added sample in closed form, and of a batch;
`fitting` puts them together into a `reward`. Numpy and scipy alone: from rsr it imports only `common`.
"""

from rsr.common.facade import lazy

__getattr__, __dir__, __all__ = lazy(__name__, __file__)
