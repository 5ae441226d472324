from rsr.infogap.choice import EstimatorChoice as EstimatorChoice, diagnose as diagnose
from rsr.infogap.densities import kl_axis as kl_axis, kl_conditional_gaussian as kl_conditional_gaussian
from rsr.infogap.estimators import ESTIMATORS as ESTIMATORS, divergence as divergence
from rsr.infogap.features import Scaler as Scaler, transition_noise as transition_noise, transitions as transitions
from rsr.infogap.fitting import RewardSettings as RewardSettings, fit_infogap as fit_infogap
from rsr.infogap.reward import InfoGapReward as InfoGapReward, open_share as open_share
from rsr.infogap.transport import (
    METRICS as METRICS,
    GroundMetric as GroundMetric,
    Transport as Transport,
    saturating as saturating,
    w_of_added_batch as w_of_added_batch,
)
