from rsr.simulators.effects import EffectBatch as EffectBatch, EffectStepper as EffectStepper
from rsr.simulators.mujoco import (
    MujocoSimulator as MujocoSimulator,
    Simulator as Simulator,
    delay_weights as delay_weights,
    delayed as delayed,
    in_force as in_force,
    weights_of as weights_of,
)
from rsr.simulators.recorded_poses import always_inside as always_inside, judge_poses as judge_poses
from rsr.simulators.recordings import (
    UNSTABLE as UNSTABLE,
    evaluate_recording as evaluate_recording,
    unseen_episodes as unseen_episodes,
)
from rsr.simulators.sensor_correction import correct_sensors as correct_sensors, estimate_biases as estimate_biases
from rsr.simulators.sent_commands import SentCommands as SentCommands
from rsr.simulators.strikes import (
    Collider as Collider,
    FastRollout as FastRollout,
    SettledHeights as SettledHeights,
    Slide as Slide,
    at_rest as at_rest,
    set_parameters as set_parameters,
)
from rsr.simulators.unstable import (
    count_warnings as count_warnings,
    warning_counts as warning_counts,
    warnings_since as warnings_since,
)
