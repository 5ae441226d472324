from rsr.environments.gymnasium import TaskEnv as TaskEnv
from rsr.environments.measuring import Measuring as Measuring, at_rest as at_rest
from rsr.environments.novelty import (
    Bonus as Bonus,
    bonus_features as bonus_features,
    bonus_of as bonus_of,
    feature_noise as feature_noise,
)
from rsr.environments.sensor_model import SensorModel as SensorModel
from rsr.environments.task_trial import tried_task as tried_task
from rsr.environments.vector import HeadVecEnv as HeadVecEnv, JointVecEnv as JointVecEnv, TaskVecEnv as TaskVecEnv
from rsr.environments.world import World as World
